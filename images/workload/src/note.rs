//! Messages to the user, apart from the log of the training.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Prints a line on standard error. If it is closed, the program continues.
pub fn note(line: impl Display) {
    writeln!(stderr(), "{line}").ok();
}
