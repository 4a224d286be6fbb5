//! The rows of a file that were reported.

/// The number of rows that are recognised by their content; later rows are recognised by their
/// index alone.
const MAX_CHECKSUMS: usize = 4096;

/// The reported rows of a file, to skip them when it is read from its start again.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seen {
    count: u64,
    checksums: Vec<u32>,
}

/// How a row compares to the reported rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// It was reported.
    Old,
    /// It follows them.
    New,
    /// A different row had this index: the file is another one that shares the rows before it.
    Other,
}

impl Seen {
    /// The number of reported rows.
    pub fn rows(&self) -> u64 {
        self.count
    }

    /// Records the row at `index`, counted from 0.
    pub(super) fn enter(&mut self, index: u64, checksum: u32) -> Row {
        let known = usize::try_from(index).ok().and_then(|index| self.checksums.get(index));
        let row = match known {
            _ if index >= self.count => Row::New,
            Some(known) if *known != checksum => Row::Other,
            _ => Row::Old,
        };
        if row != Row::Old {
            self.count = index.saturating_add(1);
            self.checksums.truncate(usize::try_from(index).unwrap_or(MAX_CHECKSUMS));
            if self.checksums.len() < MAX_CHECKSUMS {
                self.checksums.push(checksum);
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(seen: &mut Seen, rows: &[u32]) -> Vec<Row> {
        (0..).zip(rows).map(|(index, checksum)| seen.enter(index, *checksum)).collect()
    }

    #[test]
    fn row_with_same_index_and_content_is_old() {
        let mut seen = Seen::default();
        assert_eq!(enter(&mut seen, &[5, 5, 6]), [Row::New; 3]);
        assert_eq!(enter(&mut seen, &[5, 5, 6, 6]), [Row::Old, Row::Old, Row::Old, Row::New]);
        assert_eq!(enter(&mut seen, &[5, 7, 8]), [Row::Old, Row::Other, Row::New]);
        assert_eq!(seen.rows(), 3);
    }

    #[test]
    fn rows_beyond_the_checksums_compare_by_index() {
        let mut seen = Seen::default();
        let rows = vec![1; MAX_CHECKSUMS + 10];
        enter(&mut seen, &rows);
        assert_eq!(seen.checksums.len(), MAX_CHECKSUMS);
        let changed = [vec![1; MAX_CHECKSUMS], vec![2; 11]].concat();
        let again = enter(&mut seen, &changed);
        assert!(again[..MAX_CHECKSUMS + 10].iter().all(|row| *row == Row::Old));
        assert_eq!(again[MAX_CHECKSUMS + 10], Row::New);
    }
}
