use bollard::errors::Error as EngineError;

use super::originals::OriginalsError;
use crate::observe::container::is_missing;

/// Why a limit was not written or not put back.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The container is no more: nothing is left to do.
    #[error("container {0} is gone")]
    Gone(String),
    /// The engine failed.
    #[error("the engine failed on container {0}")]
    Engine(String, #[source] EngineError),
    /// The engine does not answer.
    #[error("the engine has not answered for {seconds} s on container {name}")]
    Silent {
        /// The container.
        name: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The original could not be kept, so nothing was written; or could not be read.
    #[error("the original limits of container {0} cannot be kept")]
    Originals(String, #[source] OriginalsError),
    /// Every way was refused.
    #[error("no way is left to change the limit of container {name}: {refused}")]
    Refused {
        /// The container.
        name: String,
        /// What was tried, and the answers.
        refused: String,
    },
    /// A write was accepted, twice, and the kernel has something else.
    #[error("container {name} was given {wanted}, and has {found}")]
    Unverified {
        /// The container.
        name: String,
        /// What was written.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// Somebody else has set the container's limits, and has precedence.
    #[error("container {0} is left alone: somebody else has set its limits")]
    Yielded(String),
}

impl LimitError {
    pub(super) fn engine(name: String, error: EngineError) -> Self {
        if is_missing(&error) { Self::Gone(name) } else { Self::Engine(name, error) }
    }

    /// Whether nothing was or will be written to this container at all, whichever way is tried.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Originals(..) | Self::Yielded(_))
    }
}

/// An error and its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
