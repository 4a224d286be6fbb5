//! The cells of one row.

use csv_core::{ReadRecordResult, Reader};

/// The part of a row that has been read so far, in bounded memory.
#[derive(Debug)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// How much of the text, and how many of the ends, are in use.
    used: (usize, usize),
    too_long: bool,
}

impl Cells {
    /// Reserves room for so many bytes and cells.
    pub(super) fn new(bytes: usize, cells: usize) -> Self {
        Self { text: vec![0; bytes], ends: vec![0; cells], used: (0, 0), too_long: false }
    }

    /// Consumes `rest` until the row is complete. Returns whether it is.
    pub(super) fn fill(&mut self, reader: &mut Reader, rest: &mut &[u8]) -> bool {
        // Given no bytes, the reader would assume that the file has ended.
        while !rest.is_empty() {
            let text = self.text.get_mut(self.used.0..).unwrap_or_default();
            let ends = self.ends.get_mut(self.used.1..).unwrap_or_default();
            let (result, read, wrote, ended) = reader.read_record(rest, text, ends);
            *rest = rest.get(read..).unwrap_or_default();
            self.used = (self.used.0 + wrote, self.used.1 + ended);
            match result {
                ReadRecordResult::Record => return true,
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    (self.used, self.too_long) = ((0, 0), true);
                }
            }
        }
        false
    }

    /// Whether the row did not fit. Its cells must then be ignored.
    pub(super) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// The cells; one that is not UTF-8 is empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        let ends = self.ends.get(..self.used.1).unwrap_or_default();
        let starts = std::iter::once(&0).chain(ends);
        starts.zip(ends).map(|(start, end)| {
            let cell = self.text.get(*start..*end).unwrap_or_default();
            std::str::from_utf8(cell).unwrap_or_default()
        })
    }

    pub(super) fn clear(&mut self) {
        (self.used, self.too_long) = ((0, 0), false);
    }
}
