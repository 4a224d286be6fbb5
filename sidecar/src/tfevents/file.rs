//! The read position of one event file.

use std::io;
use std::path::Path;

use super::event::{Event, Malformed};
use super::record::{HEADER, Met, Outcome, Records};
use crate::follow::{Fingerprint, open_regular, read_at};

const CHUNK: usize = 64 * 1024;
/// Length of the fingerprint in bytes: the first record, with its time, distinguishes files.
const HEAD: usize = 64;

/// The read position of a file.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Place {
    /// The start of the first unread record.
    pub(super) offset: u64,
    head: Option<Fingerprint>,
    /// A length is damaged, so nothing more can be read.
    pub(super) broken: bool,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nothing more to read for now.
    File,
    /// The budget is used up.
    Budget,
    /// The file was replaced by another one.
    Replaced,
}

impl Place {
    /// Reads on until `budget` bytes are used up. Passes each event, or an error for an invalid
    /// record, to `sink`. Reads at least one record, if there is one.
    pub(super) fn read(
        &mut self,
        path: &Path,
        budget: &mut u64,
        met: &mut Met,
        sink: &mut dyn FnMut(Result<Event, Malformed>),
    ) -> io::Result<End> {
        let file = open_regular(path)?;
        if let Some(head) = self.head
            && head.find(&file, 0)?.is_none()
        {
            return Ok(End::Replaced);
        }
        let mut records = Records::at(self.offset);
        let mut chunk = vec![0; CHUNK];
        let end = loop {
            if self.broken {
                break Ok(End::File);
            }
            if *budget == 0 && records.offset() > self.offset {
                break Ok(End::Budget);
            }
            records.jump();
            let read = match read_at(&file, &mut chunk, records.position()) {
                Ok(read) => read,
                // Keep the position, so that nothing is read twice after an error.
                Err(error) => break Err(error),
            };
            let bytes = chunk.get(..read).unwrap_or_default();
            *budget = budget.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
            let outcome = records.feed(bytes, &mut |record| sink(Event::read(record)));
            self.broken = outcome == Outcome::Broken;
            if read == 0 || outcome == Outcome::Unwritten {
                break Ok(End::File);
            }
        };
        self.offset = records.offset();
        met.add(records.met());
        if self.head.is_none() && (self.offset > 0 || self.broken) {
            let settled = usize::try_from(self.offset).unwrap_or(HEAD).clamp(HEADER, HEAD);
            let mut head = vec![0; settled];
            let read = read_at(&file, &mut head, 0).ok().filter(|read| *read == settled);
            self.head = read.map(|_| Fingerprint::from_bytes(&head));
        }
        end
    }
}
