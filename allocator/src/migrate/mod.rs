//! Moving a job from one node to another.
//!
//! A job is moved by a checkpoint of its own making, in two phases: its successor is made on the
//! target and has to report from there, going on from that checkpoint, before the container at the
//! source is given up. [`procedure`] is the order of things and why it is safe, and is pure; a
//! [`Carrier`] does what is to be done, for containers of one engine in [`containers`]; `carry` has
//! the one do what the other says. Each step stands in a [`journal`] on the disk before it is begun,
//! so that a move that was cut short is completed or undone (`recover`).

mod carry;
pub mod containers;
pub mod journal;
pub mod movable;
pub(crate) mod mover;
pub mod moves;
pub mod procedure;
mod recover;
mod settings;

use std::error::Error;

use paceline_policy::decision::Cause;
use serde::{Deserialize, Serialize};

use crate::observe::container::HostCpu;
use crate::observe::endpoint::EndpointError;
use procedure::{Procedure, Step};

pub use carry::{Ended, News, Tell, Trip, carry};
pub use recover::recover;
pub use settings::{Means, SettingError, Settings};

/// One move, as the journal has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The job's name.
    pub job: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it goes to.
    pub to: String,
    /// What the engine is told to have it run there: a set of CPUs, or a machine's id.
    pub place: String,
    /// What it is moved for.
    pub reason: Cause,
    /// The container at the source, by its full id.
    pub source: String,
    /// Its name, which its successor has in the end.
    pub name: String,
    /// The CPU limits that it had before any were written to it: those that the successor is made
    /// with, which is the first step, so that whoever goes on by the journal does without them.
    #[serde(skip)]
    pub limits: HostCpu,
    /// The step of the checkpoint, once it is known.
    pub saved: Option<u64>,
    /// How far it has come.
    pub course: Procedure,
}

impl Move {
    /// The name of the container on the target until the end.
    pub fn successor(&self) -> String {
        format!("{}-to-{}", self.name, self.to)
    }
}

/// What has come of a step, beside that it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Nothing that anybody must know.
    None,
    /// The container on the target has this id.
    Made(String),
    /// The checkpoint is of this step, where the job counts its steps.
    Saved(Option<u64>),
    /// The source is not given up after all, for this reason: what was proved holds no more.
    Refuted(String),
}

/// How far a job has come on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// It has failed.
    pub failed: bool,
    /// How many losses it has reported from there.
    pub losses: u64,
    /// Its step, where it counts them.
    pub step: Option<u64>,
}

impl Standing {
    /// Whether it has reported, going on from where it was saved.
    pub fn goes_on_from(self, saved: Option<u64>) -> Result<bool, CarryError> {
        if self.failed {
            return Err(CarryError::Refused("the job has failed on the target".to_owned()));
        }
        if self.losses == 0 {
            return Ok(false);
        }
        match (self.step, saved) {
            (Some(step), Some(saved)) if step < saved => Err(CarryError::Refused(format!(
                "on the target the job is at step {step}, not past {saved}: it does not go on from \
                 its checkpoint"
            ))),
            _ => Ok(true),
        }
    }
}

/// What does the steps of a move. Each may be asked for again, whether it was done before or not.
pub trait Carrier: Send + Sync {
    /// Does one step of this move; on return it is done.
    fn carry_out(
        &self,
        step: Step,
        plan: &Move,
    ) -> impl Future<Output = Result<Fact, CarryError>> + Send;
}

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// It cannot be done, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The engine does not do this.
    #[error("the engine does not {0}")]
    Engine(&'static str, #[source] Box<dyn Error + Send + Sync>),
    /// The job does not say what it must.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}
