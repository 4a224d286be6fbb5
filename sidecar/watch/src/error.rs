//! How a command ends.

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option or an address cannot be used.
    #[error("{0}")]
    Usage(String),
    /// A failure while running.
    #[error("{0}")]
    Running(String),
}

/// What ended a command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All is shown, the user quit, or SIGTERM or SIGHUP arrived.
    Done,
    /// The user pressed Ctrl-C, or SIGINT arrived.
    Interrupted,
}
