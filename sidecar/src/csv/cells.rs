//! The cells of one row.

use csv_core::{ReadRecordResult, Reader};

/// A row as far as it is there, in bounded memory.
#[derive(Debug)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// How much of the text, and how many of the ends, are in use.
    used: (usize, usize),
    too_long: bool,
}

impl Cells {
    /// Room for so many bytes and so many cells.
    pub(super) fn new(bytes: usize, cells: usize) -> Self {
        Self { text: vec![0; bytes], ends: vec![0; cells], used: (0, 0), too_long: false }
    }

    /// Takes bytes off `rest` until the row is whole, and says whether it is.
    pub(super) fn fill(&mut self, reader: &mut Reader, rest: &mut &[u8]) -> bool {
        // Without bytes the reader would take the file for ended.
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

    /// Whether there was no room for all of the row: its cells are of no use then.
    pub(super) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// The cells; one that is not text is empty.
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
