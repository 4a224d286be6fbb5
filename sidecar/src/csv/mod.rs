//! CSV files, read while a logger appends to them.
//!
//! The header says which columns are losses and which are counters, by the rules of
//! [`crate::names`]. [`table::Table`] turns bytes into observations; [`Reader`] feeds it from a
//! file.

mod cells;
mod layout;
mod seen;
pub mod table;

use std::io;
use std::path::PathBuf;

use crate::follow::{Follower, Piece, Progress};
use crate::observation::Observation;

pub use seen::Seen;
use table::Table;

/// Follows one CSV file, from its start.
///
/// Loggers write such files anew, such as Lightning's when a column is added. Each row is told once:
/// one that stands where it stood and says what it said is passed over.
#[derive(Debug)]
pub struct Reader {
    follower: Follower,
    table: Table,
}

/// What was met since the start or the resumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of the file.
    pub file: crate::follow::Counts,
    /// Of the rows in it.
    pub rows: table::Counts,
}

impl Reader {
    /// Follows the file at `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::resume(path, Seen::default())
    }

    /// The same, after another one that has told the rows that `seen` knows. The file is read from
    /// its start.
    pub fn resume(path: impl Into<PathBuf>, seen: Seen) -> Self {
        Self { follower: Follower::new(path), table: Table::new(seen) }
    }

    /// Reads on, a bounded amount, and gives what each whole row says. A row that is not ended yet
    /// waits. That there is no file is no error; an error is for this time only.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Observation)) -> io::Result<Progress> {
        self.follower.poll(&mut |piece| match piece {
            Piece::Bytes(bytes) => self.table.feed(bytes, sink),
            Piece::Break(_) => self.table.restart(),
        })
    }

    /// The rows that were told.
    pub fn seen(&self) -> &Seen {
        self.table.seen()
    }

    /// What was met.
    pub fn counts(&self) -> Counts {
        Counts { file: self.follower.counts(), rows: self.table.counts() }
    }
}

#[cfg(test)]
mod tests;
