//! Moves a job from one node to another.
//!
//! A job is moved by means of its own checkpoint. Its successor is created on the target, and must
//! report progress from that checkpoint before the container at the source is removed.
//!
//! The order of the steps, and why it is safe, is in [`procedure`], which is pure. A
//! [`MigrationBackend`] carries out the steps, for containers of one engine in [`containers`].
//! `execute` joins the two. Each step is recorded in a [`journal`] before it begins, so that an
//! interrupted move is completed or undone later (`recover`).
//!
//! The source is frozen before the target starts. It is removed only after the target has reported
//! from the checkpoint on. So two containers never train from one checkpoint, and one always exists.
//! Each step can be repeated.
//!
//! One move at a time goes to each node (`moves`). The controller of a machine or the manager of a
//! cluster starts them (`mover`). At its own end it gives up those that take too long: the journal has
//! what is left to do. The controller keeps the new container out of its inventory until it has
//! replaced the old one.

pub mod agent_actions;
pub mod containers;
mod execute;
pub mod journal;
pub mod movable;
pub mod mover;
pub mod moves;
pub mod procedure;
mod recover;
mod settings;

use std::error::Error;

use paceline_policy::decision::Cause;
use paceline_runtime::HostCpu;
use serde::{Deserialize, Serialize};

use crate::endpoint::EndpointError;
use procedure::{Procedure, Step};

pub use execute::{Ended, MigrationResult, News, NewsSender, execute};
pub use recover::recover;
pub use settings::{MigrationMethod, SettingError, Settings};

/// One move, as it is recorded in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The job's name.
    pub job: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it goes to.
    pub to: String,
    /// The place to run it: a set of CPUs, or a machine's id.
    pub place: String,
    /// Why it is moved.
    pub reason: Cause,
    /// The full id of the container at the source.
    pub source: String,
    /// The container's name, which its successor gets in the end.
    pub name: String,
    /// The original CPU limits of the container, with which the successor is created. They are not
    /// recorded, because only the first step needs them.
    #[serde(skip)]
    pub limits: HostCpu,
    /// The step of the checkpoint, once it is known.
    pub saved: Option<u64>,
    /// The progress of the move.
    #[serde(rename = "course")]
    pub procedure: Procedure,
}

impl Move {
    /// The temporary name of the container on the target.
    pub fn successor(&self) -> String {
        format!("{}-to-{}", self.name, self.to)
    }
}

/// What a successful step has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// Nothing.
    None,
    /// The id of the container on the target.
    Made(String),
    /// The step of the checkpoint, if the job counts its steps.
    Saved(Option<u64>),
    /// The proof is not valid any more, for this reason: the source was not removed.
    Refuted(String),
}

/// How far a job has come on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it has failed.
    pub failed: bool,
    /// How many losses it has reported from the target.
    pub losses: u64,
    /// Its step, if it counts its steps.
    pub step: Option<u64>,
}

impl Standing {
    /// Whether it has reported progress from the checkpoint at step `saved`. A failure, or a start
    /// from an earlier step, is an error.
    pub fn goes_on_from(self, saved: Option<u64>) -> Result<bool, StepError> {
        if self.failed {
            return Err(StepError::Refused("the job has failed on the target".to_owned()));
        }
        if self.losses == 0 {
            return Ok(false);
        }
        match (self.step, saved) {
            (Some(step), Some(saved)) if step < saved => Err(StepError::Refused(format!(
                "on the target the job is at step {step}, not past {saved}: it does not continue \
                 from its checkpoint"
            ))),
            _ => Ok(true),
        }
    }
}

/// Carries out the steps of a move. Each step may be repeated, whether it was done before or not.
pub trait MigrationBackend: Send + Sync {
    /// Carries out one step of a move; on success it is done.
    fn carry_out(
        &self,
        step: Step,
        plan: &Move,
    ) -> impl Future<Output = Result<StepOutcome, StepError>> + Send;
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The step is not possible, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The container engine failed to do this: a verb and its object.
    #[error("cannot {0}")]
    Engine(&'static str, #[source] Box<dyn Error + Send + Sync>),
    /// The job's endpoint failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}
