//! `srpt`'s reasons.

use std::fmt;

/// Why a job gets its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// The work that it has left, in seconds of the whole machine.
    pub remaining: Option<f64>,
    /// The number of jobs with less work left.
    pub before: usize,
    /// Its share.
    pub share: f64,
    /// Whether it waits for them.
    pub waits: bool,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining {
            Some(work) => write!(f, "{work:.1} s of work left, ")?,
            None => f.write_str("remaining work unknown, ")?,
        }
        match (self.before, self.waits) {
            (0, _) => f.write_str("the least of all"),
            (before, false) => {
                write!(f, "jobs with less work left: {before}, which leave {:.2}", self.share)
            }
            (before, true) => write!(f, "jobs with less work left: {before}; it waits"),
        }
    }
}
