//! Numbers and the words before them.

use crate::grammar::scan;

/// A number in a line.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    /// The words right before it, which are its key.
    pub(super) words: Vec<&'a str>,
    /// The words before these that have no number of their own.
    pub(super) context: Vec<&'a str>,
    pub(super) value: f64,
    /// The number after a slash.
    pub(super) total: Option<u64>,
    /// The letters right behind the number, such as `ms` and `%`.
    pub(super) unit: &'a str,
    /// The time of a step, if the unit says that it is one: `0.5 sec/step`.
    pub(super) seconds: Option<f64>,
}

/// More words than these are a sentence.
const MOST: usize = 8;

impl Pair<'_> {
    /// Whether any of `list` stands before the number.
    pub(super) fn is_any(&self, list: &[&str]) -> bool {
        let words = self.words.iter().chain(&self.context);
        words.into_iter().any(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            list.iter().any(|known| word.eq_ignore_ascii_case(known))
        })
    }

    /// The value as a time.
    pub(super) fn in_seconds(&self) -> Option<f64> {
        let of_one = match self.unit {
            "s" => 1.0,
            "ms" => 1e3,
            "us" => 1e6,
            _ => return None,
        };
        Some(self.value / of_one).filter(|seconds| *seconds > 0.0 && seconds.is_finite())
    }
}

/// Walks through the numbers of a line that have a key or a unit.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    rest: &'a str,
    words: Vec<&'a str>,
    context: Vec<&'a str>,
    /// After `:` or `=`.
    separated: bool,
}

impl<'a> Pairs<'a> {
    /// The pairs of `line`.
    pub(super) fn of(line: &'a str) -> Self {
        Self { rest: line, words: Vec::new(), context: Vec::new(), separated: false }
    }

    /// The words so far have no number.
    fn abandon(&mut self) {
        let room = (2 * MOST).saturating_sub(self.context.len());
        self.context.extend(self.words.drain(..).take(room));
        self.separated = false;
    }

    fn word(&mut self, word: &'a str) {
        if self.separated || self.words.len() >= MOST {
            self.abandon();
        }
        self.words.push(word);
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        loop {
            let first = self.rest.chars().next()?;
            if first.is_alphabetic() || first == '_' {
                if let Some((value, rest)) = number(self.rest, &self.words) {
                    return Some(self.pair(value, rest));
                }
                let length = self.rest.find(|c| !is_of_word(c)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                // `tensor(0.5, device=…)`, unlike other calls, is a value.
                if word != "tensor" {
                    self.word(word);
                    if rest.starts_with('(') {
                        self.abandon();
                    }
                }
                continue;
            }
            if may_start_number(first)
                && let Some((value, rest)) = scan::number(self.rest)
            {
                return Some(self.pair(value, rest));
            }
            self.rest = self.rest.get(first.len_utf8()..)?;
            match first {
                ':' | '=' => self.separated = !self.words.is_empty(),
                ' ' if self.rest.starts_with("- ") || self.rest.starts_with("-> ") => {
                    self.abandon();
                }
                ' ' | '[' | ']' | '(' | ')' | '<' | '>' | '"' | '\'' | '{' | '}' | '*' | '#' => {}
                _ => self.abandon(),
            }
        }
    }
}

impl<'a> Pairs<'a> {
    fn pair(&mut self, value: f64, rest: &'a str) -> Pair<'a> {
        let length = rest.find(|c: char| !c.is_alphanumeric() && !"%µ_".contains(c));
        let (unit, mut after) =
            rest.split_at_checked(length.unwrap_or(rest.len())).unwrap_or((rest, ""));
        let (factor, unit) = match unit {
            "k" | "K" => (1e3, ""),
            "M" => (1e6, ""),
            _ => (1.0, unit),
        };
        let mut unit = unit;
        let mut total = None;
        if unit.is_empty() {
            let denominator = after.strip_prefix('/').map(str::trim_start).and_then(scan::count);
            if let Some((count, rest)) = denominator {
                (total, after) = (Some(count), rest);
            }
            if !scan::ends_before(after) {
                // A date, a time, a version: what follows is no number of its own.
                let length = after.find(|c: char| !c.is_ascii_digit() && !".:-/,".contains(c));
                (unit, after) =
                    after.split_at_checked(length.unwrap_or(after.len())).unwrap_or((after, ""));
            }
        }
        let (seconds, after) = per_step(value, unit, after);
        self.rest = after;
        self.separated = false;
        let context = self.context.clone();
        Pair {
            words: std::mem::take(&mut self.words),
            context,
            value: value * factor,
            total,
            unit,
            seconds,
        }
    }
}

/// `nan` and `inf` are numbers only where a key waits for one.
fn number<'a>(text: &'a str, words: &[&str]) -> Option<(f64, &'a str)> {
    let may_be = text.starts_with(['n', 'N', 'i', 'I']) && !words.is_empty();
    if may_be { scan::number(text) } else { None }
}

/// The time of a step from `250ms/step`, `0.855 sec/step`, `4.0 it/s`; what follows.
fn per_step<'a>(value: f64, unit: &str, after: &'a str) -> (Option<f64>, &'a str) {
    let (top, rest) = if unit.is_empty() {
        let rest = after.trim_start_matches(' ');
        let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        rest.split_at_checked(length).unwrap_or((rest, ""))
    } else {
        (unit, after)
    };
    let Some(rest) = rest.strip_prefix('/') else { return (None, after) };
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let Some((bottom, rest)) = rest.split_at_checked(length) else { return (None, after) };
    let is_step = |word: &str| {
        ["step", "steps", "it", "its", "iter", "iters", "batch", "batches"].contains(&word)
    };
    let seconds = match (top, bottom) {
        ("s" | "sec" | "secs" | "seconds", step) if is_step(step) => value,
        ("ms", step) if is_step(step) => value / 1e3,
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
