//! Turns bytes into lines as a terminal would show them.
//!
//! [`LineSplitter`] splits a stream into lines and frames. [`prefix`] strips the prefixes of
//! launchers and loggers. [`wrapping`] unpacks the lines of container runtimes' log files.

mod escape;
mod line_splitter;
pub mod lost_escape;
pub mod octal;
pub mod prefix;
mod stamp;
pub mod wrapping;

pub use line_splitter::{End, Line, LineSplitter, MAX_LINE_LEN};
pub use stamp::stamp;
