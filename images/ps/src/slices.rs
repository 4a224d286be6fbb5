//! Which server keeps which parameters.

use std::fmt;
use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;

/// One of a number of equal parts, counted from 0, as in `1/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    index: u16,
    of: u16,
}

/// Why a text is no [`Slice`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// There is no slash.
    #[error("must be INDEX/COUNT, such as 0/2")]
    Form,
    /// A part of it is no number.
    #[error("must be two numbers, such as 0/2: {0}")]
    Number(#[from] ParseIntError),
    /// There are not so many.
    #[error("there is no part {index} of {of}: they are counted from 0")]
    Range {
        /// Which one was asked for.
        index: u16,
        /// How many there are.
        of: u16,
    },
}

impl Slice {
    /// The whole.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` of `of`; `None` if there are not so many.
    pub fn new(index: u16, of: u16) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Which one it is, from 0.
    pub fn index(self) -> u16 {
        self.index
    }

    /// How many there are.
    pub fn of(self) -> u16 {
        self.of
    }

    /// Its part of so many things. All parts together are the whole, and differ by one at the most.
    pub fn range(self, whole: usize) -> Range<usize> {
        let at = |index: u16| {
            let (index, of) = (usize::from(index), usize::from(self.of));
            whole / of * index + (whole % of).min(index)
        };
        at(self.index)..at(self.index + 1)
    }
}

impl FromStr for Slice {
    type Err = SliceError;

    fn from_str(text: &str) -> Result<Self, SliceError> {
        let (index, of) = text.split_once('/').ok_or(SliceError::Form)?;
        let (index, of) = (index.parse()?, of.parse()?);
        Self::new(index, of).ok_or(SliceError::Range { index, of })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_parts_are_the_whole(whole in 0_usize..10_000, of in 1_u16..50) {
            let parts: Vec<_> = (0..of).map(|index| Slice { index, of }.range(whole)).collect();
            let sizes: Vec<_> = parts.iter().map(ExactSizeIterator::len).collect();
            prop_assert!(parts.into_iter().flatten().eq(0..whole));
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }

        #[test]
        fn what_is_printed_is_read(index in 0_u16..100, of in 1_u16..100) {
            let read = format!("{index}/{of}").parse::<Slice>();
            prop_assert_eq!(read.ok(), Slice::new(index, of));
        }
    }

    #[test]
    fn nonsense_is_said_to_be_so() {
        for (text, problem) in
            [("1", "such as 0/2"), ("a/2", "two numbers"), ("2/2", "no part 2 of 2")]
        {
            let error = text.parse::<Slice>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
