use std::path::PathBuf;

use paceline_runtime::RuntimeError;

use super::originals::OriginalsError;

/// Why a limit could not be written or restored.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The container does not exist any more: nothing is left to do.
    #[error("container {0} is gone")]
    Gone(String),
    /// The engine failed.
    #[error("cannot change container {0}: the container engine failed")]
    Engine(String, #[source] RuntimeError),
    /// The engine did not answer in time.
    #[error(
        "cannot change container {name}: the container engine did not answer within {seconds} s"
    )]
    Silent {
        /// The container.
        name: String,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The original limits could not be recorded, so nothing was written; or could not be read.
    #[error("cannot record or read the original limits of container {0}")]
    Originals(String, #[source] OriginalsError),
    /// Only this container is concerned: it is not managed until a person acts.
    #[error("container {0} is left alone")]
    LeftAlone(String, #[source] OriginalsError),
    /// The engine does not know the container, which is not known to be gone.
    #[error(
        "cannot restore container {name}: the container engine does not know it; start the engine with \
         its data, or remove {} if the container is gone", .file.display()
    )]
    Absent {
        /// The container.
        name: String,
        /// The file with its original limits.
        file: PathBuf,
    },
    /// Every method of writing the limit failed.
    #[error("cannot change the limit of container {name}: {refused}")]
    Refused {
        /// The container.
        name: String,
        /// The methods that were tried, each with its error.
        refused: String,
    },
    /// Writes were accepted, but the kernel has another value.
    #[error("cannot verify the limit of container {name}: expected {wanted}, found {found}")]
    Unverified {
        /// The container.
        name: String,
        /// What was written.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// The container's limits were changed outside of Paceline, and that has precedence.
    #[error(
        "container {0} is not managed: its limits were changed outside Paceline; \
         run `paceline manage NAME` to manage it again"
    )]
    Yielded(String),
}

impl LimitError {
    pub(super) fn engine(name: String, error: RuntimeError) -> Self {
        if error.is_missing() { Self::Gone(name) } else { Self::Engine(name, error) }
    }

    /// Whether no other method of writing can succeed either.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Gone(_) | Self::Originals(..) | Self::LeftAlone(..) | Self::Yielded(_) => true,
            Self::Engine(..)
            | Self::Silent { .. }
            | Self::Absent { .. }
            | Self::Refused { .. }
            | Self::Unverified { .. } => false,
        }
    }

    /// Whether the container is not managed until a person acts.
    pub fn leaves_alone(&self) -> bool {
        matches!(self, Self::Yielded(_) | Self::LeftAlone(..))
    }
}

/// An error and its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
