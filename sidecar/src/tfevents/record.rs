//! The records of an event file: a length, its checksum, that many bytes, their checksum.

use paceline_tfevents::record::masked;

/// Maximum length of a record in bytes; a longer one is skipped. A record with scalars takes about
/// a hundred bytes. Long ones contain images or a graph.
pub const MAX_RECORD_LEN: u64 = 2 * 1024 * 1024;

/// Length and checksum of the length.
pub(super) const HEADER: usize = 12;
/// Header and the checksum of the data.
const AROUND: usize = HEADER + 4;

/// The state after a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes are taken; the last record may be incomplete.
    Going,
    /// There are zeros in place of a record: some network file systems show them for unwritten
    /// blocks. The rest was not taken; feed it again later, from [`Records::position`].
    Unwritten,
    /// A length does not match its checksum. Nothing after it can ever be read.
    Broken,
}

/// Counts of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Met {
    /// Valid records, which were passed on.
    pub whole: u64,
    /// Skipped records whose data do not match their checksum.
    pub damaged: u64,
    /// Skipped records longer than [`MAX_RECORD_LEN`].
    pub oversized: u64,
}

impl Met {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.damaged += other.damaged;
        self.oversized += other.oversized;
    }
}

/// Reads the records of a file in pieces of any size. Holds one record at most.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The start of the first unfinished record.
    offset: u64,
    /// The bytes of it so far.
    held: Vec<u8>,
    /// The number of bytes to skip before it: the rest of an oversized record.
    skip: u64,
    broken: bool,
    met: Met,
}

impl Records {
    /// A reader for the bytes from `offset` on, where a record begins.
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Takes the bytes at [`position`](Self::position) and passes the data of each completed record
    /// to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Outcome {
        let mut rest = bytes;
        while !self.broken {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(rest.len());
            self.skip = self.skip.saturating_sub(length(skipped));
            rest = rest.get(skipped..).unwrap_or_default();

            let frame = frame(if self.held.is_empty() { rest } else { &self.held });
            if let Frame::Short { whole } = frame {
                let missing = whole.saturating_sub(self.held.len());
                let (taken, left) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
                self.held.extend_from_slice(taken);
                rest = left;
                if taken.len() < missing {
                    return Outcome::Going;
                }
                continue;
            }
            let end = match frame {
                Frame::Short { .. } => break,
                Frame::Whole { data } => {
                    sink(data);
                    self.met.whole += 1;
                    length(data.len() + AROUND)
                }
                Frame::Damaged { end } => {
                    self.met.damaged += 1;
                    end
                }
                Frame::Oversized { end } => {
                    self.met.oversized += 1;
                    end
                }
                Frame::Unwritten => {
                    self.held.clear();
                    return Outcome::Unwritten;
                }
                Frame::Broken => {
                    self.broken = true;
                    break;
                }
            };
            self.skip = end.saturating_sub(length(self.held.len()));
            self.offset = self.offset.saturating_add(end);
            self.held.clear();
        }
        Outcome::Broken
    }

    /// The start of the first unfinished record, where a new reader can resume.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The offset of the next bytes to feed.
    pub fn position(&self) -> u64 {
        self.offset.saturating_add(length(self.held.len())).saturating_sub(self.skip)
    }

    /// Skips the rest of an oversized record, if there is one, so that [`position`](Self::position)
    /// is after it.
    pub fn jump(&mut self) {
        self.skip = 0;
    }

    /// Counts of records.
    pub fn met(&self) -> Met {
        self.met
    }
}

/// The record at the start of some bytes.
enum Frame<'a> {
    /// Incomplete; `whole` bytes are needed to decide.
    Short {
        whole: usize,
    },
    Whole {
        data: &'a [u8],
    },
    Damaged {
        end: u64,
    },
    Oversized {
        end: u64,
    },
    Unwritten,
    Broken,
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return Frame::Short { whole: HEADER };
    };
    let Some((size, check)) = header.split_first_chunk::<8>() else { return Frame::Broken };
    if check != masked(size) {
        // Only a part of the header is written; the rest is zeros.
        return if header.last() == Some(&0) { Frame::Unwritten } else { Frame::Broken };
    }
    let size = u64::from_le_bytes(*size);
    let end = size.saturating_add(length(AROUND));
    let Some(size) = usize::try_from(size).ok().filter(|_| size <= MAX_RECORD_LEN) else {
        return Frame::Oversized { end };
    };
    let Some((data, after)) = body.split_at_checked(size) else {
        return Frame::Short { whole: size + AROUND };
    };
    let Some((check, _)) = after.split_first_chunk::<4>() else {
        return Frame::Short { whole: size + AROUND };
    };
    if *check == masked(data) {
        Frame::Whole { data }
    } else if *check == [0; 4] {
        Frame::Unwritten
    } else {
        Frame::Damaged { end }
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
