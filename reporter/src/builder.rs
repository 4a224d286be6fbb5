//! Describes a job and starts its reporter.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use paceline_wire::{Direction, Progress};

use crate::address;
use crate::bell::Bell;
use crate::endpoint::{ServerThread, listen};
use crate::extension::Extension;
use crate::handle::Reporter;
use crate::job::Job;
use crate::say::say_as;
use crate::settings::{IfTaken, Settings, Shown, environment, refused};
use crate::start_error::StartError;

/// Describes a job; [`Builder::start`] starts its reporter.
///
/// An invalid value is kept until then and becomes a [`StartError`], so that a chain of calls fails
/// in one place.
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

    /// The job's name, in place of the one that the description began with or that the environment
    /// gives.
    pub fn job(mut self, name: impl Into<String>) -> Self {
        self.settings.job = name.into();
        self
    }

    /// The name of the loss, such as `cross entropy`. The default is `loss`.
    pub fn loss_name(mut self, name: impl Into<String>) -> Self {
        self.settings.loss_name = name.into();
        self
    }

    /// Whether smaller or larger is better. The default is [`Direction::Minimize`].
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

    /// The target for the duration of a batch, in seconds.
    pub fn batch_latency(mut self, seconds: f64) -> Self {
        self.settings.targets.batch_latency = Some(seconds);
        self
    }

    /// The most steps that the job takes. It is published before the first step.
    pub fn total_steps(mut self, steps: u64) -> Self {
        self.settings.total_steps = Some(steps);
        self
    }

    /// The number of steps that the job expects to take, at least 1. Set it if the job may stop before
    /// [`Builder::total_steps`]: by early stopping, or at its objective.
    ///
    /// The published value is never above `total_steps`, whichever is set first.
    pub fn expected_steps(mut self, steps: u64) -> Self {
        self.settings.expected_steps = Some(steps);
        self
    }

    /// The steps made by the process that this one resumes: counting continues from there.
    pub fn first_step(mut self, steps: u64) -> Self {
        self.settings.first_step = steps;
        self
    }

    /// Continues from the last progress of an earlier process: steps, epoch, counts, sums, reached
    /// targets and, unless they are set here, the totals of steps. Percentiles start again, and
    /// `instance` is new.
    pub fn resume(mut self, progress: Progress) -> Self {
        self.settings.resumed = Some(Box::new(progress));
        self
    }

    /// Reports on behalf of a job. `source` is the name of the measuring program in the progress;
    /// `extension` adds to the endpoint. The job's own loop cannot be asked for checkpoints then, so each
    /// request fails at once.
    pub fn on_behalf(mut self, source: impl Into<String>, extension: Arc<dyn Extension>) -> Self {
        self.settings.source = Some(source.into());
        self.settings.extension = Some(extension);
        self
    }

    /// The name of the training data.
    pub fn dataset(mut self, name: impl Into<String>) -> Self {
        self.settings.dataset = Some(name.into());
        self
    }

    /// The number of reports whose mean is the published loss and is compared with the targets: from 1
    /// to 1000. The default is 5.
    pub fn window(mut self, reports: u32) -> Self {
        self.settings.window = reports;
        self
    }

    /// The address to listen on: `host:port`, with 0 for any free port, or `unix:/path.sock`. The
    /// default is port 7223 of 127.0.0.1 or, for a process with a local rank above 0, port 7230 plus
    /// that rank.
    ///
    /// All processes of a job on one machine get the same setting. Therefore one with a local rank
    /// above 0 takes port 7230 plus its rank in place of the given port; a Unix socket or port 0 it
    /// takes as given.
    ///
    /// If a given address is taken, [`Builder::start`] returns [`StartError::Taken`], so that no reader
    /// takes another program for this job. If the default port is taken, the first free one of 7230 to
    /// 7299 is used and printed on standard error.
    pub fn listen(mut self, address: &str) -> Self {
        match address.parse() {
            Ok(address) => self.settings.listen = Some(address),
            Err(_) => self.keep(refused("listen", address, address::ALLOWED)),
        }
        self
    }

    /// Ignores that a given address is taken: the first free port of 7230 to 7299 is used in its place,
    /// and printed on standard error. [`Reporter::local_addr`] returns it.
    pub fn ignore_taken_address(mut self) -> Self {
        self.settings.if_taken = IfTaken::Move;
        self
    }

    /// Does not print the address of the page at the start.
    pub fn hide_address(mut self) -> Self {
        self.settings.address_shown = Shown::No;
        self
    }

    /// Makes [`Reporter::should_stop`] true once the objective has been reached.
    pub fn stop_at_objective(mut self) -> Self {
        self.settings.stop_at_objective = true;
        self
    }

    /// Makes [`Reporter::should_stop`] true once SIGTERM has been received.
    ///
    /// SIGTERM then no longer ends the process by itself: the loop must check.
    #[cfg(feature = "sigterm")]
    pub fn stop_on_sigterm(mut self) -> Self {
        self.settings.stop_on_sigterm = true;
        self
    }

    /// A file with the progress, at most a second old, and with the last one after the end. It is
    /// replaced atomically, so a reader never sees a part.
    pub fn status_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.status_file = Some(path.into());
        self
    }

    /// The longest time that dropping the last handle waits until the endpoint's thread has written the last
    /// progress. The default is 0.2 s, which a busy machine may exceed; a program that only reports may wait longer.
    pub fn end_timeout(mut self, longest: Duration) -> Self {
        self.settings.end_timeout = longest;
        self
    }

    /// A file for Kubernetes' termination message, such as `/dev/termination-log`: the progress in
    /// at most 4096 bytes.
    pub fn termination_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.termination_log = Some(path.into());
        self
    }

    /// A folder for TensorBoard event files with the losses and the pace at their steps, some seconds old
    /// at most. Each start has a new file there, and a rank above 0 a folder below it. The reporter's own
    /// thread writes; a disk that takes nothing holds up no report.
    #[cfg(feature = "tensorboard")]
    pub fn tensorboard(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.tensorboard = Some(folder.into());
        self
    }

    /// Reads `PACELINE_LISTEN`, `PACELINE_JOB`, `PACELINE_ACCEPTABLE`, `PACELINE_OBJECTIVE`,
    /// `PACELINE_BATCH_LATENCY`, `PACELINE_EXPECTED_STEPS`, `PACELINE_STATUS_FILE`,
    /// `PACELINE_TERMINATION_LOG`, `PACELINE_HIDE_ADDRESS` and `PACELINE_DISABLED`, with the feature
    /// `tensorboard` also `PACELINE_TENSORBOARD`, and the rank that torchrun, Slurm or Open MPI gave the
    /// process.
    ///
    /// They override values set before this call, so that the user who runs the job decides.
    /// `PACELINE_DISABLED=1` makes [`Builder::start`] return [`Reporter::disabled`].
    pub fn from_env(mut self) -> Self {
        if let Err(error) = environment::apply(&mut self.settings, |name| std::env::var_os(name)) {
            self.keep(error);
        }
        self
    }

    /// Binds the address, then starts the thread that serves it. The first process of a job on a machine
    /// prints the address of its page on standard error, unless [`Builder::hide_address`] is set.
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
        let bound = listen::bind(&self.settings)?;
        let page = bound.1.page_url().filter(|_| is_shown(&self.settings));
        let (bell, receiver) = Bell::new().map_err(StartError::Thread)?;
        let job = Arc::new(Job::new(self.settings, bell));
        let thread = ServerThread::start(bound, receiver, Arc::clone(&job))?;
        if let Some(page) = page {
            say_as(job.source(), format_args!("loss and progress: {page}"));
        }
        Ok(Reporter::new(job, thread))
    }

    /// Keeps the first error for [`Builder::start`].
    fn keep(&mut self, error: StartError) {
        self.error.get_or_insert(error);
    }
}

/// Whether to print the address. Further ranks stay silent: a job may have many.
fn is_shown(settings: &Settings) -> bool {
    let is_further = settings.rank.is_some_and(|rank| rank.local.unwrap_or(rank.global) > 0);
    settings.address_shown == Shown::Yes && !is_further
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
            "invalid objective 120: expected at most the acceptable loss 110, since a smaller loss is \
                         better",
        );
        let accuracy = vae().direction(Direction::Maximize).acceptable(0.9).objective(0.8);
        assert!(
            refusal(accuracy)
                .ends_with("at least the acceptable loss 0.9, since a larger loss is better")
        );
    }

    #[test]
    fn equal_targets_are_fine() {
        vae().acceptable(1.0).objective(1.0).listen("127.0.0.1:0").start().unwrap();
    }

    #[test]
    fn invalid_value_is_refused_with_the_allowed_range() {
        assert_eq!(
            refusal(vae().objective(f64::NAN)),
            "invalid objective \"NaN\": expected a finite number"
        );
        assert!(refusal(vae().acceptable(f64::INFINITY)).starts_with("invalid acceptable \"inf\""));
        assert!(refusal(vae().batch_latency(-1.0)).starts_with("invalid batch_latency \"-1\""));
        assert!(refusal(vae().window(0)).starts_with("invalid window \"0\""));
        assert_eq!(
            refusal(vae().expected_steps(0)),
            "invalid expected_steps \"0\": expected a whole number from 1 on"
        );
        assert!(refusal(vae().listen("nowhere")).starts_with("invalid listen \"nowhere\""));
        assert!(refusal(Builder::new(" ".to_owned())).starts_with("invalid job \" \""));
    }

    #[test]
    fn given_address_that_is_taken_is_an_error_unless_ignored() {
        let first = vae().listen("127.0.0.1:0").start().unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = vae().listen(&address).start().unwrap_err();
        assert!(matches!(error, StartError::Taken { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on {address}: the address is taken; end the process that holds it, or \
                 choose another address"
            )
        );
        let other = vae().listen(&address).ignore_taken_address().start().unwrap();
        assert_ne!(other.local_addr(), first.local_addr());
    }

    #[test]
    fn later_name_of_the_job_replaces_the_first() {
        let reporter = vae().job("mnist").listen("127.0.0.1:0").start().unwrap();
        assert_eq!(reporter.progress().unwrap().job, "mnist");
    }

    #[test]
    fn an_address_that_cannot_be_bound_is_named_and_the_cause_kept() {
        let error = vae().listen("unix:/no/such/folder/job.sock").start().unwrap_err();
        assert_eq!(error.to_string(), "cannot listen on unix:/no/such/folder/job.sock");
        assert!(std::error::Error::source(&error).is_some());
    }
}
