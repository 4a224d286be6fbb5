//! What was done and why, kept for people who ask afterwards.
//!
//! The log is a folder's `audit.jsonl`, one JSON object a line, and the older files that it was
//! continued from. Each line holds the hash of the line before it and its own: what is changed,
//! removed or put in afterwards breaks the chain, and [`verify`] says where.

pub mod entry;
mod files;
mod log;
pub mod read;
mod record;
mod sync;
pub mod verify;
mod words;

pub use entry::Entry;
pub use log::{Audit, AuditError, Rotation};
pub use record::{Link, NotALink, Record};
