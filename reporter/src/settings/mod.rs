//! The settings of a reporter, and their validation.

pub(crate) mod environment;
mod rank;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use paceline_wire::{Direction, Progress, Rank, Targets};

use crate::address::Address;
use crate::extension::Extension;
use crate::start_error::StartError;

/// The default number of reports in the published mean.
pub(crate) const DEFAULT_WINDOW: u32 = 5;
/// The default of [`Settings::end_timeout`]. The thread normally ends in well under a millisecond.
pub(crate) const END_TIMEOUT: Duration = Duration::from_millis(200);
/// The allowed values of [`Settings::expected_steps`].
pub(crate) const EXPECTED_STEPS: &str = "a whole number from 1 on";
/// The largest window. With targets, every report computes its mean, so it must stay short.
const MAX_WINDOW: u32 = 1_000;

/// What to do if a given address is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfTaken {
    /// Return an error.
    Fail,
    /// Take another port.
    Move,
}

/// Whether something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// The settings of a reporter.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) job: String,
    pub(crate) loss_name: String,
    pub(crate) direction: Direction,
    pub(crate) targets: Targets,
    pub(crate) total_steps: Option<u64>,
    pub(crate) expected_steps: Option<u64>,
    pub(crate) dataset: Option<String>,
    pub(crate) window: u32,
    pub(crate) listen: Option<Address>,
    /// What to do if that address is taken.
    pub(crate) if_taken: IfTaken,
    /// Steps made before this process.
    pub(crate) first_step: u64,
    pub(crate) stop_at_objective: bool,
    #[cfg(feature = "sigterm")]
    pub(crate) stop_on_sigterm: bool,
    pub(crate) status_file: Option<PathBuf>,
    pub(crate) termination_log: Option<PathBuf>,
    /// The folder of event files.
    #[cfg(feature = "tensorboard")]
    pub(crate) tensorboard: Option<PathBuf>,
    pub(crate) rank: Option<Rank>,
    /// The measuring program, if it is not this crate alone.
    pub(crate) source: Option<String>,
    pub(crate) extension: Option<Arc<dyn Extension>>,
    /// The last progress of an earlier process.
    pub(crate) resumed: Option<Box<Progress>>,
    pub(crate) disabled: bool,
    /// Whether the address of the page is printed at the start.
    pub(crate) address_shown: Shown,
    /// The longest time that the job's exit waits for the thread, which writes the last progress.
    pub(crate) end_timeout: Duration,
}

impl Settings {
    /// The default settings of a job of this name.
    pub(crate) fn new(job: String) -> Self {
        Self {
            job,
            loss_name: "loss".to_owned(),
            direction: Direction::default(),
            targets: Targets::default(),
            total_steps: None,
            expected_steps: None,
            dataset: None,
            window: DEFAULT_WINDOW,
            listen: None,
            if_taken: IfTaken::Fail,
            first_step: 0,
            stop_at_objective: false,
            #[cfg(feature = "sigterm")]
            stop_on_sigterm: false,
            status_file: None,
            termination_log: None,
            #[cfg(feature = "tensorboard")]
            tensorboard: None,
            rank: None,
            source: None,
            extension: None,
            resumed: None,
            disabled: false,
            address_shown: Shown::Yes,
            end_timeout: END_TIMEOUT,
        }
    }

    /// Forgets what an earlier process has reached, unless it was the same target.
    pub(crate) fn forget_other_targets(&mut self) {
        let Some(before) = self.resumed.as_deref_mut() else { return };
        let (direction, targets) = (before.eval.direction, before.targets);
        if direction != self.direction {
            before.checkpoint.kept = None;
        }
        if (direction, targets.acceptable) != (self.direction, self.targets.acceptable) {
            before.reached.acceptable_at = None;
        }
        if (direction, targets.objective) != (self.direction, self.targets.objective) {
            before.reached.objective_at = None;
        }
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let Targets { acceptable, objective, batch_latency } = self.targets;
        if self.job.trim().is_empty() {
            return Err(refused("job", &self.job, "a name"));
        }
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(refused("window", &self.window, "from 1 to 1000"));
        }
        if self.expected_steps == Some(0) {
            return Err(refused("expected_steps", &0, EXPECTED_STEPS));
        }
        for (setting, target) in [("acceptable", acceptable), ("objective", objective)] {
            if let Some(target) = target.filter(|target| !target.is_finite()) {
                return Err(refused(setting, &target, "a finite number"));
            }
        }
        if let Some(target) = batch_latency.filter(|target| !is_latency(*target)) {
            return Err(refused("batch_latency", &target, "a finite number of seconds above 0"));
        }
        if let (Some(acceptable), Some(objective)) = (acceptable, objective) {
            if !self.direction.reached(objective, acceptable) {
                return Err(StartError::Targets {
                    acceptable,
                    objective,
                    direction: self.direction,
                });
            }
        }
        Ok(())
    }
}

/// Whether a batch latency is valid.
pub(crate) fn is_latency(seconds: f64) -> bool {
    seconds.is_finite() && seconds > 0.0
}

/// The error for an invalid value.
pub(crate) fn refused(
    setting: &'static str,
    value: &(impl ToString + ?Sized),
    allowed: &'static str,
) -> StartError {
    StartError::Setting { setting, value: value.to_string(), allowed }
}
