//! Which grammars may know a line, by some of its bytes.

use paceline_lines::bytes;

use crate::{Grammar, MARKS};

/// A set of grammars, by their indices.
type Set = u128;

/// For each byte, the grammars whose lines may have it in the first or in the second place. A set is
/// computed when the first line needs it, because most programs print few different bytes there.
#[derive(Debug)]
pub(super) struct Starts {
    first: Vec<Set>,
    second: Vec<Set>,
    /// The grammars whose lines have one of the [`MARKS`].
    marked: Set,
}

/// The bit of a set that has been computed; no grammar has it.
const KNOWN: Set = 1 << 127;

impl Starts {
    /// Those of `grammars`, at most 127.
    pub(super) fn new(grammars: &[Box<dyn Grammar>]) -> Self {
        let unknown = || vec![0; 256];
        let marked = set(grammars, |grammar| grammar.has_mark());
        Self { first: unknown(), second: unknown(), marked }
    }

    /// The indices of those of `grammars` that may know `line`, in their order.
    #[inline]
    pub(super) fn of(
        &mut self,
        grammars: &[Box<dyn Grammar>],
        line: &[u8],
    ) -> impl Iterator<Item = usize> + use<> {
        let known = |sets: &[Set], byte: u8| sets.get(usize::from(byte)).copied().unwrap_or(KNOWN);
        let mut left = match line {
            [first, second, ..] => {
                let all = known(&self.first, *first) & known(&self.second, *second);
                if all & KNOWN == 0 { self.learn(grammars, *first, Some(*second)) } else { all }
            }
            [first] => self.learn(grammars, *first, None),
            [] => 0,
        };
        left &= !KNOWN;
        if !bytes::contains_any(line, MARKS) {
            left &= !self.marked;
        }
        std::iter::from_fn(move || {
            let index = usize::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
            left &= left - 1;
            Some(index)
        })
    }

    /// Computes the sets of the first two bytes of a line.
    #[cold]
    fn learn(&mut self, grammars: &[Box<dyn Grammar>], first: u8, second: Option<u8>) -> Set {
        let starts = set(grammars, |grammar| grammar.starts(first)) | KNOWN;
        if let Some(place) = self.first.get_mut(usize::from(first)) {
            *place = starts;
        }
        let Some(second) = second else { return starts };
        let goes_on = set(grammars, |grammar| grammar.goes_on(second)) | KNOWN;
        if let Some(place) = self.second.get_mut(usize::from(second)) {
            *place = goes_on;
        }
        starts & goes_on
    }
}

/// The grammars that pass `test`.
fn set(grammars: &[Box<dyn Grammar>], test: impl Fn(&dyn Grammar) -> bool) -> Set {
    let all = grammars.iter().enumerate().filter(|(_, grammar)| test(grammar.as_ref()));
    all.fold(0, |set: Set, (index, _)| set | bit(index))
}

fn bit(index: usize) -> Set {
    u32::try_from(index).ok().and_then(|index| Set::checked_shl(1, index)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::detector::Detector;

    #[test]
    fn every_grammar_has_a_place() {
        let Detector { mut starts, grammars, .. } = Detector::default();
        assert!(grammars.len() < 127);
        let last = grammars.len() - 1;
        let mut found = |line: &str| starts.of(&grammars, line.as_bytes()).collect::<Vec<_>>();
        assert!(found("x y").contains(&last) && found("x").contains(&last));
        assert!(found("x [y").len() > found("x y").len());
        assert!(found("Train Epoch: 1").len() > found("Tz").len());
        assert!(found("").is_empty());
    }
}
