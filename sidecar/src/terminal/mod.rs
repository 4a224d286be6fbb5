//! From bytes to lines, as a terminal would show them.
//!
//! [`Screen`] splits a stream into lines and frames, [`prefix`] takes off what launchers and loggers
//! put before a line, [`wrapping`] unpacks the lines of container runtimes' log files.

mod escape;
pub mod prefix;
mod screen;
mod stamp;
pub mod wrapping;

pub use screen::{End, KEPT, Line, Screen};
pub(crate) use stamp::stamp;
