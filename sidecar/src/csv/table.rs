//! Turns the bytes of a CSV file into observations.

use paceline_lines::observation::Observation;

use super::cells::Cells;
use super::layout::Layout;
use super::seen::{Row, Seen};

/// Maximum length of a line in bytes. A file with a longer header is not read; a longer row is
/// skipped.
const MAX_LINE: usize = 64 * 1024;
/// Maximum number of columns.
const MAX_COLUMNS: usize = 1024;

/// Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that were reported.
    pub new: u64,
    /// Rows that had been reported before.
    pub repeated: u64,
    /// Rows that are too long, or not text.
    pub malformed: u64,
    /// How often the file was replaced by another one.
    pub replacements: u64,
}

/// Reads a CSV file in pieces of any size. Holds one row at most.
#[derive(Debug)]
pub struct Table {
    stage: Stage,
    row: Cells,
    /// The index of the next row.
    index: u64,
    seen: Seen,
    counts: Counts,
}

#[derive(Debug)]
enum Stage {
    /// The header has not ended yet. Its end shows how columns are separated.
    Header(Vec<u8>),
    /// Without a layout, the header comes next.
    Rows { reader: Box<csv_core::Reader>, comma: bool, layout: Option<Layout> },
    /// The first line is too long: this is not a CSV file.
    Unreadable,
}

impl Table {
    /// A table that skips the rows in `seen`.
    pub fn new(seen: Seen) -> Self {
        let (row, counts) = (Cells::new(MAX_LINE, MAX_COLUMNS), Counts::default());
        Self { stage: Stage::Header(Vec::new()), row, index: 0, seen, counts }
    }

    /// Takes the next bytes and passes the observation of each completed row to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Observation)) {
        let mut rest = bytes;
        while let Stage::Header(header) = &mut self.stage
            && !rest.is_empty()
        {
            let end = memchr::memchr(b'\n', rest);
            let (line, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            rest = after;
            if header.len().saturating_add(line.len()) > MAX_LINE {
                self.stage = Stage::Unreadable;
                self.counts.malformed += 1;
                return;
            }
            header.extend_from_slice(line);
            if end.is_some() {
                let header = std::mem::take(header);
                self.begin(header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&header), sink);
            }
        }
        self.rows(rest, sink);
    }

    /// The file is read from its start again.
    pub fn restart(&mut self) {
        self.stage = Stage::Header(Vec::new());
        self.row.clear();
        self.index = 0;
    }

    /// The rows that were reported.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes the header, unless it is blank.
    fn begin(&mut self, header: &[u8], sink: &mut dyn FnMut(Observation)) {
        if !header.trim_ascii().is_empty() {
            let delimiter = delimiter(header);
            let reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
            let (reader, comma) = (Box::new(reader), delimiter != b',');
            self.stage = Stage::Rows { reader, comma, layout: None };
            self.rows(header, sink);
        }
    }

    fn rows(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Observation)) {
        let mut rest = bytes;
        while !rest.is_empty()
            && let Stage::Rows { reader, comma, layout } = &mut self.stage
            && self.row.fill(reader, &mut rest)
        {
            match layout {
                _ if self.row.is_too_long() => {
                    self.counts.malformed += 1;
                }
                Some(layout) if !layout.is_header(self.row.iter()) => {
                    let row = self.seen.enter(self.index, layout.checksum(self.row.iter()));
                    self.index += 1;
                    self.counts.replacements += u64::from(row == Row::Other);
                    if row == Row::Old {
                        self.counts.repeated += 1;
                    } else {
                        self.counts.new += 1;
                        layout.observation(self.row.iter()).into_iter().for_each(&mut *sink);
                    }
                }
                Some(_) | None => *layout = Some(Layout::new(self.row.iter(), *comma)),
            }
            self.row.clear();
        }
    }
}

/// The separator of the columns: the most frequent candidate in the header outside quotes.
fn delimiter(header: &[u8]) -> u8 {
    let count = |delimiter: u8| {
        let unquoted = header.split(|byte| *byte == b'"').step_by(2);
        unquoted.flatten().filter(|byte| **byte == delimiter).count()
    };
    // A comma may be part of a name: with equal counts the last candidate wins.
    let likeliest = b",;\t".iter().copied().max_by_key(|delimiter| count(*delimiter));
    likeliest.filter(|delimiter| count(*delimiter) > 0).unwrap_or(b',')
}
