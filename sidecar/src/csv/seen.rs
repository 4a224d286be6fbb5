//! Which rows of a file were told.

/// So many rows are known by what they say; later ones only by where they stand.
const KNOWN: usize = 4096;

/// The rows of a file that were told, for when it is read from its start again.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seen {
    count: u64,
    checksums: Vec<u32>,
}

/// How a row stands to those that were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// It was told.
    Old,
    /// It comes after them.
    New,
    /// Another one stood there: this is another file, which shares the rows before this one.
    Other,
}

impl Seen {
    /// How many rows were told.
    pub fn rows(&self) -> u64 {
        self.count
    }

    /// Enters the row at `index`, counted from 0.
    pub(super) fn enter(&mut self, index: u64, checksum: u32) -> Row {
        let known = usize::try_from(index).ok().and_then(|index| self.checksums.get(index));
        let row = match known {
            _ if index >= self.count => Row::New,
            Some(known) if *known != checksum => Row::Other,
            _ => Row::Old,
        };
        if row != Row::Old {
            self.count = index.saturating_add(1);
            self.checksums.truncate(usize::try_from(index).unwrap_or(KNOWN));
            if self.checksums.len() < KNOWN {
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
    fn a_row_is_old_where_it_stood() {
        let mut seen = Seen::default();
        assert_eq!(enter(&mut seen, &[5, 5, 6]), [Row::New; 3]);
        assert_eq!(enter(&mut seen, &[5, 5, 6, 6]), [Row::Old, Row::Old, Row::Old, Row::New]);
        assert_eq!(enter(&mut seen, &[5, 7, 8]), [Row::Old, Row::Other, Row::New]);
        assert_eq!(seen.rows(), 3);
    }

    #[test]
    fn rows_beyond_those_that_are_known_are_told_by_their_place() {
        let mut seen = Seen::default();
        let rows = vec![1; KNOWN + 10];
        enter(&mut seen, &rows);
        assert_eq!(seen.checksums.len(), KNOWN);
        let changed = [vec![1; KNOWN], vec![2; 11]].concat();
        let again = enter(&mut seen, &changed);
        assert!(again[..KNOWN + 10].iter().all(|row| *row == Row::Old));
        assert_eq!(again[KNOWN + 10], Row::New);
    }
}
