//! What is ordered for one container.

use std::sync::Arc;

use paceline_policy::Event;
use paceline_policy::limiter::{Guard, Setting};
use paceline_wire::Targets;

use super::{Candidate, Seen, Surroundings};
use crate::live::snapshot::Standing;
use crate::observe::endpoint::{self, Feed, Owned};
use crate::observe::node::Machine;

impl Candidate {
    /// Has its endpoint asked now, if it is one that answers.
    pub(in crate::driver) fn ask(&self) {
        if self.trouble.is_none() {
            self.feed.iter().for_each(Feed::ask);
        }
    }

    /// Whether something has come of that.
    pub(in crate::driver) fn has_answered(&self) -> bool {
        self.feed.as_ref().is_none_or(Feed::has_answered)
    }

    /// It is left alone from now on.
    pub(in crate::driver) fn release(&mut self) {
        (self.feed, self.trouble) = (None, None);
        self.standing = Standing::Released;
    }

    /// It is watched again as if it were new, but for what was set for it.
    pub(in crate::driver) fn take_back(&mut self, around: Surroundings<'_>) {
        let (proc, endpoint) = (&around.machine.proc, &self.labels.endpoint);
        if self.feed.is_none() {
            let ways = endpoint::ways(proc, &self.container, endpoint);
            let nudge = Arc::clone(around.nudge);
            self.feed = Some(Feed::follow(proc.clone(), ways, self.owned(), nudge));
            (self.urgent, self.reached) = (0, 0);
        }
        self.standing = Standing::Waiting;
        (self.first_look, self.answered_at, self.told) = (None, None, None);
        // What it has said until then is no news.
        self.began_in_this_run = false;
    }

    /// Sets targets; what is not given stays.
    pub(in crate::driver) fn set(&mut self, targets: Targets) -> Event {
        let before = self.ordered;
        self.ordered = Targets {
            acceptable: targets.acceptable.or(before.acceptable),
            objective: targets.objective.or(before.objective),
            batch_latency: targets.batch_latency.or(before.batch_latency),
        };
        if let Some(feed) = &self.feed {
            feed.own(self.owned());
        }
        Event::Targets(self.job.clone(), self.ordered)
    }

    /// Switches a guard.
    pub(in crate::driver) fn switch(&mut self, guard: Guard, on: bool) -> Event {
        self.switched.retain(|(other, _)| *other != guard);
        self.switched.push((guard, on));
        Event::Guarded(self.job.clone(), guard, on)
    }

    /// The targets that stand over those of the endpoint.
    pub(in crate::driver) fn own_targets(&self) -> Targets {
        let (ordered, label) = (self.ordered, self.labels.targets);
        Targets {
            acceptable: ordered.acceptable.or(label.acceptable),
            objective: ordered.objective.or(label.objective),
            batch_latency: ordered.batch_latency.or(label.batch_latency),
        }
    }

    pub(super) fn owned(&self) -> Owned {
        Owned { targets: self.own_targets(), direction: self.labels.direction }
    }

    /// What the engine is told when the job appears, whatever made it one.
    pub(in crate::driver) fn appear(&mut self, machine: &Machine, standing: Standing) -> Vec<Seen> {
        self.standing = standing;
        let mut seen = vec![Seen::Appeared(Box::new(self.spec(machine)))];
        let weight = self.container.host_config.weight();
        let weight = weight.map(|w| Event::Applied(self.job.clone(), Setting::Weight(w)));
        seen.extend(weight.map(Seen::Event));
        seen.push(Seen::Event(Event::Targets(self.job.clone(), self.ordered)));
        let switched = self.switched.iter();
        let guarded = |(guard, on): &(Guard, bool)| {
            Seen::Event(Event::Guarded(self.job.clone(), *guard, *on))
        };
        seen.extend(switched.map(guarded));
        seen
    }
}
