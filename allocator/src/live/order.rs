//! What the allocator can be told while it runs (contract §5).

use paceline_policy::Share;
pub use paceline_policy::limiter::Guard;
use paceline_wire::Targets;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// One thing to be done. `name` is a job's name, a container's name, or an id or its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Opt a running container in, or take a released or pinned job back under the policy.
    Manage {
        /// Which.
        name: String,
    },
    /// Leave a job alone from now on: its limits are put back.
    Release {
        /// Which.
        name: String,
    },
    /// Hold a job's limit at this share, whatever the policy says.
    Pin {
        /// Which.
        name: String,
        /// Of the node.
        share: Share,
    },
    /// Set targets over those of labels and endpoint; what is not given stays.
    Set {
        /// Which.
        name: String,
        /// The targets.
        targets: Targets,
    },
    /// Switch a guard of the limiter on or off for one job.
    Guard {
        /// Which.
        name: String,
        /// The guard.
        guard: Guard,
        /// Whether it is on.
        on: bool,
    },
    /// How much is logged: `LEVEL` or `MODULE=LEVEL`, separated by commas.
    LogLevel {
        /// The filter.
        filter: String,
    },
}

/// Who gave an order, for the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The user's id.
    pub uid: u32,
    /// The process.
    pub pid: Option<u32>,
}

/// An order on its way to the driver.
#[derive(Debug)]
pub struct Order {
    /// What is to be done.
    pub command: Command,
    /// By whom.
    pub who: Who,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Answer>,
}

/// What was done, in a sentence; or why not.
pub type Answer = Result<String, Refusal>;

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refusal", content = "detail", rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no such job or container.
    #[error("there is no running container or job {0:?}")]
    Unknown(String),
    /// More than one goes by that name.
    #[error("{0:?} is the beginning of several containers' ids")]
    Ambiguous(String),
    /// It cannot be done, for this reason.
    #[error("{0}")]
    Impossible(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// Too many orders wait.
    #[error("too many orders wait already")]
    Busy,
    /// The allocator is putting limits back.
    #[error("the allocator is ending")]
    Ending,
}
