//! One opted-in container. It is watched until its job reports, and managed from then on.

mod home;
mod ordered;
mod owned;
mod source;

use std::sync::Arc;

use paceline_policy::engine::{Reading, Report};
use paceline_policy::limiter::Guard;
use paceline_policy::unit::{counter, saturate};
use paceline_policy::{Event, JobId, JobSpec, Moment, Share};
use paceline_runtime::{Container, Runtime};
use paceline_wire::{Progress, State, Targets};
use tokio::sync::Notify;
use tracing::{info, warn};

use super::figures::{Baseline, Figures};
use crate::endpoint::{Feed, LatestReport, Reach, Trouble};
use crate::observe::meters::Meters;
use crate::observe::node::Machine;
use home::Home;
pub(super) use home::Orders;
use owned::Owned;
use paceline_api::clock::{Clock, unix_seconds};
use paceline_api::labels::Labels;
use paceline_api::live::snapshot::Standing;
use paceline_api::nodes::Nodes;
use paceline_api::plain;
use paceline_api::samples::SampleJob;
use paceline_cgroup::Quota;
use source::Source;

/// How long a new container may take until its endpoint answers, and an endpoint until its job
/// reports, in seconds. A job that is silent for longer is managed all the same, because it uses
/// the node.
const GRACE: f64 = 15.0;
/// The largest age of a report, in seconds; an older one counts as this old.
const MAX_REPORT_AGE: f64 = 10.0;
/// A limit that differs from the written one by more than this share was changed outside of
/// Paceline; a smaller difference is rounding.
const DRIFT_TOLERANCE: f64 = 0.0005;

#[derive(Debug)]
pub(super) struct WatchedContainer {
    pub(super) container: Container,
    pub(super) labels: Labels,
    job: JobId,
    began_in_this_run: bool,
    /// The node that it runs on.
    home: Home,
    reach: Reach,
    /// `None` while it is released or moved.
    feed: Option<Feed>,
    use_of: Source,
    meters: Meters,
    owned: Owned,
    pub(super) standing: Standing,
    /// Targets that orders have set.
    ordered: Targets,
    /// Guards that orders have switched on or off.
    switched: Vec<(Guard, bool)>,
    first_sample: Option<Moment>,
    /// When its endpoint was first found to answer while it was not managed yet.
    answered_at: Option<Moment>,
    /// The report that the decision engine was given last.
    last_reported: Option<Arc<Progress>>,
    /// How often it has had urgent news and reached a target, as of the last sample.
    urgent: u64,
    reached: u64,
    /// The endpoint's trouble as of the last sample. It is logged once, until it changes.
    trouble: Option<Trouble>,
    warned: bool,
    /// Whether the log has said that a label raises its owner's cap.
    said_ceiling: bool,
    /// The cap that was last written and not restored.
    pub(super) written: Option<Share>,
    /// The limit that the last sample found in force, and the one that was written then.
    found: Option<(Share, Option<Share>)>,
    /// The limit for which a check is under way because it is not the written one.
    checking: Option<Share>,
    /// A written limit, and what the kernel has made of it.
    rounded: Option<(Share, Share)>,
    baseline: Baseline,
    pub(super) figures: Figures,
}

/// A container that is admitted, and its job.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) container: Container,
    pub(super) labels: Labels,
    pub(super) job: JobId,
    pub(super) reach: Reach,
}

/// What a sample has shown.
#[derive(Debug)]
pub(super) enum Observation {
    /// The container's job has reported for the first time.
    Appeared(Box<JobSpec>),
    /// News of a managed job.
    Event(Event),
    /// Urgent news, on which any policy may act at once.
    Urgent,
    /// The job has reached a target, on which policies that use targets may act at once.
    Reached,
    /// A limit that is not ours has changed: `found` is in force now.
    Limited { job: JobId, found: Share },
    /// A limit that was written has changed.
    Drifted { job: JobId, container: String },
}

/// What a watched container needs to know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) machine: &'a Machine,
    /// The nodes that the machine's CPUs are split into.
    pub(super) nodes: &'a Nodes,
    /// Notified of urgent news from the job.
    pub(super) wake: &'a Arc<Notify>,
}

impl WatchedContainer {
    pub(super) fn new(
        context: Context<'_>,
        Identity { container, labels, job, reach }: Identity,
        began_in_this_run: bool,
    ) -> Self {
        let machine = context.machine;
        let use_of = Source::new(&container, machine, &job);
        let meters = container.pid.and_then(|pid| Meters::for_process(&machine.proc, pid).ok());
        let home = Home::new(&container, context.nodes);
        let mut candidate = Self {
            labels,
            job,
            began_in_this_run: false,
            home,
            reach,
            feed: None,
            owned: Owned::new(&container, &use_of),
            use_of,
            meters: meters.unwrap_or_default(),
            standing: Standing::Waiting,
            ordered: Targets::default(),
            switched: Vec::new(),
            first_sample: None,
            answered_at: None,
            last_reported: None,
            urgent: 0,
            reached: 0,
            trouble: None,
            warned: false,
            said_ceiling: false,
            written: None,
            found: None,
            checking: None,
            rounded: None,
            baseline: Baseline::default(),
            figures: Figures::default(),
            container,
        };
        candidate.take_back(context);
        candidate.began_in_this_run = began_in_this_run;
        candidate
    }

    pub(super) fn job(&self) -> &JobId {
        &self.job
    }

    /// The job, if the engine knows it as one.
    pub(super) fn managed(&self) -> Option<&JobId> {
        self.standing.is_managed().then_some(&self.job)
    }

    /// The job's latest report, if there is one.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.latest().progress
    }

    /// Why it is not managed, or why its figures are not fresh.
    pub(super) fn trouble(&self) -> Option<String> {
        let outside = self.home.outside();
        let trouble = || self.trouble.as_ref().map(|trouble| trouble.text.as_ref());
        let is_silent = self.standing == Standing::Waiting && self.answered_at.is_some();
        let silent = || is_silent.then_some("it has not reported yet");
        outside.or_else(trouble).or_else(silent).map(str::to_owned)
    }

    /// Reads the latest report and the use of resources. A `whole` sample renews the figures, which
    /// are means since the last whole sample. Every sample gives events to the decision engine.
    pub(super) fn sample(
        &mut self,
        runtime: &Runtime,
        machine: &Machine,
        clock: &Clock,
        whole: bool,
    ) -> (Vec<Observation>, Option<SampleJob>) {
        let now = clock.now();
        let latest = self.latest();
        self.log_trouble(&latest, now);
        let progress = latest.progress.filter(|_| latest.trouble.is_none());
        let mut seen = Vec::new();
        let waits = self.standing == Standing::Waiting && self.home.outside().is_none();
        if waits && progress.as_deref().is_some_and(|progress| self.has_begun(progress, now)) {
            seen.extend(self.appear(machine, Standing::Managed));
            // Its earlier news counts as known.
            (self.urgent, self.reached) = (latest.urgent, latest.reached);
        }
        let quota = self.use_of.quota();
        let used = self.use_of.used(runtime, &self.container.id, quota);
        if whole {
            let figures = (used, self.meters.read());
            self.figures = self.baseline.figures(now, machine.cpus, figures, progress.as_deref());
        }
        let in_force = self.share(quota, machine);
        let before = self.found.replace((in_force, self.written));
        if self.managed().is_none() {
            return (seen, None);
        }
        if std::mem::replace(&mut self.urgent, latest.urgent) != latest.urgent {
            seen.push(Observation::Urgent);
        }
        if std::mem::replace(&mut self.reached, latest.reached) != latest.reached {
            seen.push(Observation::Reached);
        }
        if let Some(used) = used {
            let reading = Reading {
                cpu_seconds: used.cpu_seconds,
                throttled_seconds: Some(used.throttled_seconds),
                memory: used.memory.map(|bytes| counter(bytes) / machine.memory),
            };
            seen.push(Observation::Event(Event::Used(self.job.clone(), reading)));
        }
        seen.extend(self.drift(before, in_force));
        let sample = whole.then(|| self.sample_line(in_force, progress.as_deref()));
        if let Some(progress) = progress
            && !self.last_reported.as_ref().is_some_and(|last| Arc::ptr_eq(last, &progress))
        {
            // Both times are of the machine's clock. The bounds guard against a clock that was set.
            let age = saturate(unix_seconds() - progress.now).clamp(0.0, MAX_REPORT_AGE);
            let report = Report { age, ..Report::from(progress.as_ref()) };
            seen.push(Observation::Event(Event::Reported(self.job.clone(), report)));
            self.last_reported = Some(progress);
        }
        (seen, sample)
    }

    /// Whether the job has reported, or has taken too long to. Before its first report a job loads
    /// its data and builds its model, and has no loss yet. A policy that decided about it then would
    /// depend on whether it ran just before or just after that report.
    fn has_begun(&mut self, progress: &Progress, now: Moment) -> bool {
        let answered_at = *self.answered_at.get_or_insert(now);
        progress.state != State::Starting || now.seconds_since(answered_at) >= GRACE
    }

    fn latest(&self) -> LatestReport {
        self.feed.as_ref().map(Feed::latest).unwrap_or_default()
    }

    /// Logs trouble with the endpoint once. A new container is given time.
    fn log_trouble(&mut self, latest: &LatestReport, now: Moment) {
        let first_sample = *self.first_sample.get_or_insert(now);
        if latest.trouble == self.trouble && (self.warned || latest.trouble.is_none()) {
            return;
        }
        let new = latest.trouble != self.trouble;
        self.trouble.clone_from(&latest.trouble);
        let Some(trouble) = &latest.trouble else {
            if std::mem::take(&mut self.warned) {
                info!(job = %self.job, "its endpoint answers");
            }
            return;
        };
        let managed = self.managed().is_some();
        let ripe = managed || now.seconds_since(first_sample) >= GRACE || !trouble.may_pass;
        if ripe && (new || !self.warned) {
            let what = if managed { "keeps its limit for now" } else { "is not managed" };
            let name = plain::message(&self.container.name);
            warn!(container = %name, "it {what}: {}", trouble.text);
            self.warned = true;
        }
    }

    fn spec(&self, machine: &Machine) -> JobSpec {
        let share = |cpus: f64| Share::nearest(cpus / machine.cpus);
        JobSpec {
            id: self.job.clone(),
            node: self.node().map(str::to_owned),
            fresh: self.began_in_this_run,
            in_force: self.in_force(machine),
            min: self.floor().map(share),
            max: self.ceiling(machine),
            weight: self.labels.weight,
            own_weight: self.owned.weight,
            age: self.age(),
            max_slowdown: self.labels.max_slowdown,
            // A pod's controller would start it again.
            may_terminate: self.labels.terminate && self.container.pod.is_none(),
            work: self.labels.work,
            direction: self.labels.direction,
            targets: self.labels.targets,
        }
    }

    /// The limit in force in the kernel; else the one in the container engine's description.
    pub(super) fn in_force(&self, machine: &Machine) -> Share {
        self.share(self.use_of.quota(), machine)
    }

    /// The limit as of the last sample, or a new reading if it was written since. Reading it for
    /// every container at every snapshot would cost more than the rest of the snapshot.
    pub(super) fn last_in_force(&self, machine: &Machine) -> Share {
        let found = self.found.filter(|(_, written)| *written == self.written);
        found.map_or_else(|| self.in_force(machine), |(share, _)| share)
    }

    fn share(&self, quota: Option<Quota>, machine: &Machine) -> Share {
        let engines = || self.container.host_config.share(machine.cpus);
        quota.map_or_else(engines, |quota| quota.share(machine.cpus))
    }

    /// Whether the limit differs from the written one; or, if none was written, from `before`.
    fn drift(
        &mut self,
        before: Option<(Share, Option<Share>)>,
        found: Share,
    ) -> Option<Observation> {
        let is_off = |from: Share| (from.get() - found.get()).abs() > DRIFT_TOLERANCE;
        let job = self.job.clone();
        match (self.written, before) {
            (Some(written), _) if self.use_of.is_kernel() && is_off(written) => {
                let rounded = self.rounded.filter(|(of, _)| *of == written);
                if rounded.is_some_and(|(_, rounded)| !is_off(rounded)) {
                    return None;
                }
                self.checking.get_or_insert(found);
                Some(Observation::Drifted { job, container: self.container.id.clone() })
            }
            (None, Some((before, None))) if is_off(before) => {
                Some(Observation::Limited { job, found })
            }
            _ => None,
        }
    }

    /// A limit that is not the written one was checked. If it is only what the kernel has made of that, it is
    /// not checked again.
    pub(super) fn end_check(&mut self, is_rounded: bool) {
        let checked = self.checking.take().filter(|_| is_rounded);
        if let Some(rounded) = self.written.zip(checked) {
            self.rounded = Some(rounded);
        }
    }

    fn sample_line(&self, in_force: Share, progress: Option<&Progress>) -> SampleJob {
        let asked = progress.map(|progress| progress.targets).unwrap_or_default();
        let own = self.own_targets();
        let reached = progress.map(|progress| &progress.reached);
        SampleJob {
            id: self.job.to_string(),
            loss: self.figures.loss,
            steps: progress.and_then(|progress| progress.step),
            cpu: self.figures.cpu,
            throttled: self.figures.throttled,
            limit: Some(in_force.get()),
            target_acceptable: own.acceptable.or(asked.acceptable),
            target_objective: own.objective.or(asked.objective),
            acceptable_at: reached.and_then(|reached| reached.acceptable_at),
            objective_at: reached.and_then(|reached| reached.objective_at),
        }
    }
}
