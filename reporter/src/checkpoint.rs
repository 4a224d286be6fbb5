//! Asking the training loop for a checkpoint, and its answer.

mod book;
mod request;

pub(crate) use book::Book;
pub use request::{CheckpointRequest, Reason};
