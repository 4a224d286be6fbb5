//! Takes in observations: the list of containers, and samples of their jobs.

use paceline_api::audit::Entry;
use paceline_api::clock::unix_seconds;
use paceline_api::live::Refusal;
use paceline_api::live::snapshot::Standing;
use paceline_api::nodes::Node;
use paceline_api::samples::{Sample, SampleCost, SampleNode};
use paceline_policy::limiter::Setting;
use paceline_policy::{Event, JobId, Moment};
use paceline_runtime::Container;
use tracing::{info, warn};

use super::Controller;
use super::commands::{self, Pending};
use super::engine_events::Touched;
use super::inventory::Departed;
use super::survey::{Survey, SurveyError};
use super::watched::Observation;
use super::write_queue::{Action, WriteQueue, WriteRequest};
use crate::limits::ByOwner;
use crate::observe::node::CpuTimes;

impl Controller {
    /// Begins a survey of the containers, unless one is under way.
    pub(super) fn refresh(&mut self, now: Moment, touched: Touched) {
        self.touched.add_all(touched);
        if self.timetable.is_of_all(now) {
            self.touched = Touched::Any;
            if self.inventory.was_listed() {
                self.reconcile_records();
            }
        }
        if !self.inventory.survey(self.touched.clone()) {
            self.timetable.survey_waits(now);
            return;
        }
        let touched = std::mem::take(&mut self.touched);
        self.timetable.surveys(now, touched == Touched::Any);
    }

    /// Takes in a finished survey.
    pub(super) fn compare(&mut self, survey: Result<Survey, SurveyError>) {
        let first = !self.inventory.was_listed();
        let change = match survey {
            Ok(survey) => self.inventory.compare(survey),
            Err(error) => {
                warn!("{:#}", anyhow::Error::from(error));
                self.touched = Touched::Any;
                return;
            }
        };
        if let Some(writes) = &self.writes {
            change.described.iter().for_each(|container| writes.actuator().described(container));
        }
        for container in &change.described {
            self.owned_by(container);
            self.described(container);
        }
        if first && self.inventory.candidates().next().is_some() {
            self.inventory.ask_all();
            self.timetable.asked(self.clock.now());
        }
        let mut pinned = change.pinned;
        if change.gone.is_empty() && change.lost.is_empty() {
            self.pin_again(pinned);
            return;
        }
        for (container, job) in change.lost {
            self.end_of(&job);
            self.record_gone(&job, container);
        }
        for Departed { container, job, standing } in change.gone {
            self.endings.forget(&container);
            if let Some(share) = self.engine.status(&job).and_then(|status| status.pinned)
                && self.inventory.keep_pin(&container, share)
            {
                pinned.push((container.clone(), share));
            }
            // A moving job runs elsewhere by now, or the result of its move reports its end.
            if standing != Standing::Moving {
                self.end_of(&job);
            }
            let job = standing.is_managed().then_some(job);
            if let Some(job) = &job {
                self.record_gone(job, container.clone());
            }
            // A container that only stopped would restart with our limit.
            if let Some(writes) = &mut self.writes {
                let overtaken = writes.preempt(commands::restore(container, job));
                for Pending { order, .. } in overtaken {
                    let gone = Refusal::Failed("the container has ended".to_owned());
                    self.answer(order, Err(gone));
                }
            }
        }
        self.pin_again(pinned);
        self.decide_soon();
    }

    fn record_gone(&mut self, job: &JobId, container: String) {
        info!(%job, "job is gone");
        self.recorder.write(&Entry::Gone { job: job.to_string(), container });
    }

    /// Ends a job, unless another container has its name by now.
    pub(super) fn end_of(&mut self, job: &JobId) {
        if self.inventory.container(job).is_none() {
            self.apply_event(Event::Gone(job.clone()));
            self.moves.iter_mut().for_each(|moves| moves.forget(job));
        }
    }

    /// Takes in the limits that a container's owner has set.
    pub(super) fn owned_by(&mut self, container: &Container) {
        let actuator = self.writes.as_ref().map(WriteQueue::actuator);
        // A dry run has no records, and may be beside a run that writes. So it goes by the engine's words.
        let by_owner = actuator.map_or(ByOwner::Unknown, |it| it.by_owner(&container.id));
        let machine = self.inventory.machine().clone();
        let Some(candidate) = self.inventory.get(&container.id) else { return };
        let event = candidate.owned_by(container.host_config, &by_owner, &machine);
        let is_managed = candidate.managed().is_some();
        if let Some(event) = event.filter(|_| is_managed) {
            self.apply_event(event);
            self.decide_soon();
        }
    }

    /// Takes in a container's new description: its owner may have given it other CPUs.
    fn described(&mut self, container: &Container) {
        let id = container.id.as_str();
        let Some(candidate) = self.inventory.get(id) else { return };
        let (job, was) = (candidate.job().clone(), candidate.standing);
        // The result of its move sets its node.
        if self.moves.as_ref().is_some_and(|moves| moves.has(&job)) {
            return;
        }
        let pinned = self.engine.status(&job).and_then(|status| status.pinned);
        let events = self.inventory.described(container);
        if events.is_empty() {
            return;
        }
        for event in events {
            self.apply_event(event);
        }
        let is_managed = self.inventory.get(id).is_some_and(|one| one.standing.is_managed());
        if let Some(share) = pinned.filter(|_| is_managed) {
            self.apply_event(Event::Pinned(job.clone(), share));
        }
        if let Some(writes) = self.writes.as_mut().filter(|_| was.is_managed() && !is_managed) {
            writes.push_back(commands::restore(id.to_owned(), Some(job)));
        }
        self.decide_soon();
    }

    /// Samples every container and gives the readings to the decision engine.
    pub(super) fn sample(&mut self, now: Moment, whole: bool) {
        let before = self.node_used;
        let stat = CpuTimes::read(self.inventory.proc()).ok();
        let used = stat.as_ref().map(CpuTimes::used_seconds);
        if let Some(used) = used {
            self.apply_event(Event::NodeUsed(used));
        }
        if let Some(stat) = &stat {
            self.apply_nodes_use(stat);
        }
        let (seen, jobs) = self.inventory.sample(&self.clock, whole);
        self.ingest(seen);
        if !whole {
            return;
        }
        self.timetable.sampled(self.clock.now());
        self.node_used = used.map(|used| (now, used));
        let cpus = self.inventory.machine().cpus;
        self.node_cpu = before.zip(self.node_used).and_then(|((from, before), (to, used))| {
            let seconds = to.seconds_since(from);
            (seconds > 0.0).then(|| (used - before) / seconds / cpus)
        });
        if let Some(samples) = self.recorder.samples() {
            let node = SampleNode { cpus, cpu: self.node_cpu };
            let cost = self.tally.view(self.inventory.proc(), self.engine.counters());
            let cost = SampleCost {
                cpu_seconds: cost.cpu_seconds,
                writes: cost.writes,
                write_seconds: cost.write_seconds,
            };
            let (t, unix) = (now.seconds(), unix_seconds());
            samples.write(&Sample { t, unix, node, jobs, cost: Some(cost) });
        }
    }

    /// Gives the decision engine the CPU time that each of several nodes has used.
    fn apply_nodes_use(&mut self, stat: &CpuTimes) {
        let now = self.clock.now();
        for Node { name, cpus } in self.inventory.nodes().iter() {
            if let Some(used) = stat.used_seconds_of(cpus) {
                self.engine.node_used(now, name, used);
            }
        }
    }

    /// Takes in what samples have shown.
    pub(super) fn ingest(&mut self, seen: Vec<Observation>) {
        let now = self.clock.now();
        for seen in seen {
            match seen {
                Observation::Appeared(spec) => {
                    info!(job = %spec.id, "job appeared");
                    let job = spec.id.clone();
                    self.apply_event(Event::Appeared(*spec));
                    let container = self.inventory.container(&job).unwrap_or_default().to_owned();
                    self.recorder.write(&Entry::Appeared { job: job.to_string(), container });
                    self.timetable.appeared(now);
                }
                Observation::Event(event) => self.apply_event(event),
                Observation::Urgent => self.timetable.decide(now),
                Observation::Reached if self.engine.reacts_to_targets() => {
                    self.timetable.decide(now);
                }
                Observation::Reached => {}
                // A run that writes knows its own limits; in a dry run only others set any.
                Observation::Limited { .. } if self.writes.is_some() => {}
                Observation::Limited { job, found } => {
                    self.apply_event(Event::Applied(job, Setting::Cap(found)));
                }
                Observation::Drifted { job, container } => self.drifted(job, container),
            }
        }
    }

    /// A limit is not what was written: requests that the writer checks and answers it.
    fn drifted(&mut self, job: JobId, container: String) {
        let Some(writes) = &mut self.writes else { return };
        // A write of our own may be under way, and explains the difference.
        if !writes.has_to_do_with(&container) {
            writes.push_back(WriteRequest {
                container,
                job: Some(job),
                what: Action::Answer,
                order: None,
            });
        }
    }
}
