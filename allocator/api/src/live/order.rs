//! The orders that a running allocator takes (contract §5).

use paceline_policy::Share;
pub use paceline_policy::limiter::Guard;
use paceline_wire::Targets;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// One order. `name` is a job's name, a container's name, a container's id or its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Opt a running container in, or take a released or pinned job back under the policy.
    Manage {
        /// The job or container.
        name: String,
    },
    /// Stop managing a job: its limits are restored.
    Release {
        /// The job or container.
        name: String,
    },
    /// Hold a job's limit at this share, whatever the policy decides.
    Pin {
        /// The job or container.
        name: String,
        /// A fraction of the node.
        share: Share,
    },
    /// Override the targets of labels and endpoint; a target that is not given stays.
    Set {
        /// The job or container.
        name: String,
        /// The targets.
        targets: Targets,
    },
    /// Switch a guard of the limiter on or off for one job.
    Guard {
        /// The job or container.
        name: String,
        /// The guard.
        guard: Guard,
        /// Whether it is on.
        on: bool,
    },
    /// Change how much is logged: `LEVEL` or `MODULE=LEVEL`, separated by commas.
    LogLevel {
        /// The filter.
        filter: String,
    },
}

/// Who gave an order, for the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Who {
    /// The user's id.
    pub uid: u32,
    /// The process id.
    pub pid: Option<u32>,
}

/// An order on its way to the controller.
#[derive(Debug)]
pub struct Order {
    /// What is to be done.
    pub command: Command,
    /// Who gave the order.
    pub who: Who,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Answer>,
}

/// What was done, in a sentence, or why the order was refused.
pub type Answer = Result<String, Refusal>;

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "refusal", content = "detail", rename_all = "kebab-case")]
pub enum Refusal {
    /// No running job or container has that name.
    #[error(
        "unknown job {0:?}: expected a job that `paceline status` shows, or a running container"
    )]
    Unknown(String),
    /// The name fits more than one container: a sentence with their ids.
    #[error("{0}; give an id instead")]
    Ambiguous(String),
    /// The order cannot be carried out, for this reason.
    #[error("{0}")]
    Impossible(String),
    /// The order was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// Too many orders wait.
    #[error("the allocator is busy: too many orders are waiting; try again")]
    Busy,
    /// The allocator is restoring limits before its end.
    #[error("the allocator is shutting down")]
    Ending,
}
