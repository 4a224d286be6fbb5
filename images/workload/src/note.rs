//! What is said to whoever started the program, apart from what it trains.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says a line on standard error. A closed one is no reason to stop.
pub fn note(line: impl Display) {
    writeln!(stderr(), "{line}").ok();
}
