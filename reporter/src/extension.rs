//! What a program adds to the endpoint that reports on behalf of a job.

use std::fmt::Debug;

use paceline_wire::Sidecar;

/// A program that reports for a job whose code it is not part of, such as the sidecar.
///
/// All of it is called on the reporter's own thread, and must not wait.
pub trait Extension: Debug + Send + Sync {
    /// What stands under `sidecar` in the progress.
    fn describe(&self) -> Sidecar;

    /// Takes the body of a POST to `path`; `None` if there is no such page.
    fn post(&self, path: &str, body: &[u8]) -> Option<Posted>;
}

/// What comes of a body that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It was taken.
    Taken,
    /// It cannot be understood, for this reason, which is one line.
    Refused(String),
    /// There is no room now.
    Busy,
}
