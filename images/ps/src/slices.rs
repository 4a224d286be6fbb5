//! The assignment of parameters to servers.

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

/// The reason why a text is not a [`Slice`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The slash is missing.
    #[error("expected INDEX/COUNT, such as 0/2")]
    Form,
    /// A part of it is not a number.
    #[error("expected two numbers, such as 0/2: {0}")]
    Number(#[from] ParseIntError),
    /// The index is too large.
    #[error("no part {index} of {of}: expected an index that is counted from 0 and below {of}")]
    Range {
        /// The requested index.
        index: u16,
        /// The number of parts.
        of: u16,
    },
}

impl Slice {
    /// The whole.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` of `of`; `None` if the index is too large.
    pub fn new(index: u16, of: u16) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Its index, from 0.
    pub fn index(self) -> u16 {
        self.index
    }

    /// The number of parts.
    pub fn count(self) -> u16 {
        self.of
    }

    /// Its range of this many things. All parts together are the whole, and their sizes differ by one
    /// at most.
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
        fn parts_cover_the_whole(whole in 0_usize..10_000, of in 1_u16..50) {
            let parts: Vec<_> = (0..of).map(|index| Slice { index, of }.range(whole)).collect();
            let sizes: Vec<_> = parts.iter().map(ExactSizeIterator::len).collect();
            prop_assert!(parts.into_iter().flatten().eq(0..whole));
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }

        #[test]
        fn printed_slice_is_parsed(index in 0_u16..100, of in 1_u16..100) {
            let read = format!("{index}/{of}").parse::<Slice>();
            prop_assert_eq!(read.ok(), Slice::new(index, of));
        }
    }

    #[test]
    fn invalid_slice_is_refused_with_reason() {
        for (text, problem) in
            [("1", "such as 0/2"), ("a/2", "two numbers"), ("2/2", "no part 2 of 2")]
        {
            let error = text.parse::<Slice>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
