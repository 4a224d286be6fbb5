//! Messages to the job's user.

use std::fmt;
use std::io::{self, Write};

/// Prints a line to standard error, which may be closed.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "paceline-reporter: {what}"));
}
