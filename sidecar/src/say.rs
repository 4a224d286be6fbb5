//! Messages to the user, on standard error.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user's terminal is in raw mode, in which a newline alone does not return the cursor.
static RAW: AtomicBool = AtomicBool::new(false);

/// Prints a message to standard error, which may be closed.
pub(crate) fn say(what: fmt::Arguments<'_>) {
    let end = if RAW.load(Ordering::Relaxed) { "\r\n" } else { "\n" };
    drop(write!(io::stderr(), "paceline-sidecar: {what}{end}"));
}

/// Sets whether the user's terminal is in raw mode.
pub(crate) fn set_raw(raw: bool) {
    RAW.store(raw, Ordering::Relaxed);
}
