//! Describing a job and starting its reporter.

use std::path::PathBuf;
use std::sync::Arc;

use paceline_wire::{Direction, Progress};

use crate::bell::Bell;
use crate::endpoint::{ServerThread, address, listen};
use crate::extension::Extension;
use crate::handle::Reporter;
use crate::job::Job;
use crate::settings::{Settings, environment, refused};
use crate::start_error::StartError;

/// Describes a job; [`Builder::start`] starts its reporter.
///
/// A value that cannot be is kept until then and becomes [`StartError`]: a chain has one place
/// where it fails.
#[derive(Debug)]
#[must_use = "nothing is published before `start`"]
pub struct Builder {
    settings: Settings,
    error: Option<StartError>,
}

impl Builder {
    pub(crate) fn new(job: String) -> Self {
        Self { settings: Settings::new(job), error: None }
    }

    /// What the loss is called, such as `cross entropy`. Otherwise `loss`.
    pub fn loss_name(mut self, name: impl Into<String>) -> Self {
        self.settings.loss_name = name.into();
        self
    }

    /// Which way the loss is meant to go. Otherwise [`Direction::Minimize`].
    pub fn direction(mut self, direction: Direction) -> Self {
        self.settings.direction = direction;
        self
    }

    /// The loss from which on the model is usable.
    pub fn acceptable(mut self, loss: f64) -> Self {
        self.settings.targets.acceptable = Some(loss);
        self
    }

    /// The loss at which the job is done.
    pub fn objective(mut self, loss: f64) -> Self {
        self.settings.targets.objective = Some(loss);
        self
    }

    /// The time that a batch is meant to take, in seconds.
    pub fn batch_latency(mut self, seconds: f64) -> Self {
        self.settings.targets.batch_latency = Some(seconds);
        self
    }

    /// How many steps the job takes at most. It is published before the first step.
    pub fn total_steps(mut self, steps: u64) -> Self {
        self.settings.total_steps = Some(steps);
        self
    }

    /// How many steps the job expects to take, from 1 on, where it may stop before
    /// [`Builder::total_steps`]: by early stopping, or at its objective.
    ///
    /// No more than `total_steps` are published, whichever is set first.
    pub fn expected_steps(mut self, steps: u64) -> Self {
        self.settings.expected_steps = Some(steps);
        self
    }

    /// How many steps were made before, by the process that this one resumes: steps count on from
    /// there.
    pub fn first_step(mut self, steps: u64) -> Self {
        self.settings.first_step = steps;
        self
    }

    /// Goes on where the progress of an earlier process ended: steps, epoch, counts, sums, the
    /// targets that were reached and, unless they are set here, the totals of steps. Percentiles
    /// start again, and `instance` is new.
    pub fn resume(mut self, progress: Progress) -> Self {
        self.settings.resumed = Some(Box::new(progress));
        self
    }

    /// Reports on behalf of a job: who measures, as `source` is to name it, and what it adds to the
    /// endpoint.
    pub fn on_behalf(mut self, source: impl Into<String>, extension: Arc<dyn Extension>) -> Self {
        self.settings.source = Some(source.into());
        self.settings.extension = Some(extension);
        self
    }

    /// What the training data is called.
    pub fn dataset(mut self, name: impl Into<String>) -> Self {
        self.settings.dataset = Some(name.into());
        self
    }

    /// How many reports the published loss is the mean of, and must meet a target together: from 1
    /// to 1000, otherwise 5.
    pub fn window(mut self, reports: u32) -> Self {
        self.settings.window = reports;
        self
    }

    /// Where to listen: `host:port`, with 0 for any free port, or `unix:/path.sock`. Otherwise port
    /// 7223 of 127.0.0.1 or, for a process with a local rank above 0, port 7230 plus that rank.
    ///
    /// If the port is taken, it is the first free one of 7230 to 7299 of the same host, and a line
    /// on standard error says so: no job fails for want of a port.
    pub fn listen(mut self, address: &str) -> Self {
        match address.parse() {
            Ok(address) => self.settings.listen = Some(address),
            Err(_) => self.keep(refused("listen", address, address::ALLOWED)),
        }
        self
    }

    /// Lets [`Reporter::should_stop`] turn true once the objective has been reached.
    pub fn stop_at_objective(mut self) -> Self {
        self.settings.stop_at_objective = true;
        self
    }

    /// Lets [`Reporter::should_stop`] turn true once SIGTERM has come.
    ///
    /// From then on SIGTERM does not end the process by itself: the loop must ask.
    #[cfg(feature = "sigterm")]
    pub fn stop_on_sigterm(mut self) -> Self {
        self.settings.stop_on_sigterm = true;
        self
    }

    /// A file that holds the progress of a second ago at the most, and the last one after the end.
    /// It is replaced as a whole, so a reader never sees a half.
    pub fn status_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.status_file = Some(path.into());
        self
    }

    /// A file that Kubernetes takes a container's last words from, such as `/dev/termination-log`:
    /// the progress in at most 4096 bytes.
    pub fn termination_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.termination_log = Some(path.into());
        self
    }

    /// Reads `PACELINE_LISTEN`, `PACELINE_JOB`, `PACELINE_ACCEPTABLE`, `PACELINE_OBJECTIVE`,
    /// `PACELINE_BATCH_LATENCY`, `PACELINE_EXPECTED_STEPS`, `PACELINE_STATUS_FILE`,
    /// `PACELINE_TERMINATION_LOG` and `PACELINE_DISABLED`, and the rank that torchrun, Slurm or Open
    /// MPI gave the process.
    ///
    /// They take precedence over what was set before this call: whoever runs the job has the last
    /// word. `PACELINE_DISABLED=1` makes [`Builder::start`] return [`Reporter::disabled`].
    pub fn from_env(mut self) -> Self {
        if let Err(error) = environment::apply(&mut self.settings, |name| std::env::var_os(name)) {
            self.keep(error);
        }
        self
    }

    /// Binds the address, then starts the thread that serves it.
    ///
    /// Once this has returned, no failure of the reporter reaches the job.
    pub fn start(self) -> Result<Reporter, StartError> {
        if self.settings.disabled {
            return Ok(Reporter::disabled());
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        self.settings.check()?;
        let local_rank = self.settings.rank.and_then(|rank| rank.local);
        let bound = listen::bind(self.settings.listen.as_ref(), local_rank)?;
        let (bell, hears) = Bell::new().map_err(StartError::Thread)?;
        let job = Arc::new(Job::new(self.settings, bell));
        let thread = ServerThread::start(bound, hears, Arc::clone(&job))?;
        Ok(Reporter::new(job, thread))
    }

    /// Keeps the first error for [`Builder::start`].
    fn keep(&mut self, error: StartError) {
        self.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(builder: Builder) -> String {
        builder.listen("127.0.0.1:0").start().unwrap_err().to_string()
    }

    fn vae() -> Builder {
        Builder::new("vae".to_owned())
    }

    #[test]
    fn targets_on_the_wrong_side_of_each_other_are_both_named() {
        assert_eq!(
            refusal(vae().acceptable(110.0).objective(120.0)),
            "the acceptable loss 110 lies beyond the objective 120, although the loss is to be \
             minimized",
        );
        let accuracy = vae().direction(Direction::Maximize).acceptable(0.9).objective(0.8);
        assert!(refusal(accuracy).ends_with("is to be maximized"));
    }

    #[test]
    fn equal_targets_are_fine() {
        vae().acceptable(1.0).objective(1.0).listen("127.0.0.1:0").start().unwrap();
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_what_is_allowed() {
        assert_eq!(
            refusal(vae().objective(f64::NAN)),
            "objective is \"NaN\", but must be a finite number"
        );
        assert!(refusal(vae().acceptable(f64::INFINITY)).starts_with("acceptable is \"inf\""));
        assert!(refusal(vae().batch_latency(-1.0)).starts_with("batch_latency is \"-1\""));
        assert!(refusal(vae().window(0)).starts_with("window is \"0\""));
        assert_eq!(
            refusal(vae().expected_steps(0)),
            "expected_steps is \"0\", but must be a whole number from 1 on"
        );
        assert!(refusal(vae().listen("nowhere")).starts_with("listen is \"nowhere\""));
        assert!(refusal(Builder::new(" ".to_owned())).starts_with("job is \" \""));
    }

    #[test]
    fn an_address_that_cannot_be_bound_is_named_and_the_cause_kept() {
        let error = vae().listen("unix:/no/such/folder/job.sock").start().unwrap_err();
        assert_eq!(error.to_string(), "cannot listen on unix:/no/such/folder/job.sock");
        assert!(std::error::Error::source(&error).is_some());
    }
}
