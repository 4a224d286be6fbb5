//! Messages to the job's user.

use std::fmt;
use std::io::{self, Write};

/// Prints a line to standard error, which may be closed.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    say_as("reporter", what);
}

/// The same in the name of the measuring program.
pub(crate) fn say_as(source: &str, what: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "paceline-{source}: {what}"));
}
