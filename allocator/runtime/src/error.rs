//! Errors of a container engine.

use std::error::Error;

/// An error of a container engine, with the engine's own message.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The object does not exist.
    #[error(transparent)]
    Missing(Cause),
    /// The name fits several objects, for example the beginning of several ids.
    #[error(transparent)]
    Ambiguous(Cause),
    /// The engine failed, or cannot be reached.
    #[error(transparent)]
    Failed(Cause),
}

/// The error of the engine's client.
pub type Cause = Box<dyn Error + Send + Sync>;

impl RuntimeError {
    /// Whether the object does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}
