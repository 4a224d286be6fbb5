//! The name of a loss behind its value, between separators: `Epoch 3, 0.5 cost, 2.0 s`.

use paceline_lines::observation::Phase;

use super::pair::{Form, Pair};
use super::vocabulary::{Role, role};
use super::{KeyValue, Now, usual};
use crate::draft::Draft;
use crate::keys::Field;

/// What a value and its name stand between.
const BEFORE: [char; 5] = [',', ';', '|', '(', '['];
const AFTER: [char; 5] = [',', ';', '|', ')', ']'];
/// Maximum number of words of a name.
const MAX_WORDS: usize = 3;

impl KeyValue {
    /// Takes a loss whose name is behind its value, in a line that names a step or an epoch. Returns whether it
    /// is one.
    pub(super) fn behind(
        &mut self,
        pair: &Pair<'_>,
        line: &str,
        now: &mut Now,
        draft: &mut Draft,
    ) -> bool {
        let is_value = pair.form == Form::Other && pair.unit.is_empty() && pair.total.is_none();
        if !pair.words.is_empty() || !is_value || !now.counters.has_place() {
            return false;
        }
        let before = line.get(..line.len() - pair.after.len()).unwrap_or_default();
        let Some(name) = name(before, pair.after) else { return false };
        let Field::Loss { mut phase, span } = self.keys.field(name) else { return false };
        if phase == Phase::Train {
            let held_out = |phase: &Phase| *phase != Phase::Train;
            phase = pair.context.phase().filter(held_out).or(now.phase).unwrap_or(phase);
        }
        draft.push(name, phase, span.unwrap_or(usual(phase)), pair.value);
        now.behind = true;
        true
    }
}

/// The words behind a value up to the next separator. `before`: the text up to and with the value; `after`:
/// the text behind it.
pub(super) fn name<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    let is_of_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
    let start = before.trim_end_matches(is_of_number).trim_end_matches(' ');
    let text = after.strip_prefix(' ').filter(|_| start.ends_with(BEFORE))?;
    let name = text.get(..text.find(AFTER).unwrap_or(text.len()))?.trim_end();
    let mut words = name.split(' ');
    let last = words.next_back()?;
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_name = is_word(last)
        && words.clone().count() < MAX_WORDS
        && words.all(|word| is_word(word) && role(word).any(Role::BEFORE));
    (is_name && !role(last).any(Role::REPEATS)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_between_separators() {
        for (before, after, expected) in [
            ("epoch 1, 0.5", " cost, 2.0 s", Some("cost")),
            ("epoch 1 | 0.5", " val loss | 2.0 s", Some("val loss")),
            ("epoch 1 [0.5", " loss]", Some("loss")),
            ("epoch 1, 1e-3", " loss", Some("loss")),
            ("epoch 1 0.5", " loss, 2.0 s", None),
            ("epoch 1, 0.5", " loss 0.25", None),
            ("epoch 1, 0.5", " loss: 0.25", None),
            ("epoch 1, 0.5", " best loss", None),
            ("epoch 1, 0.5", ", loss", None),
        ] {
            assert_eq!(name(before, after), expected, "{before}{after}");
        }
    }
}
