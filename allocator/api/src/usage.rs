//! Errors of a user, and the exit code of a run that was interrupted.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use crate::signals::Ending;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// A request of the user that cannot be carried out. `paceline` exits with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);

impl BadUsage {
    /// The file of a setting cannot be used.
    pub fn file(setting: &str, path: &Path, why: impl Display) -> Self {
        Self(format!("{setting} {}: {why}", path.display()))
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Interrupted => Self::from(INTERRUPTED),
            Ending::Terminated => Self::SUCCESS,
        }
    }
}

/// An error and its causes, joined into one line.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    text.replace('\n', " ")
}
