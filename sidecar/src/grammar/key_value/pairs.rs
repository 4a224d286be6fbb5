//! Numbers and the words before them.

use super::vocabulary::{Role, role};
use crate::grammar::scan;

/// Maximum number of words in a key.
const MAX_WORDS: usize = 8;

/// The words of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words<'a> {
    all: [&'a str; MAX_WORDS],
    count: usize,
    roles: Role,
}

impl<'a> Words<'a> {
    /// The words in their order.
    pub(super) fn as_slice(&self) -> &[&'a str] {
        self.all.get(..self.count).unwrap_or_default()
    }

    /// The roles of all words.
    pub(super) fn roles(&self) -> Role {
        self.roles
    }

    fn push(&mut self, word: &'a str) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = word;
            self.count += 1;
            self.roles |= role(word);
        }
    }
}

/// A number in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    /// The words directly before it: its key.
    pub(super) words: Words<'a>,
    /// The roles of earlier words without a number of their own.
    pub(super) context: Role,
    /// Whether it is the first thing in its line.
    pub(super) leads: bool,
    pub(super) value: f64,
    /// It consists of digits alone, as counters do.
    pub(super) is_digits: bool,
    /// `:` or `=` is between the words and the number.
    pub(super) is_separated: bool,
    /// The number after a slash.
    pub(super) total: Option<u64>,
    /// The letters directly after the number, such as `ms` and `%`, or a unit of time after a space.
    pub(super) unit: &'a str,
    /// The time of a step in seconds, if the unit shows that it is one: `0.5 sec/step`.
    pub(super) seconds: Option<f64>,
    /// The text after it.
    pub(super) after: &'a str,
}

impl Pair<'_> {
    /// Whether the number is a counter between the words and their value, which follows it:
    /// `loss 100 0.5`, `Loss (step 5): 0.25`, `loss [20]: 0.5`. `has_steps`: the line has another
    /// counter of steps, so that a number without a mark is no counter.
    pub(super) fn precedes_value(&self, has_steps: bool) -> bool {
        if !self.is_digits || self.is_separated || self.total.is_some() || !self.unit.is_empty() {
            return false;
        }
        let rest = self.after.trim_start_matches([')', ']']).trim_start_matches([' ', '\t']);
        let marked = rest.strip_prefix([':', '=']);
        let rest = marked.map_or(rest, |rest| rest.trim_start_matches([' ', '\t']));
        let Some((_, after)) = scan::value(rest) else { return false };
        let number = rest.get(..rest.len() - after.len()).unwrap_or_default();
        marked.is_some() || (!has_steps && !is_digits(number))
    }

    /// Whether the number is that of the data that a loss is of: `test loss (100 batches): 0.5`.
    pub(super) fn is_of_data(&self) -> bool {
        if self.is_separated {
            return false;
        }
        let after = |word: &str| self.after.trim_start().get(word.len()..);
        self.counted().and_then(after).is_some_and(|after| after.starts_with(')'))
    }

    /// The word after the number, if that counts: `100 steps`.
    pub(super) fn counted(&self) -> Option<&str> {
        if self.is_digits { counted(self.after) } else { None }
    }

    /// The value in seconds, if its unit is a time.
    pub(super) fn in_seconds(&self) -> Option<f64> {
        let of_one = match self.unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" | "msec" => 1e3,
            "us" => 1e6,
            _ => return None,
        };
        Some(self.value / of_one).filter(|seconds| *seconds > 0.0 && seconds.is_finite())
    }
}

/// Iterates over the numbers of a line that have a key or a unit.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    rest: &'a str,
    words: Words<'a>,
    context: Role,
    /// After `:` or `=`.
    separated: bool,
    /// Directly after `=`, so that a word is a value: `level=info`.
    equals: bool,
    /// Nothing but brackets so far.
    leads: bool,
}

impl<'a> Pairs<'a> {
    /// The pairs of `line`.
    pub(super) fn new(line: &'a str) -> Self {
        Self {
            rest: line,
            words: Words::default(),
            context: Role::default(),
            separated: false,
            equals: false,
            leads: true,
        }
    }

    /// Moves the words so far to the context: they have no number.
    fn abandon(&mut self) {
        self.context |= self.words.roles();
        self.words = Words::default();
        self.separated = false;
    }

    fn word(&mut self, word: &'a str) {
        if std::mem::take(&mut self.equals) && self.separated {
            self.abandon();
            self.context |= role(word);
            return;
        }
        if self.separated || self.words.count >= MAX_WORDS {
            self.abandon();
        }
        self.words.push(word);
    }

    /// Handles the character `first`, after which `self.rest` begins.
    fn mark(&mut self, first: char) {
        self.equals = first == '=' || (self.equals && matches!(first, '"' | '\''));
        match first {
            ':' | '=' => self.separated = self.words.count > 0,
            ' ' if self.rest.starts_with("- ") || self.rest.starts_with("-> ") => self.abandon(),
            // A gap parts columns, unless it is before a number.
            ' ' | '\t'
                if !self.separated && (first == '\t' || self.rest.starts_with([' ', '\t'])) =>
            {
                let next = self.rest.trim_start_matches([' ', '\t']);
                if next.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    self.abandon();
                }
            }
            ' ' | '\t' | '[' | ']' | '(' | ')' | '<' | '>' | '"' | '\'' | '{' | '}' | '*' | '#' => {
            }
            _ => self.abandon(),
        }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        loop {
            let first = self.rest.chars().next()?;
            if first.is_alphabetic() || first == '_' {
                if self.words.count > 0
                    && let Some((value, rest)) = number(self.rest)
                {
                    return Some(self.pair(value, rest));
                }
                let length = self.rest.find(|c| !is_of_word(c)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                self.leads = false;
                // `tensor(0.5, device=…)`, unlike other calls, is a value.
                if word != "tensor" {
                    self.word(word);
                    if rest.starts_with('(') && !is_qualified(rest) {
                        self.abandon();
                    }
                }
                continue;
            }
            if may_start_number(first)
                && let Some((value, rest)) = scan::number(self.rest)
            {
                let text = self.rest.get(..self.rest.len() - rest.len()).unwrap_or_default();
                // In `loss over 100 steps: 0.5` the number is one of the words.
                if is_digits(text) && self.is_extent() && counted(rest).is_some() {
                    self.word(text);
                    self.rest = rest;
                    continue;
                }
                return Some(self.pair(value, rest));
            }
            self.rest = self.rest.get(first.len_utf8()..)?;
            self.mark(first);
        }
    }
}

impl<'a> Pairs<'a> {
    /// Whether the words so far end in one that says which steps a mean is of.
    fn is_extent(&self) -> bool {
        let last = self.words.as_slice().last();
        !self.separated && last.is_some_and(|word| begins_extent(word))
    }

    fn pair(&mut self, value: f64, rest: &'a str) -> Pair<'a> {
        let number = self.rest.get(..self.rest.len() - rest.len()).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '%' | 'µ' | '_'));
        let (unit, mut after) =
            rest.split_at_checked(length.unwrap_or(rest.len())).unwrap_or((rest, ""));
        let is_scaled = matches!(unit, "k" | "K" | "M");
        let (factor, unit) = match unit {
            "k" | "K" => (1e3, ""),
            "M" => (1e6, ""),
            _ => (1.0, unit),
        };
        let mut unit = unit;
        let mut total = None;
        if unit.is_empty() {
            if let Some((count, rest)) = denominator(after) {
                (total, after) = (Some(count), rest);
            }
            if !scan::ends_before(after) {
                // A date, a time, a version: the rest is not a separate number.
                let is_part =
                    |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-' | '/' | ',');
                let length = after.find(|c| !is_part(c));
                (unit, after) =
                    after.split_at_checked(length.unwrap_or(after.len())).unwrap_or((after, ""));
            }
        }
        let (seconds, after) = per_step(value, unit, after);
        if unit.is_empty() && seconds.is_none() && total.is_none() {
            (unit, self.rest) = spaced_unit(after);
        } else {
            self.rest = after;
        }
        let is_separated = std::mem::take(&mut self.separated);
        self.equals = false;
        Pair {
            is_digits: is_digits(number) && !is_scaled,
            is_separated,
            words: std::mem::take(&mut self.words),
            context: self.context,
            leads: std::mem::take(&mut self.leads),
            value: value * factor,
            total,
            unit,
            seconds,
            after: self.rest,
        }
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the steps that a mean is of follow `word`.
pub(super) fn begins_extent(word: &str) -> bool {
    ["for", "over", "last", "past", "during"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// The word at the start of `text`, if it names what is counted.
fn counted(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(' ').filter(|rest| may_count(rest))?;
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    rest.get(..length).filter(|word| is_counted(word))
}

/// Words for a step.
const STEPS: [&str; 10] = [
    "step",
    "steps",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "batch",
    "batches",
    "update",
    "updates",
];

/// Whether `word` names what is counted: `steps`, `batches`, `samples`.
pub(super) fn is_counted(word: &str) -> bool {
    const OTHERS: [&str; 5] = ["epoch", "epochs", "samples", "examples", "minibatches"];
    may_count(word) && STEPS.iter().chain(&OTHERS).any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether `word` begins like a word that [`is_counted`].
fn may_count(word: &str) -> bool {
    let first = word.as_bytes().first().map(|first| first | 0x20);
    matches!(first, Some(b's' | b'i' | b'b' | b'u' | b'e' | b'm'))
}

/// The number after a slash or "of", and the text after it.
fn denominator(text: &str) -> Option<(u64, &str)> {
    let trimmed = text.trim_start_matches(' ');
    let of = trimmed.strip_prefix("of ").filter(|_| trimmed.len() < text.len());
    scan::count(trimmed.strip_prefix('/').or(of)?.trim_start_matches(' '))
}

/// A unit of time after a space, and the text after it.
fn spaced_unit(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix(' ') else { return ("", text) };
    if !rest.starts_with(['s', 'm', 'u']) {
        return ("", text);
    }
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let Some((unit, after)) = rest.split_at_checked(length) else { return ("", text) };
    let is_unit = ["s", "sec", "secs", "second", "seconds", "ms", "msec", "us"].contains(&unit);
    // In `0.5 s: 3` it is a key.
    if is_unit && !after.starts_with([':', '=', '/', '_']) { (unit, after) } else { ("", text) }
}

/// Whether parentheses after a word contain the data or the mean that it is of: `Epoch(train)`.
fn is_qualified(rest: &str) -> bool {
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    inside.is_some_and(|(inside, _)| inside.len() <= 10 && role(inside).any(Role::AFTER))
}

/// `nan` and `inf`, which are numbers only after a key.
fn number(text: &str) -> Option<(f64, &str)> {
    if text.starts_with(['n', 'N', 'i', 'I']) { scan::number(text) } else { None }
}

/// The time of a step in seconds from `250ms/step`, `0.855 sec/step`, `4.0 it/s`, and the text
/// after it.
fn per_step<'a>(value: f64, unit: &str, after: &'a str) -> (Option<f64>, &'a str) {
    let (top, rest) = if unit.is_empty() {
        let rest = after.trim_start_matches(' ');
        if !rest.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
            return (None, after);
        }
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        rest.split_at_checked(length).unwrap_or((rest, ""))
    } else {
        (unit, after)
    };
    let per = rest.strip_prefix('/').or_else(|| rest.strip_prefix(" per "));
    let Some(rest) = per else { return (None, after) };
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let Some((bottom, rest)) = rest.split_at_checked(length) else { return (None, after) };
    // `iter/s: 4` is a key.
    if rest.starts_with([':', '=', '_']) || rest.starts_with(" =") {
        return (None, after);
    }
    let is_step = |word: &str| STEPS.contains(&word) || ["it", "its"].contains(&word);
    let seconds = match (top, bottom) {
        ("s" | "sec" | "secs" | "seconds", step) if is_step(step) => value,
        ("ms" | "msec", step) if is_step(step) => value / 1e3,
        ("us", step) if is_step(step) => value / 1e6,
        (step, "s" | "sec" | "second") if is_step(step) => 1.0 / value,
        _ => return (None, after),
    };
    (Some(seconds).filter(|seconds| *seconds > 0.0 && seconds.is_finite()), rest)
}

fn may_start_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | '\u{2212}')
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | '-')
}
