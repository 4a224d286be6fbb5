//! Lines that nobody could read although they speak of a loss.

use memchr::memmem::Finder;

/// Finds the word.
#[derive(Debug)]
pub(super) struct Mentions {
    lower: Finder<'static>,
    upper: Finder<'static>,
}

impl Default for Mentions {
    fn default() -> Self {
        Self { lower: Finder::new("oss"), upper: Finder::new("OSS") }
    }
}

impl Mentions {
    /// Whether `line` has what may be the word.
    pub(super) fn near(&self, line: &str) -> bool {
        let bytes = line.as_bytes();
        self.lower.find(bytes).is_some() || self.upper.find(bytes).is_some()
    }

    /// Whether `line` has both a number and the word "loss", alone or as a part of a name.
    pub(super) fn a_loss(&self, line: &str) -> bool {
        let bytes = line.as_bytes();
        let is_word = |at: usize| {
            let (before, rest) = bytes.split_at(at);
            let after = rest.get(3).is_none_or(|byte| !byte.is_ascii_alphabetic());
            let first = before.split_last();
            after
                && first.is_some_and(|(l, before)| {
                    let alone = before.last().is_none_or(|byte| !byte.is_ascii_alphabetic());
                    *l == b'L' || (*l == b'l' && alone)
                })
        };
        let all = self.lower.find_iter(bytes).chain(self.upper.find_iter(bytes));
        all.take(16).any(is_word) && bytes.iter().any(u8::is_ascii_digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_is_a_mention() {
        let mentions = Mentions::default();
        for line in ["loss 5", "5 LOSS", "the val_loss did not improve from 0.5", "trainLoss 5"] {
            assert!(mentions.a_loss(line), "{line}");
        }
        for line in ["loss", "lossless 5", "gloss 5", "across 5", "losses", "oss 5", ""] {
            assert!(!mentions.a_loss(line), "{line}");
        }
    }
}
