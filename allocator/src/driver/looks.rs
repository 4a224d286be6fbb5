//! What is seen: which containers there are, and how they do.

use std::time::Duration;

use paceline_policy::limiter::Setting;
use paceline_policy::{Event, JobId, Moment};
use tracing::{info, warn};

use super::candidate::Seen;
use super::engine_events::Touched;
use super::hands::{Deed, What};
use super::orders::{self, Pending};
use super::roster::Left;
use super::survey::{Survey, SurveyError};
use super::{COALESCE, Driver};
use crate::audit::Entry;
use crate::clock::unix_seconds;
use crate::live::Refusal;
use crate::live::snapshot::Standing;
use crate::nodes::Node;
use crate::observe::container::Container;
use crate::observe::node::CpuTimes;
use crate::samples::{Sample, SampleCost, SampleNode};

impl Driver {
    /// Has the list of containers compared with the one before.
    pub(super) fn refresh(&mut self, now: Moment, touched: Touched) {
        self.touched.add_all(touched);
        if now >= self.reconcile_at {
            self.touched = Touched::Any;
        }
        if !self.roster.survey(self.touched.clone()) {
            self.refresh_at = now.after(COALESCE.as_secs_f64());
            return;
        }
        if self.touched == Touched::Any {
            self.reconcile_at = now.after(self.timing.reconcile.as_secs_f64());
        }
        self.touched = Touched::None;
        self.refresh_at = self.reconcile_at;
    }

    /// Takes in what there is now.
    pub(super) fn compare(&mut self, survey: Result<Survey, SurveyError>) {
        let first = !self.roster.was_listed();
        let change = match survey {
            Ok(survey) => self.roster.compare(survey),
            Err(error) => {
                warn!("{:#}", anyhow::Error::from(error));
                self.touched = Touched::Any;
                return;
            }
        };
        if let Some(hands) = &self.hands {
            change.described.iter().for_each(|container| hands.actuator().saw(container));
        }
        change.described.iter().for_each(|container| self.described(container));
        if first && self.roster.candidates().next().is_some() {
            self.ask_all(self.clock.now());
        }
        if change.gone.is_empty() && change.lost.is_empty() {
            return;
        }
        for (container, job) in change.lost {
            self.end_of(&job);
            self.tell_gone(&job, container);
        }
        for Left { container, job, standing } in change.gone {
            // A job that moves is somewhere else, or the end of its move says that it is nowhere.
            if standing != Standing::Moving {
                self.end_of(&job);
            }
            let job = standing.is_managed().then_some(job);
            if let Some(job) = &job {
                self.tell_gone(job, container.clone());
            }
            // A container that only stopped would come back with our limit.
            if let Some(hands) = &mut self.hands {
                let overtaken = hands.first(orders::restore(container, job));
                for Pending { order, .. } in overtaken {
                    let gone = Refusal::Failed("the container has ended".to_owned());
                    self.answer(order, Err(gone));
                }
            }
        }
        self.hurry();
    }

    fn tell_gone(&mut self, job: &JobId, container: String) {
        info!(%job, "job is gone");
        self.write(&Entry::Gone { job: job.to_string(), container });
    }

    /// A job is no more, unless another container has its name by now.
    pub(super) fn end_of(&mut self, job: &JobId) {
        if self.roster.container(job).is_none() {
            self.tell(Event::Gone(job.clone()));
            self.moves.iter_mut().for_each(|moves| moves.forget(job));
        }
    }

    /// Takes in what the engine says of a container: its owner may have given it other CPUs.
    fn described(&mut self, container: &Container) {
        let id = container.id.as_str();
        let Some(candidate) = self.roster.get(id) else { return };
        let (job, was) = (candidate.job().clone(), candidate.standing);
        // Where it is then is said at the end of its move.
        if self.moves.as_ref().is_some_and(|moves| moves.has(&job)) {
            return;
        }
        let pinned = self.engine.account(&job).and_then(|account| account.pinned);
        let events = self.roster.described(container);
        if events.is_empty() {
            return;
        }
        for event in events {
            self.tell(event);
        }
        let is_managed = self.roster.get(id).is_some_and(|one| one.standing.is_managed());
        if let Some(share) = pinned.filter(|_| is_managed) {
            self.tell(Event::Pinned(job.clone(), share));
        }
        if let Some(hands) = self.hands.as_mut().filter(|_| was.is_managed() && !is_managed) {
            hands.last(orders::restore(id.to_owned(), Some(job)));
        }
        self.hurry();
    }

    /// Reads every container, and tells the engine.
    pub(super) fn look(&mut self, now: Moment, whole: bool) {
        let before = self.node_used;
        let stat = CpuTimes::read(self.roster.proc()).ok();
        let used = stat.as_ref().map(CpuTimes::used_seconds);
        if let Some(used) = used {
            self.tell(Event::NodeUsed(used));
        }
        if let Some(stat) = &stat {
            self.tell_nodes_use(stat);
        }
        let (seen, jobs) = self.roster.look(&self.clock, whole);
        self.take_in(seen);
        if !whole {
            return;
        }
        self.look_at = next_look(self.clock.now(), self.timing.look);
        self.node_used = used.map(|used| (now, used));
        let cpus = self.roster.machine().cpus;
        self.node_cpu = before.zip(self.node_used).and_then(|((from, before), (to, used))| {
            let seconds = to.seconds_since(from);
            (seconds > 0.0).then(|| (used - before) / seconds / cpus)
        });
        if let Some(samples) = &mut self.records.samples {
            let node = SampleNode { cpus, cpu: self.node_cpu };
            let cost = self.tally.view(self.roster.proc(), self.engine.counters());
            let cost = SampleCost {
                cpu_seconds: cost.cpu_seconds,
                writes: cost.writes,
                write_seconds: cost.write_seconds,
            };
            let (t, unix) = (now.seconds(), unix_seconds());
            samples.write(&Sample { t, unix, node, jobs, cost: Some(cost) });
        }
    }

    /// What each of several nodes has used.
    fn tell_nodes_use(&mut self, stat: &CpuTimes) {
        let now = self.clock.now();
        for Node { name, cpus } in self.roster.nodes().iter() {
            if let Some(used) = stat.used_seconds_of(cpus) {
                self.engine.node_used(now, name, used);
            }
        }
    }

    pub(super) fn take_in(&mut self, seen: Vec<Seen>) {
        let now = self.clock.now();
        for seen in seen {
            match seen {
                Seen::Appeared(spec) => {
                    info!(job = %spec.id, "job appeared");
                    let job = spec.id.clone();
                    self.tell(Event::Appeared(*spec));
                    let container = self.roster.container(&job).unwrap_or_default().to_owned();
                    self.write(&Entry::Appeared { job: job.to_string(), container });
                    // Others may come with it.
                    self.decide_at.get_or_insert(now.after(COALESCE.as_secs_f64()));
                }
                Seen::Event(event) => self.tell(event),
                Seen::Urgent => self.decide_at = Some(now),
                Seen::Reached if self.engine.minds_targets() => self.decide_at = Some(now),
                Seen::Reached => {}
                // A run that writes goes by what it wrote; in a dry run others alone set limits.
                Seen::Limited { .. } if self.hands.is_some() => {}
                Seen::Limited { job, found } => {
                    self.tell(Event::Applied(job, Setting::Cap(found)));
                }
                Seen::Drifted { job, container } => self.drifted(job, container),
            }
        }
    }

    /// A limit is not what was written. Whose doing that is takes a closer look, and an answer.
    fn drifted(&mut self, job: JobId, container: String) {
        let Some(hands) = &mut self.hands else { return };
        // What is being written is ours.
        if !hands.has_to_do_with(&container) {
            hands.last(Deed { container, job: Some(job), what: What::Answer, order: None });
        }
    }
}

/// Looks are due at whole multiples of their interval, however long one takes, so that they do not
/// drift; one that is missed is not made up for.
fn next_look(now: Moment, interval: Duration) -> Moment {
    let look = interval.as_secs_f64();
    Moment::from_seconds(((now.seconds() / look).floor() + 1.0) * look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::timing::Timing;

    #[test]
    fn looks_are_due_at_whole_seconds_and_those_that_were_missed_are_left_out() {
        for (now, next) in [(0.0, 1.0), (0.2, 1.0), (7.999, 8.0), (8.0, 9.0), (10.3, 11.0)] {
            let found = next_look(Moment::from_seconds(now), Timing::default().look);
            assert_eq!(found, Moment::from_seconds(next), "{now}");
        }
    }
}
