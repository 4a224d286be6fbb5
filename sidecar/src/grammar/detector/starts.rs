//! Which grammars may know a line, by some of its bytes.

use crate::bytes;
use crate::grammar::{Grammar, MARKS};

/// A set of grammars, by their indices.
type Set = u128;

/// For each byte, the grammars whose lines may have it in the first or in the second place.
#[derive(Debug)]
pub(super) struct Starts {
    first: Vec<Set>,
    second: Vec<Set>,
    /// The grammars whose lines have one of the [`MARKS`].
    marked: Set,
}

impl Starts {
    /// Those of `grammars`.
    pub(super) fn new(grammars: &[Box<dyn Grammar>]) -> Self {
        let set = |test: &dyn Fn(&dyn Grammar) -> bool| {
            let all = grammars.iter().enumerate().filter(|(_, grammar)| test(grammar.as_ref()));
            all.fold(0, |set: Set, (index, _)| set | bit(index))
        };
        let all = || 0..=u8::MAX;
        Self {
            first: all().map(|byte| set(&|grammar| grammar.starts(byte))).collect(),
            second: all().map(|byte| set(&|grammar| grammar.goes_on(byte))).collect(),
            marked: set(&|grammar| grammar.has_mark()),
        }
    }

    /// The indices of the grammars that may know `line`, in their order.
    #[inline]
    pub(super) fn of(&self, line: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let set = |sets: &[Set], byte: &u8| sets.get(usize::from(*byte)).copied();
        let first = line.first().and_then(|byte| set(&self.first, byte)).unwrap_or_default();
        let second = line.get(1).and_then(|byte| set(&self.second, byte)).unwrap_or(Set::MAX);
        let mut left = first & second;
        if !bytes::contains_any(line, MARKS) {
            left &= !self.marked;
        }
        std::iter::from_fn(move || {
            let index = usize::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
            left &= left - 1;
            Some(index)
        })
    }
}

fn bit(index: usize) -> Set {
    u32::try_from(index).ok().and_then(|index| Set::checked_shl(1, index)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::grammar::detector::Detector;

    #[test]
    fn every_grammar_has_a_place() {
        let detector = Detector::default();
        let found = |line: &str| detector.starts.of(line.as_bytes()).collect::<Vec<_>>();
        assert!(detector.grammars.len() < 128);
        let last = detector.grammars.len() - 1;
        assert!(found("x y").contains(&last) && found("x").contains(&last));
        assert!(found("x [y").len() > found("x y").len());
        assert!(found("Train Epoch: 1").len() > found("Tz").len());
        assert!(found("").is_empty());
    }
}
