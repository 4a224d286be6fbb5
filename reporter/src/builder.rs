//! Describing a job and starting its reporter.

use std::sync::Arc;

use paceline_wire::Direction;

use crate::address;
use crate::environment;
use crate::handle::Reporter;
use crate::job::Job;
use crate::listen;
use crate::settings::{Settings, refused};
use crate::start_error::StartError;
use crate::thread::ServerThread;

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

    /// How many steps the job means to take.
    pub fn total_steps(mut self, steps: u64) -> Self {
        self.settings.total_steps = Some(steps);
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
    /// 7223 of 127.0.0.1 or, if that is taken, the first free one of 7230 to 7299.
    pub fn listen(mut self, address: &str) -> Self {
        match address.parse() {
            Ok(address) => self.settings.listen = Some(address),
            Err(_) => self.keep(refused("listen", address, address::ALLOWED)),
        }
        self
    }

    /// Reads `PACELINE_LISTEN`, `PACELINE_JOB`, `PACELINE_ACCEPTABLE`, `PACELINE_OBJECTIVE`,
    /// `PACELINE_BATCH_LATENCY` and `PACELINE_DISABLED`.
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
        let (listener, address) = listen::bind(self.settings.listen.as_ref())?;
        let job = Arc::new(Job::new(self.settings));
        let thread = ServerThread::start(listener, address, Arc::clone(&job))?;
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
