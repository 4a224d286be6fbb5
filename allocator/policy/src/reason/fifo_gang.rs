//! `fifo-gang`'s reasons.

use std::fmt;

use super::kod2::{Span, TaskCounts};
use crate::unit::JobId;

/// Why a job starts or waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It starts.
    Fits {
        /// The tasks that it needs.
        needs: TaskCounts,
        /// The nodes of the tasks.
        on: Span,
    },
    /// It is the first in line, and does not fit.
    NoRoom {
        /// The tasks that it needs.
        needs: TaskCounts,
    },
    /// The first in line does not fit.
    Behind {
        /// That job.
        head: JobId,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits { needs, on } => write!(f, "first in line: {needs} fit {on}"),
            Self::NoRoom { needs } => write!(f, "first in line: {needs} do not fit now"),
            Self::Behind { head } => write!(f, "behind {head}, which does not fit"),
        }
    }
}
