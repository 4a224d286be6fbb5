//! Lines that mention a loss: those that are worth reading, and those that no grammar could read.

use aho_corasick::AhoCorasick;
use aho_corasick::packed::{MatchKind, Searcher};
use memchr::memmem::Finder;

/// Parts of words for a loss, in every case that is printed. [`paceline_lines::translate`] has the
/// words of other languages. The search for up to 32 of them is faster than for more.
const NEAR: [&str; 32] = [
    "oss", "OSS", "cost", "Cost", "COST", "xent", "Xent", "XENT", "ntropy", "NTROPY", "nll", "NLL",
    "bjective", "objf", "损失", "損失", "ロス", "손실", "erlust", "ERLUST", "perte", "Perte",
    "rdida", "perda", "Perda", "rdita", "verlies", "Verlies", "отер", "ОТЕР", "лосс", "Лосс",
];

/// The number of English ones among them, which come first.
const ENGLISH: usize = 14;

/// The language of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// English.
    English,
    /// One of the others.
    Other,
}

/// Finds words for a loss in a line.
#[derive(Debug)]
pub(super) struct Mentions {
    near: Near,
    lower: Finder<'static>,
    upper: Finder<'static>,
    total: Finder<'static>,
}

/// The search for all of them at once.
#[derive(Debug)]
enum Near {
    /// With vector instructions.
    Packed(Box<Searcher>),
    /// Without.
    Plain(Option<AhoCorasick>),
}

impl Default for Mentions {
    fn default() -> Self {
        let packed = aho_corasick::packed::Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .builder()
            .extend(NEAR)
            .build();
        let near = packed.map_or_else(
            || Near::Plain(AhoCorasick::new(NEAR).ok()),
            |packed| Near::Packed(Box::new(packed)),
        );
        Self {
            near,
            lower: Finder::new("oss"),
            upper: Finder::new("OSS"),
            total: Finder::new("otal"),
        }
    }
}

impl Mentions {
    /// The language of the first word for a loss in `line`, if there may be one. Fast, with false
    /// positives.
    pub(super) fn near(&self, line: &str) -> Option<Language> {
        let found = match &self.near {
            Near::Packed(packed) => packed.find(line).map(|found| found.pattern().as_usize()),
            Near::Plain(plain) => {
                plain.as_ref()?.find(line).map(|found| found.pattern().as_usize())
            }
        }?;
        Some(if found < ENGLISH { Language::English } else { Language::Other })
    }

    /// Whether `line` may name a total.
    pub(super) fn a_total(&self, line: &str) -> bool {
        self.total.find(line.as_bytes()).is_some()
    }

    /// Whether `line` contains a number and the word "loss", alone or as a part of a name.
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
            let near = mentions.near(line);
            assert!(mentions.a_loss(line) && near == Some(Language::English), "{line}");
        }
        for line in ["loss", "lossless 5", "gloss 5", "across 5", "losses", "oss 5", ""] {
            assert!(!mentions.a_loss(line), "{line}");
        }
        assert_eq!(mentions.near("训练损失: 5"), Some(Language::Other));
        assert_eq!(mentions.near("Cost: 5"), Some(Language::English));
        assert_eq!(mentions.near("a 5"), None);
    }
}
