//! The records of an event file: a length, its checksum, that many bytes, their checksum.

/// A longer record is passed over unread. One with scalars takes a hundred bytes; what is longer
/// holds pictures or a graph.
pub const LONGEST: u64 = 2 * 1024 * 1024;

/// Length and checksum of the length.
pub(super) const HEADER: usize = 12;
/// Header, and the checksum of the data.
const AROUND: usize = HEADER + 4;

/// How far a piece of a file brought its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes are taken; the last record may be unfinished.
    Going,
    /// Zeros stand where a record is to be, as some network file systems show what is not written
    /// yet. What follows was not taken: feed again from [`Records::position`], later.
    Unwritten,
    /// A length does not match its checksum: nothing after it can be read, now or later.
    Broken,
}

/// How many records were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Met {
    /// Whole ones, that were passed on.
    pub whole: u64,
    /// Ones whose data do not match their checksum; left out.
    pub damaged: u64,
    /// Ones longer than [`LONGEST`]; left out.
    pub oversized: u64,
}

impl Met {
    /// Counts what somebody else met as well.
    pub fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.damaged += other.damaged;
        self.oversized += other.oversized;
    }
}

/// Takes a file piece by piece, cut anywhere, and gives its records. Holds one record at most.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Where the first record begins that is not done with.
    offset: u64,
    /// What is there of it.
    held: Vec<u8>,
    /// How many bytes come before it: the rest of an oversized record.
    skip: u64,
    broken: bool,
    met: Met,
}

impl Records {
    /// A reader that is to be fed from `offset` on, where a record begins.
    pub fn at(offset: u64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Takes the bytes at [`position`](Self::position) and gives the data of each record that they
    /// finish.
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

    /// Where the first record begins that is not done with: a new reader goes on there.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the bytes begin that are to be fed next.
    pub fn position(&self) -> u64 {
        self.offset.saturating_add(length(self.held.len())).saturating_sub(self.skip)
    }

    /// Passes over the rest of an oversized record, if one is under way, so that
    /// [`position`](Self::position) is behind it.
    pub fn jump(&mut self) {
        self.skip = 0;
    }

    /// How many records were met.
    pub fn met(&self) -> Met {
        self.met
    }
}

/// What stands at the start of some bytes.
enum Frame<'a> {
    /// Not enough; so many bytes are needed in all to say more.
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
        // Written up to somewhere within it, and zeros from there on.
        return if header.last() == Some(&0) { Frame::Unwritten } else { Frame::Broken };
    }
    let size = u64::from_le_bytes(*size);
    let end = size.saturating_add(length(AROUND));
    let Some(size) = usize::try_from(size).ok().filter(|_| size <= LONGEST) else {
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

/// The checksum as it is written: CRC32C, turned and shifted so that a checksum of a checksum is no
/// trivial one.
pub(super) fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
