//! What a program that reports on behalf of a job adds to the endpoint.

use std::fmt::Debug;

use paceline_wire::{Progress, Sidecar};

/// A program that reports on behalf of a job, such as the sidecar.
///
/// The methods are called on the reporter's own thread and must not block.
pub trait Extension: Debug + Send + Sync {
    /// Returns the field `sidecar` of the progress.
    fn describe(&self) -> Sidecar;

    /// Takes the body of a POST to `path`; `None` if the path is unknown.
    fn post(&self, path: &str, body: &[u8]) -> Option<Posted>;

    /// Whether it wants readings by [`Extension::publish`].
    fn is_subscribed(&self) -> bool {
        false
    }

    /// Takes a reading: at once after an urgent change, else about once a second, also if nothing has
    /// changed; and a last one when the endpoint closes.
    fn publish(&self, _progress: &Progress, _is_last: bool) {}
}

/// The outcome of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The body was accepted.
    Taken,
    /// The body is invalid, for this reason: one line.
    Refused(String),
    /// The body cannot be taken now, because a queue is full.
    Busy,
}
