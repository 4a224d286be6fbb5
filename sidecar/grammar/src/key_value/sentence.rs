//! Words of a sentence around the name of a loss: `after 500 updates the loss was 0.5`.

use super::known_words::is_one;
use super::numbers::is_counted;
use super::vocabulary::{Role, role};

/// Words that join a part of a sentence to the text before it.
const JOINS: [&str; 4] = ["and", "but", "while", "then"];
/// Words between a step or an epoch and its loss: `epoch 3 ended with a loss of 0.5`.
const HAVING: [&str; 4] = ["with", "has", "had", "reached"];
/// Units that stand behind their number.
const UNITS: [&str; 10] =
    ["fps", "gb", "gib", "hours", "hz", "mb", "mib", "minutes", "percent", "seconds"];
/// What a mean may be of.
const EACH: [&str; 9] =
    ["batch", "char", "character", "frame", "iteration", "pixel", "step", "token", "word"];

/// What comes before the words of a name in its line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Directly before them, a number.
    pub(super) follows_number: bool,
    /// A step or an epoch.
    pub(super) counts: bool,
    /// The same, or a loss.
    pub(super) goes_on: bool,
}

/// The words of a name before its loss, without the unit of the number before and without the words
/// of a sentence.
pub(super) fn name<'w, 'a>(words: &'w [&'a str], place: Place) -> &'w [&'a str] {
    let words = match words {
        [unit, rest @ ..] if place.follows_number && is_unit(unit) => rest,
        words => words,
    };
    let words = match words {
        [join, rest @ ..] if place.goes_on && is_one(join, &JOINS) => rest,
        words => words,
    };
    let having = words.iter().rposition(|word| is_one(word, &HAVING)).filter(|_| place.counts);
    let Some(rest) = having.and_then(|at| words.get(at + 1..)) else { return words };
    match rest {
        [article, rest @ ..] if is_one(article, &["a", "an"]) => rest,
        rest => rest,
    }
}

/// Whether `word` is the unit of a number before it, or what that counts.
fn is_unit(word: &str) -> bool {
    let is_rate =
        word.rsplit_once('/').is_some_and(|(_, per)| is_one(per, &["s", "sec", "second"]));
    is_rate || is_one(word, &UNITS) || (word.ends_with(['s', 'S']) && is_counted(word))
}

/// Whether words after "loss" say what a mean is of: `per token`.
pub(super) fn is_mean_per(words: &[&str]) -> bool {
    matches!(words, [per, each] if per.eq_ignore_ascii_case("per")
        && (is_one(each, &EACH) || is_one(each, &["example", "sample"])))
}

/// Whether words after "loss" say what it is of: `of the generator`.
pub(super) fn is_of_part(words: &[&str]) -> bool {
    let is_known = |word: &&str| role(word).any(Role::BEFORE) || is_one(word, &["net", "network"]);
    matches!(words, [of, the, part @ ..] if of.eq_ignore_ascii_case("of")
        && the.eq_ignore_ascii_case("the") && !part.is_empty() && part.iter().all(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_behind_units_and_joins() {
        let behind = Place { follows_number: true, goes_on: true, counts: false };
        for (words, expected) in [
            (["updates", "the", "mean"].as_slice(), ["the", "mean"].as_slice()),
            (&["samples/sec", "train"], &["train"]),
            (&["and", "the", "dev"], &["the", "dev"]),
            (&["batches", "and", "val"], &["val"]),
            (&["min", "train"], &["min", "train"]),
            (&["epoch"], &["epoch"]),
            (&["with", "a"], &["with", "a"]),
        ] {
            assert_eq!(name(words, behind), expected);
        }
        assert_eq!(name(&["updates"], Place::default()), ["updates"]);
        assert_eq!(name(&["and", "the"], Place::default()), ["and", "the"]);
        let counts = Place { counts: true, ..Place::default() };
        assert_eq!(name(&["it", "had", "a", "mean"], counts), ["mean"]);
    }

    #[test]
    fn parts_and_means_are_known_behind_the_name() {
        assert!(is_mean_per(&["per", "token"]) && !is_mean_per(&["per", "euro"]));
        assert!(is_of_part(&["of", "the", "current", "policy"]));
        for words in [["of", "the"].as_slice(), &["of", "the", "signal"], &["of", "power"], &[]] {
            assert!(!is_of_part(words), "{words:?}");
        }
    }
}
