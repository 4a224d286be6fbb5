//! Orders and requests for one container.

use std::sync::Arc;

use paceline_api::live::snapshot::Standing;
use paceline_policy::Event;
use paceline_policy::limiter::{Guard, Setting};
use paceline_wire::Targets;

use super::{Context, Observation, WatchedContainer};
use crate::endpoint::{self, Feed, TargetOverrides};
use crate::observe::node::Machine;

impl WatchedContainer {
    /// Requests a report now, if the endpoint answered last time.
    pub(in crate::controller) fn ask(&self) {
        if self.trouble.is_none() {
            self.feed.iter().for_each(Feed::ask);
        }
    }

    /// Whether that request was answered or has failed.
    pub(in crate::controller) fn has_answered(&self) -> bool {
        self.feed.as_ref().is_none_or(Feed::has_answered)
    }

    /// Ends the connection to its endpoint.
    pub(in crate::controller) fn stop_asking(&mut self) {
        (self.feed, self.trouble) = (None, None);
    }

    /// Stops managing it.
    pub(in crate::controller) fn release(&mut self) {
        self.stop_asking();
        self.standing = Standing::Released;
    }

    /// Watches it again like a new container, but keeps the settings that orders have made.
    pub(in crate::controller) fn take_back(&mut self, context: Context<'_>) {
        if self.feed.is_none() {
            self.reconnect(context);
        }
        self.standing = Standing::Waiting;
        (self.first_sample, self.answered_at, self.last_reported) = (None, None, None);
        // Its earlier reports are not news.
        self.began_in_this_run = false;
    }

    /// Connects to its endpoint as it is described now.
    pub(super) fn reconnect(&mut self, context: Context<'_>) {
        let (proc, endpoint) = (&context.machine.proc, &self.labels.endpoint);
        let routes = endpoint::routes(proc, &self.container, endpoint);
        let wake = Arc::clone(context.wake);
        self.feed = Some(Feed::follow(self.reach.clone(), routes, self.overrides(), wake));
        (self.urgent, self.reached) = (0, 0);
    }

    /// Sets targets; a target that is not given stays.
    pub(in crate::controller) fn set(&mut self, targets: Targets) -> Event {
        let before = self.ordered;
        self.ordered = Targets {
            acceptable: targets.acceptable.or(before.acceptable),
            objective: targets.objective.or(before.objective),
            batch_latency: targets.batch_latency.or(before.batch_latency),
        };
        if let Some(feed) = &self.feed {
            feed.set_overrides(self.overrides());
        }
        Event::Targets(self.job.clone(), self.ordered)
    }

    /// Switches a guard on or off.
    pub(in crate::controller) fn switch(&mut self, guard: Guard, on: bool) -> Event {
        self.switched.retain(|(other, _)| *other != guard);
        self.switched.push((guard, on));
        Event::Guarded(self.job.clone(), guard, on)
    }

    /// The targets from orders and labels, which override those of the endpoint.
    pub(in crate::controller) fn own_targets(&self) -> Targets {
        let (ordered, label) = (self.ordered, self.labels.targets);
        Targets {
            acceptable: ordered.acceptable.or(label.acceptable),
            objective: ordered.objective.or(label.objective),
            batch_latency: ordered.batch_latency.or(label.batch_latency),
        }
    }

    pub(super) fn overrides(&self) -> TargetOverrides {
        TargetOverrides { targets: self.own_targets(), direction: self.labels.direction }
    }

    /// The events for the decision engine when the job appears.
    pub(in crate::controller) fn appear(
        &mut self,
        machine: &Machine,
        standing: Standing,
    ) -> Vec<Observation> {
        self.standing = standing;
        let mut seen = vec![Observation::Appeared(Box::new(self.spec(machine)))];
        let weight = self.use_of.weight().or(self.container.host_config.weight());
        let weight = weight.map(|w| Event::Applied(self.job.clone(), Setting::Weight(w)));
        seen.extend(weight.map(Observation::Event));
        seen.push(Observation::Event(Event::Targets(self.job.clone(), self.ordered)));
        let switched = self.switched.iter();
        let guarded = |(guard, on): &(Guard, bool)| {
            Observation::Event(Event::Guarded(self.job.clone(), *guard, *on))
        };
        seen.extend(switched.map(guarded));
        seen
    }
}
