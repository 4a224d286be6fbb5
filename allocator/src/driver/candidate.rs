//! One opted-in container: watched until its endpoint answers, a managed job from then on.

use std::sync::Arc;

use bollard::Docker;
use paceline_policy::engine::Reading;
use paceline_policy::limiter::Setting;
use paceline_policy::signal::mean_between;
use paceline_policy::unit::counter;
use paceline_policy::{Event, JobId, JobSpec, Moment, Share};
use paceline_wire::Progress;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::labels::Labels;
use crate::observe::cgroup::{Cgroup, Used};
use crate::observe::container::Container;
use crate::observe::endpoint::{self, EndpointError, Way};
use crate::observe::node::Machine;
use crate::observe::stats::Stats;
use crate::samples::SampleJob;

/// A container that has just begun may take this long, in seconds, until its endpoint answers.
const GRACE: f64 = 15.0;
/// From then on it is asked this often, in seconds.
const RETRY: f64 = 5.0;

#[derive(Debug)]
pub(super) struct Candidate {
    container: Container,
    labels: Labels,
    job: JobId,
    began_in_this_run: bool,
    ways: Vec<Way>,
    use_of: Source,
    managed: bool,
    first_look: Option<Moment>,
    ask_at: Moment,
    /// What was last warned of: not said again until it changes.
    trouble: Option<Arc<str>>,
    /// What the last sample was taken from.
    mark: Mark,
}

/// Where the container's use of resources is read.
#[derive(Debug)]
enum Source {
    Files(Cgroup),
    /// The control group cannot be seen from here.
    Engine(Option<Stats>),
}

#[derive(Debug, Default)]
struct Mark {
    used: Option<(Moment, f64)>,
    /// Process, count and sum of its losses.
    losses: Option<(String, u64, f64)>,
}

/// What a look has shown.
#[derive(Debug)]
pub(super) enum Seen {
    /// The endpoint has answered for the first time: the container is a job.
    Appeared(Box<JobSpec>),
    /// News of a managed job.
    Event(Event),
}

impl Candidate {
    pub(super) fn new(
        machine: &Machine,
        container: Container,
        labels: Labels,
        job: JobId,
        began_in_this_run: bool,
    ) -> Self {
        let ways = endpoint::ways(&machine.proc, &container, &labels.endpoint);
        let cgroup = container.pid.map(|pid| Cgroup::of(&machine.proc, pid));
        let use_of = match cgroup {
            Some(Ok(cgroup)) => Source::Files(cgroup),
            Some(Err(error)) => {
                info!(%job, "its use is read from the engine's statistics: {error}");
                Source::Engine(None)
            }
            None => Source::Engine(None),
        };
        Self {
            container,
            labels,
            job,
            began_in_this_run,
            ways,
            use_of,
            managed: false,
            first_look: None,
            ask_at: Moment::default(),
            trouble: None,
            mark: Mark::default(),
        }
    }

    pub(super) fn started_at(&self) -> &str {
        &self.container.started_at
    }

    pub(super) fn job(&self) -> &JobId {
        &self.job
    }

    /// The job, once it is one.
    pub(super) fn managed(&self) -> Option<&JobId> {
        self.managed.then_some(&self.job)
    }

    /// Reads the endpoint and the use of resources.
    pub(super) async fn look(
        &mut self,
        docker: &Docker,
        machine: &Machine,
        clock: &Clock,
    ) -> (Vec<Seen>, Option<SampleJob>) {
        let now = clock.now();
        let first_look = *self.first_look.get_or_insert(now);
        let mut seen = Vec::new();
        let progress = self.ask(machine, now, first_look).await;
        if progress.is_some() && !self.managed {
            self.managed = true;
            seen.push(Seen::Appeared(Box::new(self.spec(machine))));
            if let Some(weight) = self.container.host_config.weight() {
                let setting = Setting::Weight(weight);
                seen.push(Seen::Event(Event::Applied(self.job.clone(), setting)));
            }
        }
        if !self.managed {
            return (seen, None);
        }
        // Read after the endpoint was: an answer may take its time.
        let now = clock.now();
        let used = self.used(docker);
        if let Some(used) = used {
            let reading = Reading {
                cpu_seconds: used.cpu_seconds,
                throttled_seconds: Some(used.throttled_seconds),
                memory: used.memory.map(|bytes| counter(bytes) / machine.memory),
            };
            seen.push(Seen::Event(Event::Used(self.job.clone(), reading)));
        }
        let sample = self.sample(machine, now, used, progress.as_ref());
        if let Some(progress) = progress {
            seen.push(Seen::Event(Event::Reported(self.job.clone(), Box::new(progress))));
        }
        (seen, Some(sample))
    }

    /// The endpoint's answer. A container that is new is given time; one that does not answer is
    /// named once, left alone, and asked again less often.
    async fn ask(
        &mut self,
        machine: &Machine,
        now: Moment,
        first_look: Moment,
    ) -> Option<Progress> {
        if now < self.ask_at {
            return None;
        }
        match endpoint::read(&machine.proc, &self.ways).await {
            Ok((way, progress)) => {
                // The way that works is the first to be tried from now on.
                self.ways.swap(0, way);
                self.ask_at = Moment::default();
                if self.trouble.take().is_some() {
                    info!(job = %self.job, "its endpoint answers");
                }
                Some(progress)
            }
            Err(error) => {
                if self.managed || now.seconds_since(first_look) >= GRACE || !error.may_pass() {
                    self.ask_at = now.after(RETRY);
                    self.warn(error);
                }
                None
            }
        }
    }

    fn warn(&mut self, error: EndpointError) {
        let trouble: Arc<str> = format!("{:#}", anyhow::Error::from(error)).into();
        if self.trouble.as_ref() != Some(&trouble) {
            let what = if self.managed { "keeps its limit for now" } else { "is left alone" };
            warn!("container {} {what}: {trouble}", self.container.name);
            self.trouble = Some(trouble);
        }
    }

    fn spec(&self, machine: &Machine) -> JobSpec {
        let share = |cpus: f64| Share::nearest(cpus / machine.cpus);
        JobSpec {
            id: self.job.clone(),
            fresh: self.began_in_this_run,
            in_force: self.in_force(machine),
            min: self.labels.min_cpus.map(share),
            max: self.labels.max_cpus.map(share),
            weight: self.labels.weight,
            max_slowdown: self.labels.max_slowdown,
            may_terminate: self.labels.terminate,
            direction: self.labels.direction,
            targets: self.labels.targets,
        }
    }

    /// The limit that the kernel has, or else the engine's word for it.
    fn in_force(&self, machine: &Machine) -> Share {
        if let Source::Files(cgroup) = &self.use_of
            && let Ok(quota) = cgroup.quota()
        {
            return quota.share(machine.cpus);
        }
        self.container.host_config.share(machine.cpus)
    }

    fn used(&mut self, docker: &Docker) -> Option<Used> {
        match &mut self.use_of {
            Source::Files(cgroup) => cgroup.used().ok(),
            Source::Engine(stats) => stats
                .get_or_insert_with(|| Stats::follow(docker.clone(), self.container.id.clone()))
                .latest(),
        }
    }

    fn sample(
        &mut self,
        machine: &Machine,
        now: Moment,
        used: Option<Used>,
        progress: Option<&Progress>,
    ) -> SampleJob {
        let before = self.mark.used;
        let cpu = used.and_then(|used| {
            self.mark.used = Some((now, used.cpu_seconds));
            let (from, seconds) = before?;
            let passed = now.seconds_since(from);
            (passed > 0.0).then(|| (used.cpu_seconds - seconds) / passed / machine.cpus)
        });
        let asked = progress.map(|progress| progress.targets).unwrap_or_default();
        let own = self.labels.targets;
        SampleJob {
            id: self.job.to_string(),
            loss: progress.and_then(|progress| self.mark.loss(progress)),
            steps: progress.and_then(|progress| progress.step),
            cpu,
            limit: Some(self.in_force(machine).get()),
            target_acceptable: own.acceptable.or(asked.acceptable),
            target_objective: own.objective.or(asked.objective),
        }
    }
}

impl Mark {
    /// The mean of the losses that came since this was last asked for.
    fn loss(&mut self, progress: &Progress) -> Option<f64> {
        let (count, sum) = (progress.eval.count, progress.eval.sum);
        let before = self.losses.replace((progress.instance.clone(), count, sum));
        let from = match before {
            Some((instance, count, sum)) if instance == progress.instance => (count, sum),
            _ => (0, 0.0),
        };
        mean_between(from, (count, sum))
    }
}
