//! Lines that are lists: names and then as many values, or numbers before their names.

use paceline_lines::observation::{Loss, Phase, Span};
use paceline_lines::scan;

use super::vocabulary::{Role, role};
use super::{KeyValue, usual};
use crate::draft::Draft;
use crate::keys::{Field, put};

/// Maximum number of items of a list.
const MAX_ITEMS: usize = 16;
/// Maximum number of words of a name.
const MAX_WORDS: usize = 3;
/// Maximum distance of a mark from the names before it, in bytes.
const MAX_MARK: usize = 6;
/// What an item with a time is about, if that is the time of a step: `0.25 s run`.
const RUNS: [&str; 5] = ["run", "step", "iter", "iteration", "batch"];

impl KeyValue {
    /// Reads names, and behind a mark as many values: `train, round, loss ===> 2, 0.5`. Returns whether
    /// one of them is a loss to report, or `None` if the line has another form.
    pub(super) fn names_then_values(&mut self, line: &str, draft: &mut Draft) -> Option<bool> {
        let (before, names, values) = parts(line)?;
        let items =
            |text| Some(Items { text }.count()).filter(|count| (2..=MAX_ITEMS).contains(count));
        let (count, numbers) = (items(names)?, items(values)?);
        let mut names = names.split(',').map(str::trim_ascii);
        // The first item may be a word for the data, or a counter: `Epoch 3, loss, acc: 0.5, 0.75`.
        let lead = if count == numbers + 1 { names.next()? } else { "" };
        let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
        let is_lead = role(lead).any(Role::DATA) || has_digit(lead);
        if count != numbers + usize::from(is_lead) {
            return None;
        }
        if has_digit(before) || has_digit(lead) {
            let behind = line.get(before.len()..)?.find(lead)? + lead.len();
            let length = before.len() + if has_digit(lead) { behind } else { 0 };
            let is_read = self.line(line.get(..length)?, draft);
            if !is_read || !draft.found.losses.is_empty() {
                return None;
            }
        }
        let of_words = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words.fold(Role::default(), |all, word| all | role(word))
        };
        let around = of_words(before) | of_words(lead);
        let (mut all, mut counts) = (around, draft.steps.named || draft.found.epoch.is_some());
        for (name, value) in names.zip(Items { text: values }) {
            let value = scan::whole(value)?;
            // No number belongs to a word for data alone.
            if !is_name(name) || role(name).any(Role::DATA) {
                return None;
            }
            let roles = of_words(name);
            all |= roles;
            let field = self.keys.field(name);
            if let Field::Loss { phase, span } = field {
                let is_open = phase == Phase::Train && !roles.any(Role::TRAIN);
                let phase = around.phase().filter(|_| is_open).unwrap_or(phase);
                draft.push(name, phase, span.unwrap_or(usual(phase)), value);
            } else {
                counts |= is_counter(field);
                put(field, name, value, draft);
            }
        }
        draft.settle_time();
        if draft.found.step.is_none() && draft.found.epoch.is_some() {
            self.keys.widen(&mut draft.found.losses, Span::Epoch);
        }
        draft.held_out = around.phase().is_some_and(|phase| phase != Phase::Train);
        // Without a counter, the result of an evaluation has this form, too.
        let is_known = counts || all.any(Role::TRAIN);
        let may_be = |loss: &Loss| loss.phase != Phase::Train || is_known;
        Some(!all.any(Role::REPEATS) && draft.found.losses.iter().any(may_be))
    }

    /// Reads numbers before their names: `5 0.25 s run, 0.5 loss, 0.001 LR`. Each item begins with a
    /// number, and one of them counts. Returns whether there is a loss among them.
    pub(super) fn numbers_then_names(&mut self, line: &str, draft: &mut Draft) -> bool {
        let Some((step, line)) = leading(line) else { return false };
        draft.found.step = Some(step);
        let mut count = 0;
        for item in line.split(',') {
            let Some((value, text)) = scan::number(item.trim_ascii_start()) else { return false };
            let name = text.trim_start_matches('%').trim_ascii();
            let repeats = name.split(' ').any(|word| role(word).any(Role::REPEATS));
            let is_name = name.starts_with(|c: char| c.is_alphabetic());
            if !is_name || repeats || count >= MAX_ITEMS {
                return false;
            }
            count += 1;
            let is_whole = !item.contains('.') && !value.is_nan();
            if let Field::Loss { phase, span } = self.keys.field(name)
                && !is_whole
            {
                draft.push(name, phase, span.unwrap_or(usual(phase)), value);
            } else if let Some(seconds) = seconds(value, name) {
                draft.found.batch_seconds = draft.found.batch_seconds.or(Some(seconds));
            }
        }
        // Without the time of a step, such a list may be one of settings.
        count > 2 && draft.found.batch_seconds.is_some() && !draft.found.losses.is_empty()
    }
}

/// Whether the last word of a line stands before a mark and several values. Fast, with false positives.
pub(super) fn may_be_names(line: &str) -> bool {
    let Some((names, after)) = after_last_word(line) else { return false };
    let marked = after.bytes().position(|byte| matches!(byte, b':' | b'=' | b'>'));
    let values = marked.filter(|at| *at < MAX_MARK).and_then(|at| after.get(at + 1..));
    let is_number = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit());
    let mut numbers = values.unwrap_or_default().split([',', ' ', '(', '[']).filter(is_number);
    numbers.nth(1).is_some() && names.contains(',')
}

/// The text up to the last word of a line, and the text behind that word. Digits may end the word.
fn after_last_word(line: &str) -> Option<(&str, &str)> {
    let last = line.bytes().rposition(|byte| byte.is_ascii_alphabetic())?;
    let after = line.get(last + 1..)?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    line.split_at_checked(last + 1 + digits)
}

/// The text before the names of a list, the names, and the values behind their mark.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (names, after) = after_last_word(line)?;
    let closed = |c: char| matches!(c, ' ' | ')' | ']');
    let after = after.trim_start_matches(closed);
    let arrow = after.trim_start_matches(['=', '-']);
    let values = match arrow.strip_prefix('>') {
        Some(values) if arrow.len() < after.len() => values,
        _ => after.strip_prefix([':', '='])?,
    };
    let values = values.trim_matches(|c: char| closed(c) || matches!(c, '(' | '[' | ','));
    let start = names.rfind([':', '|', ']', ')', ';', '=', '>']).map_or(0, |at| at + 1);
    let (before, names) = names.split_at_checked(start)?;
    Some((before, names.trim_matches([' ', '(', '[']), values))
}

/// The items of a list, parted by commas, or by spaces if they are numbers.
#[derive(Debug)]
struct Items<'a> {
    text: &'a str,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.text.is_empty() {
            return None;
        }
        let is_number = self.text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let end = if is_number { self.text.find([',', ' ']) } else { self.text.find(',') };
        let (item, rest) = self.text.split_at_checked(end.unwrap_or(self.text.len()))?;
        self.text = rest.trim_start_matches([',', ' ']);
        Some(item)
    }
}

/// Whether `text` is some words without numbers of their own.
fn is_name(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_alphabetic())
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '-' | '.' | '@' | '%'))
    };
    text.split(' ').all(is_word) && text.split(' ').count() <= MAX_WORDS
}

fn is_counter(field: Field) -> bool {
    matches!(field, Field::Step | Field::GlobalStep | Field::Epoch | Field::Batch)
}

/// The counter at the start of a line, and the text from the number of the first item on.
fn leading(line: &str) -> Option<(u64, &str)> {
    let (step, rest) = scan::count(line)?;
    let item = rest.strip_prefix(' ')?.trim_ascii_start();
    let (_, after) = scan::number(item)?;
    after.starts_with(|c: char| c == ' ' || c.is_alphabetic()).then_some((step, item))
}

/// The time of a step, from a number and the words after it.
fn seconds(value: f64, name: &str) -> Option<f64> {
    let (unit, what) = name.split_once(' ')?;
    let is_of_step = RUNS.iter().any(|word| what.eq_ignore_ascii_case(word));
    let seconds = match unit {
        "s" | "sec" => value,
        "ms" => value / 1e3,
        _ => return None,
    };
    Some(seconds).filter(|seconds| is_of_step && *seconds > 0.0)
}
