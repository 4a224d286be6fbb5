//! One opted-in container: watched until its job reports, a managed job from then on.

mod home;
mod ordered;
mod source;

use std::sync::Arc;

use bollard::Docker;
use paceline_policy::engine::{Reading, Report};
use paceline_policy::limiter::Guard;
use paceline_policy::unit::{counter, saturate};
use paceline_policy::{Event, JobId, JobSpec, Moment, Share};
use paceline_wire::{Progress, State, Targets};
use tokio::sync::Notify;
use tracing::{info, warn};

use super::figures::{Figures, Mark};
use crate::clock::{Clock, unix_seconds};
use crate::labels::Labels;
use crate::live::snapshot::Standing;
use crate::nodes::Nodes;
use crate::observe::cgroup::Quota;
use crate::observe::container::Container;
use crate::observe::endpoint::{Feed, Heard, Trouble};
use crate::observe::meters::Meters;
use crate::observe::node::Machine;
use crate::samples::SampleJob;
use home::Home;
pub(super) use home::Orders;
use source::Source;

/// A container that has just begun may take this long, in seconds, until its endpoint answers; and an
/// endpoint that answers, until its job reports. One that is silent for longer is managed as it is: its
/// use of the node is there all the same.
const GRACE: f64 = 15.0;
/// An older report, in seconds, is taken to be of this age.
const LONGEST_AGE: f64 = 10.0;
/// A limit that differs from what was written by more than this is somebody else's: less is
/// rounding.
const OFF: f64 = 0.0005;

#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) container: Container,
    pub(super) labels: Labels,
    job: JobId,
    began_in_this_run: bool,
    /// Where it runs, if the machine is several nodes.
    home: Home,
    /// `None` while it is left alone.
    feed: Option<Feed>,
    use_of: Source,
    meters: Meters,
    pub(super) standing: Standing,
    /// What was set by orders.
    ordered: Targets,
    switched: Vec<(Guard, bool)>,
    first_look: Option<Moment>,
    /// When its endpoint had answered and it was not managed yet.
    answered_at: Option<Moment>,
    /// What the engine knows of what the job said.
    told: Option<Arc<Progress>>,
    /// How much of what it said was urgent, and how often it had reached a target.
    urgent: u64,
    reached: u64,
    /// What was last warned of: not said again until it changes.
    trouble: Option<Trouble>,
    warned: bool,
    /// The cap that was last written and not put back.
    pub(super) written: Option<Share>,
    /// What the last look found in force, and what was written then.
    found: Option<(Share, Option<Share>)>,
    mark: Mark,
    pub(super) figures: Figures,
}

/// What a look has shown.
#[derive(Debug)]
pub(super) enum Seen {
    /// It has reported for the first time: the container is a job.
    Appeared(Box<JobSpec>),
    /// News of a managed job.
    Event(Event),
    /// Something that a policy may act on at once.
    Urgent,
    /// The same to policies that go by targets: it has reached one.
    Reached,
    /// Somebody else limits a job whose limit is not ours: this is in force now.
    Limited { job: JobId, found: Share },
    /// A limit that was written is another now.
    Drifted { job: JobId, container: String },
}

/// What a candidate is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) machine: &'a Machine,
    /// What its CPUs are split into.
    pub(super) nodes: &'a Nodes,
    /// Told of what cannot wait.
    pub(super) nudge: &'a Arc<Notify>,
}

impl Candidate {
    pub(super) fn new(
        around: Surroundings<'_>,
        container: Container,
        labels: Labels,
        job: JobId,
        began_in_this_run: bool,
    ) -> Self {
        let machine = around.machine;
        let use_of = Source::of(&container, machine, &job);
        let meters = container.pid.and_then(|pid| Meters::of(&machine.proc, pid).ok());
        let home = Home::of(&container, around.nodes);
        let mut candidate = Self {
            container,
            labels,
            job,
            began_in_this_run: false,
            home,
            feed: None,
            use_of,
            meters: meters.unwrap_or_default(),
            standing: Standing::Waiting,
            ordered: Targets::default(),
            switched: Vec::new(),
            first_look: None,
            answered_at: None,
            told: None,
            urgent: 0,
            reached: 0,
            trouble: None,
            warned: false,
            written: None,
            found: None,
            mark: Mark::default(),
            figures: Figures::default(),
        };
        candidate.take_back(around);
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

    /// What was last heard of the job, if it answers.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.heard().progress
    }

    /// What keeps it from being managed, or its figures from being fresh.
    pub(super) fn trouble(&self) -> Option<String> {
        let outside = self.home.outside();
        let trouble = || self.trouble.as_ref().map(|trouble| trouble.text.as_ref());
        let is_silent = self.standing == Standing::Waiting && self.answered_at.is_some();
        let silent = || is_silent.then_some("it has not reported yet");
        outside.or_else(trouble).or_else(silent).map(str::to_owned)
    }

    /// Reads what the endpoint has said and the use of resources. Figures are those from one
    /// `whole` look to the next; the engine is told at any look.
    pub(super) fn look(
        &mut self,
        docker: &Docker,
        machine: &Machine,
        clock: &Clock,
        whole: bool,
    ) -> (Vec<Seen>, Option<SampleJob>) {
        let now = clock.now();
        let heard = self.heard();
        self.note(&heard, now);
        let progress = heard.progress.filter(|_| heard.trouble.is_none());
        let mut seen = Vec::new();
        let waits = self.standing == Standing::Waiting && self.home.outside().is_none();
        if waits && progress.as_deref().is_some_and(|progress| self.has_begun(progress, now)) {
            seen.extend(self.appear(machine, Standing::Managed));
            // That it has begun is all its news.
            (self.urgent, self.reached) = (heard.urgent, heard.reached);
        }
        let quota = self.use_of.quota();
        let used = self.use_of.used(docker, &self.container.id, quota);
        if whole {
            let figures = (used, self.meters.read());
            self.figures = self.mark.figures(now, machine.cpus, figures, progress.as_deref());
        }
        let in_force = self.share(quota, machine);
        let before = self.found.replace((in_force, self.written));
        if self.managed().is_none() {
            return (seen, None);
        }
        if std::mem::replace(&mut self.urgent, heard.urgent) != heard.urgent {
            seen.push(Seen::Urgent);
        }
        if std::mem::replace(&mut self.reached, heard.reached) != heard.reached {
            seen.push(Seen::Reached);
        }
        if let Some(used) = used {
            let reading = Reading {
                cpu_seconds: used.cpu_seconds,
                throttled_seconds: Some(used.throttled_seconds),
                memory: used.memory.map(|bytes| counter(bytes) / machine.memory),
            };
            seen.push(Seen::Event(Event::Used(self.job.clone(), reading)));
        }
        seen.extend(self.drift(before, in_force));
        let sample = whole.then(|| self.sample(in_force, progress.as_deref()));
        if let Some(progress) = progress
            && !self.told.as_ref().is_some_and(|told| Arc::ptr_eq(told, &progress))
        {
            // Both clocks are the machine's; one that was set meanwhile is not believed.
            let age = saturate(unix_seconds() - progress.now).clamp(0.0, LONGEST_AGE);
            let report = Report { age, ..Report::from(progress.as_ref()) };
            seen.push(Seen::Event(Event::Reported(self.job.clone(), report)));
            self.told = Some(progress);
        }
        (seen, sample)
    }

    /// Whether the job has reported, or is not waited for any longer. Until its first report it reads its
    /// data and builds its model: a policy that judged it by then would judge a newcomer by chance, as
    /// it was asked just before that report or just after.
    fn has_begun(&mut self, progress: &Progress, now: Moment) -> bool {
        let answered_at = *self.answered_at.get_or_insert(now);
        progress.state != State::Starting || now.seconds_since(answered_at) >= GRACE
    }

    fn heard(&self) -> Heard {
        self.feed.as_ref().map(Feed::heard).unwrap_or_default()
    }

    /// Says what is wrong with the endpoint, once; a container that is new is given time.
    fn note(&mut self, heard: &Heard, now: Moment) {
        let first_look = *self.first_look.get_or_insert(now);
        if heard.trouble == self.trouble && (self.warned || heard.trouble.is_none()) {
            return;
        }
        let new = heard.trouble != self.trouble;
        self.trouble.clone_from(&heard.trouble);
        let Some(trouble) = &heard.trouble else {
            if std::mem::take(&mut self.warned) {
                info!(job = %self.job, "its endpoint answers");
            }
            return;
        };
        let managed = self.managed().is_some();
        let ripe = managed || now.seconds_since(first_look) >= GRACE || !trouble.may_pass;
        if ripe && (new || !self.warned) {
            let what = if managed { "keeps its limit for now" } else { "is left alone" };
            warn!("container {} {what}: {}", self.container.name, trouble.text);
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
            min: self.labels.min_cpus.map(share),
            max: self.labels.max_cpus.map(share),
            weight: self.labels.weight,
            max_slowdown: self.labels.max_slowdown,
            may_terminate: self.labels.terminate,
            work: self.labels.work,
            direction: self.labels.direction,
            targets: self.labels.targets,
        }
    }

    /// The limit that the kernel has, or else the engine's word for it.
    pub(super) fn in_force(&self, machine: &Machine) -> Share {
        self.share(self.use_of.quota(), machine)
    }

    /// The same as of the last look, unless it was written to since: reading it anew for everyone
    /// whenever something is shown would cost more than all else that is shown.
    pub(super) fn last_in_force(&self, machine: &Machine) -> Share {
        let found = self.found.filter(|(_, written)| *written == self.written);
        found.map_or_else(|| self.in_force(machine), |(share, _)| share)
    }

    fn share(&self, quota: Option<Quota>, machine: &Machine) -> Share {
        let engines = || self.container.host_config.share(machine.cpus);
        quota.map_or_else(engines, |quota| quota.share(machine.cpus))
    }

    /// Whether a limit that was written is another now, or, where none is ours, than it was `before`.
    fn drift(&self, before: Option<(Share, Option<Share>)>, found: Share) -> Option<Seen> {
        let is_off = |from: Share| (from.get() - found.get()).abs() > OFF;
        let job = self.job.clone();
        match (self.written, before) {
            (Some(written), _) => (self.use_of.is_kernel() && is_off(written))
                .then(|| Seen::Drifted { job, container: self.container.id.clone() }),
            (None, Some((before, None))) if is_off(before) => Some(Seen::Limited { job, found }),
            (None, _) => None,
        }
    }

    fn sample(&self, in_force: Share, progress: Option<&Progress>) -> SampleJob {
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
