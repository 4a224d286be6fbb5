//! The loss of a pair, also where its value stands apart from its name.

use std::borrow::Cow;

use paceline_lines::names::{self, rank};
use paceline_lines::observation::{Phase, Span};
use paceline_lines::scan;

use super::field::counts;
use super::known_words::{NUMBERED, is_one};
use super::numbers::{begins_extent, is_counted, is_digits};
use super::pair::{Form, Pair};
use super::sentence::{self, Place, is_mean_per, is_of_part};
use super::vocabulary::{Role, may_be_data_set, may_be_part, role};
use super::{KeyValue, Now, Pending, WEAK, usual};
use crate::draft::Draft;
use crate::keys::{Field, Keys};

impl KeyValue {
    /// Reads several values whose names are in one word: `train/val loss: 0.5/0.25`. Returns whether
    /// one of them is a loss.
    pub(super) fn list(&mut self, pair: &Pair<'_>, draft: &mut Draft) -> bool {
        let words = pair.words.as_slice();
        let further = || pair.list.split('/').skip(1).filter_map(scan::whole);
        let count = further().count() + 1;
        let named = |word: &&str| word.split('/').count() == count;
        let Some(at) = words.iter().position(named).filter(|_| pair.unit.is_empty()) else {
            return false;
        };
        if pair.words.roles().any(Role::REPEATS) {
            return false;
        }
        let names = words.get(at).into_iter().flat_map(|word| word.split('/'));
        let mut any = false;
        for (name, value) in names.zip(std::iter::once(pair.value).chain(further())) {
            let word =
                |(index, word): (usize, &&str)| if index == at { name } else { *word }.to_owned();
            let key = words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ");
            if let Field::Loss { phase, span } = self.keys.field(&key) {
                draft.push(&key, phase, span.unwrap_or(usual(phase)), value);
                any = true;
            }
        }
        any
    }

    /// Takes a counter whose name follows it, and notes the loss whose value comes after both:
    /// `loss after 100 steps: 0.5`.
    pub(super) fn link_before(&mut self, pair: &Pair<'_>, counted: &str, now: &mut Now) {
        let singular = counted.trim_end_matches('s');
        let field = self.keys.field(singular);
        let is_other = matches!(field, Field::Epoch | Field::Batch);
        now.counters.take(pair, if is_other { field } else { Field::Step });
        // `Validation after 5 steps: loss 0.5`.
        if let [_, link] = pair.words.as_slice()
            && ["after", "at"].iter().any(|word| link.eq_ignore_ascii_case(word))
        {
            let held_out = pair.words.roles().phase().filter(|phase| *phase != Phase::Train);
            now.phase = now.phase.or(held_out);
        }
        let name = pair.words.as_slice().split_last().map(|(_, name)| name.join(" "));
        let after = pair.after.trim_start();
        let is_followed = after
            .get(counted.len()..)
            .is_some_and(|after| after.trim_start_matches([' ', ')']).starts_with([':', '=']));
        if is_followed
            && let Some(name) = name
            && let Field::Loss { phase, span } = self.keys.field(&name)
        {
            now.pending = Some(Pending { name, phase, span });
        }
    }

    /// Notes a loss that `before`, a text that ends with its value, names before a counter:
    /// `loss, step 5 = 0.5`.
    pub(super) fn before_counter(&mut self, before: &str, now: &mut Now) {
        let Some((text, _)) = before.rsplit_once(['=', ':']) else { return };
        if !now.counters.has_steps() || now.pending.is_some() {
            return;
        }
        let counter = text.trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
        let name = counter.trim_end().trim_end_matches(|c: char| c.is_alphabetic());
        let Some(name) = name.trim_end().strip_suffix([',', '(', '[', '@']) else { return };
        let start = name.rfind([',', ';', '|', ':', ']', ')']).map_or(0, |at| at + 1);
        let name = name.get(start..).unwrap_or_default().trim();
        let is_known = name.split(' ').all(|word| {
            role(word).any(Role::BEFORE) || matches!(self.keys.field(word), Field::Loss { .. })
        });
        if is_known && let Field::Loss { phase, span } = self.keys.field(name) {
            now.pending = Some(Pending { name: name.to_owned(), phase, span });
        }
    }

    /// Notes a loss whose value comes after the counter of `pair`.
    pub(super) fn link(&mut self, pair: &Pair<'_>, now: &mut Now) {
        let words = pair.words.as_slice();
        let is_link = |word: &&str| role(word).any(Role::LINK);
        // `loss in epoch 5: 0.5`. Elsewhere "in" comes before an extent or a place.
        let is_in = |words: &[&str]| matches!(words, [.., word, _] if is_one(word, &["in"]));
        let inside = || words.len().checked_sub(2).filter(|_| is_in(words));
        let Some(at) = words.iter().position(is_link).or_else(inside) else { return };
        let Some((name, _)) = words.split_at_checked(at) else { return };
        let name = name.join(" ");
        let after = pair.after.trim_start();
        let is_said = ["is", "was"].iter().any(|word| after.starts_with(word));
        let is_followed =
            after.starts_with([':', '=', '|']) || is_said || self.precedes_counter(pair);
        if let Field::Loss { phase, span } = self.keys.field(&name)
            && is_followed
        {
            now.pending = Some(Pending { name, phase, span });
        }
    }

    /// Whether a counter between a loss and its value is followed by another one, and by the value: `loss in
    /// epoch 5 iteration 10: 0.5`.
    pub(super) fn precedes_counter(&mut self, pair: &Pair<'_>) -> bool {
        if pair.form != Form::Digits || pair.is_separated {
            return false;
        }
        let last = pair.words.as_slice().last().copied().unwrap_or_default();
        let between = |c: char| matches!(c, ' ' | ',' | ')' | ']' | '(' | '[');
        let after = pair.after.trim_start_matches(between);
        let length = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let Some((name, rest)) = after.split_at_checked(length).filter(|_| length > 0) else {
            return false;
        };
        let rest = rest.trim_start_matches(between);
        let Some((_, rest)) = scan::count(rest) else { return false };
        let value = rest.trim_start_matches(between).strip_prefix([':', '=']);
        value.is_some_and(|value| scan::value(value.trim_start()).is_some())
            && counts(self.keys.field(last))
            && counts(self.keys.field(name))
    }

    /// The loss of a pair: its name, the data, and the span if the name gives it.
    pub(super) fn loss<'a>(
        &mut self,
        pair: &Pair<'a>,
        now: &Now,
    ) -> Option<(Cow<'a, str>, Phase, Option<Span>)> {
        if !pair.unit.is_empty() || pair.total.is_some() {
            return None;
        }
        let words = pair.words.as_slice();
        // `the loss is nan` is said about an earlier one.
        let says = |word: &&str| is_one(word, &["is", "was", "now"]);
        if pair.value.is_nan() && words.last().is_some_and(says) {
            return None;
        }
        let is_loss = |keys: &mut Keys, word: &str| {
            word.eq_ignore_ascii_case("entropy") || matches!(keys.field(word), Field::Loss { .. })
        };
        let at = words.iter().rposition(|word| is_loss(&mut self.keys, word))?;
        let (before, rest) = words.split_at_checked(at)?;
        let is_sure = !now.unsure && pair.form != Form::Digits;
        let counts = is_sure && now.counters.has_place();
        let follows_number = !now.unsure && pair.words.follow_number();
        let goes_on = counts || (is_sure && now.has_loss);
        let before = sentence::name(before, Place { follows_number, counts, goes_on });
        let words = words.get(at - before.len()..)?;
        let at = before.len();
        let known = |words: &[&str], roles| words.iter().all(|word| role(word).any(roles));
        let repeated =
            |word: &&str| rest.first().is_some_and(|loss| word.eq_ignore_ascii_case(loss));
        // One unknown word may name a part, if a value is given to it, or if the line has a counter.
        let may_be_unknown = counts || (pair.is_separated && pair.form != Form::Digits);
        let mut unknown = usize::from(!may_be_unknown);
        let before_is_known = before.iter().all(|word| {
            let is_known = role(word).any(Role::BEFORE)
                || repeated(word)
                || is_digits(word)
                || is_one(word, &NUMBERED)
                || matches!(self.keys.field(word), Field::Loss { .. });
            unknown += usize::from(!is_known);
            is_known || (unknown == 1 && may_be_part(word))
        });
        let before_is_known = before_is_known || (pair.is_separated && is_of_data_set(before));
        // The steps that a mean is of: `loss over the last 100 steps: 0.5`.
        let after = rest.get(1..)?;
        let is_mean =
            !after.is_empty() && pair.is_separated && pair.form != Form::Digits && is_extent(after);
        // One letter names one of several: `Loss A: 0.5`.
        let is_lettered = pair.is_separated && matches!(after, [letter] if letter.len() == 1);
        let data = set(after).filter(|_| pair.form != Form::Digits);
        let is_mean = is_mean || (pair.form != Form::Digits && is_mean_per(after));
        let is_named = is_mean
            || is_lettered
            || data.is_some()
            || known(after, Role::AFTER)
            || (pair.form != Form::Digits && is_named_behind(after, pair, counts));
        if !before_is_known || !is_named || is_layer(words.get(at)?, pair) {
            return None;
        }
        let is_of_value = matches!(after, [of] if of.eq_ignore_ascii_case("of"));
        let words =
            if is_mean || is_of_value || data.is_some() { words.get(..=at)? } else { words };
        let name = match (words, data) {
            ([word], None) => Cow::Borrowed(*word),
            (words, None) => Cow::Owned(words.join(" ")),
            (words, Some(data)) => Cow::Owned(format!("{} {data}", words.join(" "))),
        };
        let Field::Loss { mut phase, span } = self.keys.field(&name) else { return None };
        // Settings are whole numbers, and `cross entropy (2 classes)` is not a loss.
        let is_other = |name: &str| {
            if pair.is_separated { names::is_longer(name) } else { rank(name) >= WEAK }
        };
        if pair.form == Form::Digits && is_other(&name) {
            return None;
        }
        if phase == Phase::Train && !pair.words.roles().any(Role::TRAIN) {
            let held_out = |phase: &Phase| *phase != Phase::Train;
            phase = pair.context.phase().filter(held_out).or(now.phase).unwrap_or(phase);
        }
        // The line may be within an evaluation.
        if phase == Phase::Train && pair.context.any(Role::ABOUT_TRAINING) {
            return Some((Cow::Owned(format!("train {name}")), phase, span));
        }
        Some((name, phase, span))
    }
}

/// Whether words after "loss" leave it one: those of a part, or "of" before its value in a sentence. `counts`: a
/// step or an epoch comes before them.
fn is_named_behind(words: &[&str], pair: &Pair<'_>, counts: bool) -> bool {
    match words {
        [of] if of.eq_ignore_ascii_case("of") => counts && !pair.is_separated,
        [part] => counts && pair.is_separated && role(part).any(Role::BEFORE),
        words => pair.is_separated && is_of_part(words),
    }
}

/// Whether words before "loss" are the name of some held-out data: `wiki_en validation`.
fn is_of_data_set(words: &[&str]) -> bool {
    let Some((set, data)) = words.split_first() else { return false };
    let is_held_out = |word: &&str| role(word).any(Role::HELD_OUT | Role::TEST);
    may_be_data_set(set)
        && data.iter().any(is_held_out)
        && data.iter().all(|word| role(word).any(Role::BEFORE))
}

/// The data in words such as `on the validation set` after "loss".
fn set<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is = |word: &str, list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
    let (first, words) = words.split_first()?;
    let words = match words {
        [word, words @ ..] if is(word, &["the", "all"]) => words,
        words => words,
    };
    let (data, end) = words.split_first()?;
    let is_end =
        matches!(end, []) || matches!(end, [end] if is(end, &["set", "data", "dataset", "split"]));
    let is_set = is(first, &["on", "over", "for"]) && is_end && role(data).any(Role::DATA);
    is_set.then_some(*data)
}

/// Whether a name with a number and a whole number after it are those of a layer and its shape, as in the
/// summary of a model: `MSELoss-12 [5]`.
fn is_layer(name: &str, pair: &Pair<'_>) -> bool {
    let class = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kind = class.strip_suffix("Loss-").filter(|_| class.len() < name.len());
    let is_class = kind.is_some_and(|kind| kind.starts_with(|c: char| c.is_ascii_uppercase()));
    is_class && !pair.is_separated && pair.value.fract() == 0.0
}

/// Whether words after "loss" say which steps it is of: `over the last 100 steps`.
fn is_extent(words: &[&str]) -> bool {
    let is_between = |word: &&str| {
        let known =
            ["the", "one", "of", "all"].iter().any(|known| word.eq_ignore_ascii_case(known));
        known || begins_extent(word) || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((last, between)) = words.split_last() else { return false };
    is_counted(last)
        && between.first().is_some_and(|word| begins_extent(word))
        && between.iter().all(is_between)
}
