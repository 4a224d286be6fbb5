//! CSV files, read while a logger appends to them.
//!
//! [`paceline_lines::names`] decides by the header which columns are losses and which are counters.
//! [`table::Table`] turns bytes into observations; [`Reader`] feeds it from a file.

mod cells;
mod layout;
mod seen;
pub mod table;

use std::io;
use std::path::PathBuf;

use paceline_lines::observation::Observation;

use crate::follow::{Follower, Piece, Progress};

pub use seen::Seen;
use table::Table;

/// Follows one CSV file, from its start.
///
/// Some loggers rewrite the whole file, for example Lightning's when a column is added. Each row is
/// reported once: a row with the same index and content as before is skipped.
#[derive(Debug)]
pub struct Reader {
    follower: Follower,
    table: Table,
}

/// Counts since the start or the resumption.
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

    /// Like `new`, but skips the rows in `seen`, which another reader has reported. The file is
    /// read from its start.
    pub fn resume(path: impl Into<PathBuf>, seen: Seen) -> Self {
        Self { follower: Follower::new(path), table: Table::new(seen) }
    }

    /// Reads on, a bounded amount, and passes the observation of each complete row to `sink`. An
    /// incomplete row waits. A missing file is not an error. After an error the next call tries
    /// again.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Observation)) -> io::Result<Progress> {
        self.follower.poll(&mut |piece| match piece {
            Piece::Bytes(bytes) => self.table.feed(bytes, sink),
            Piece::Break(_) => self.table.restart(),
            Piece::Recalled(_) | Piece::CaughtUp => {}
        })
    }

    /// The rows that were reported.
    pub fn seen(&self) -> &Seen {
        self.table.seen()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        Counts { file: self.follower.counts(), rows: self.table.counts() }
    }
}

#[cfg(test)]
mod tests;
