//! A number of a line: the words before it, how it is written, and what its unit and the text after it say.

use paceline_lines::number::whole;
use paceline_lines::scan;

use super::known_words::is_score;
use super::numbers::{counted, is_counted, is_data, is_digits, is_step};
use super::vocabulary::{Role, role};

/// Maximum number of words in a key.
const MAX_WORDS: usize = 8;

/// The words of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words<'a> {
    all: [&'a str; MAX_WORDS],
    count: usize,
    roles: Role,
    /// Nothing but spaces is between the number before and the first of them.
    follow_number: bool,
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

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the first word may be the unit of the number before.
    pub(super) fn follow_number(&self) -> bool {
        self.follow_number
    }

    /// No words so far, directly behind a number.
    pub(super) fn behind_number() -> Self {
        Self { follow_number: true, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_WORDS
    }

    pub(super) fn push(&mut self, word: &'a str) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = word;
            self.count += 1;
            self.roles |= role(word);
        }
    }
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As digits alone, as counters are.
    Digits,
    /// Scaled, and so rounded: `12k`.
    Scaled,
    /// With a point, a sign or an exponent.
    Other,
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
    pub(super) form: Form,
    /// `:` or `=` is between the words and the number.
    pub(super) is_separated: bool,
    /// The number after a slash.
    pub(super) total: Option<u64>,
    /// Further values after slashes: `/0.25` in `train/val loss: 0.5/0.25`.
    pub(super) list: &'a str,
    /// The letters directly after the number, such as `ms` and `%`, or a unit of time after a space.
    pub(super) unit: &'a str,
    /// The time of a step in seconds, if the unit shows that it is one: `0.5 sec/step`.
    pub(super) seconds: Option<f64>,
    /// The steps that a time is of, if they are named before it: `Time(100 iters): 5.0s`.
    pub(super) steps: Option<u64>,
    /// The text after it.
    pub(super) after: &'a str,
}

impl Pair<'_> {
    /// Whether the number is a counter between the words and their value, which follows it:
    /// `loss 100 0.5`, `Loss (step 5): 0.25`, `loss [20]: 0.5`. `has_steps`: the line has another
    /// counter of steps, so that a number without a mark is not a counter.
    pub(super) fn precedes_value(&self, has_steps: bool) -> bool {
        if self.form != Form::Digits
            || self.is_separated
            || self.total.is_some()
            || !self.unit.is_empty()
        {
            return false;
        }
        let rest = self.after.trim_start_matches([')', ']']).trim_start_matches([' ', '\t']);
        let marked = rest.strip_prefix([':', '=']);
        let rest = marked.map_or(rest, |rest| rest.trim_start_matches([' ', '\t']));
        let Some((_, after)) = scan::value(rest) else { return false };
        let number = rest.get(..rest.len() - after.len()).unwrap_or_default();
        marked.is_some() || (!has_steps && !is_digits(number))
    }

    /// Whether the number in brackets belongs to the name before it, because a mark follows: `loss [24] : (0.5,
    /// 0.7)`.
    pub(super) fn is_of_name(&self) -> bool {
        let after = self.after.trim_start_matches([')', ']']);
        self.form == Form::Digits
            && !self.is_separated
            && after.len() < self.after.len()
            && after.trim_start_matches([' ', '\t']).starts_with([':', '='])
    }

    /// Whether the number is that of the data that a loss is of: `test loss (100 batches): 0.5`.
    pub(super) fn is_of_data(&self) -> bool {
        if self.is_separated {
            return false;
        }
        let after = |word: &str| self.after.trim_start().get(word.len()..);
        self.counted().and_then(after).is_some_and(|after| after.starts_with(')'))
    }

    /// The end of a range of counters, in place of the number: `Minibatch[ 501-1000]`. A percentage gives its
    /// total, too: `Minibatch[ 1- 500, 25%]`.
    pub(super) fn range_end(&self) -> Option<Self> {
        if self.form != Form::Digits {
            return None;
        }
        // What ends the number is its unit: `-`, `-1000` or `-1000,`.
        let text = if matches!(self.unit, "" | "-") { self.after } else { self.unit };
        let text = if self.unit == "-" { text } else { text.strip_prefix('-')? };
        let (end, rest) = scan::count(text.trim_start())?;
        let value = u32::try_from(end).ok().map(f64::from).filter(|end| *end >= self.value)?;
        let (mark, after) = if rest.is_empty() || rest == "," {
            (rest, self.after)
        } else {
            rest.split_at_checked(rest.find(|c| c != ',').unwrap_or(rest.len()))?
        };
        // Without the bracket, `3-100` may be a counter and its total.
        let closed = |text: &str| text.starts_with([']', ')']);
        let found = Self { value, unit: "", ..*self };
        if mark.is_empty() {
            return closed(after).then_some(found);
        }
        let (percent, rest) = scan::number(after.trim_start())?;
        let is_share = mark == "," && rest.strip_prefix('%').is_some_and(closed);
        is_share.then(|| Self { total: total_of_share(value, percent), ..found })
    }

    /// What the number and its total count, and the text after that word: `[640/60000 images]`.
    pub(super) fn unit_of_count(&self) -> Option<(&str, &str)> {
        let after = self.after.strip_prefix(' ').filter(|_| self.total.is_some())?;
        let length = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (word, rest) = after.split_at_checked(length).filter(|(word, _)| !word.is_empty())?;
        (rest.starts_with([']', ')']) || is_data(word)).then_some((word, rest))
    }

    /// Whether the number and its total count data, of which a batch has several.
    pub(super) fn counts_data(&self) -> bool {
        self.unit_of_count()
            .is_some_and(|(word, _)| is_data(word) || (word.ends_with('s') && !is_counted(word)))
    }

    /// Whether the share that is done follows the number and its total: `[640/60000 (1%)]`.
    pub(super) fn has_share(&self) -> bool {
        let share = self.after.strip_prefix(" (").filter(|_| self.total.is_some());
        let rest = share.and_then(|share| scan::number(share.trim_start()));
        rest.is_some_and(|(_, rest)| rest.starts_with("%)]"))
    }

    /// The step directly behind a counter of samples and its percentage: `[640/60000 (1%)]10`.
    pub(super) fn step_behind(&self) -> Option<Self> {
        if !matches!(self.unit.as_bytes(), [b'%']) {
            return None;
        }
        let (step, after) = scan::count(self.after.strip_prefix(")]")?)?;
        let value = u32::try_from(step).ok().map(f64::from).filter(|_| scan::ends_before(after))?;
        Some(Self { value, form: Form::Digits, unit: "", ..*self })
    }

    /// The time of a step, if the number is that of several, and their number: `80.5s (100 iters)`.
    pub(super) fn seconds_of_steps(&self) -> Option<(f64, u64)> {
        let behind = || steps_in(self.after.trim_start()).map(|(steps, _)| steps);
        let steps = self.steps.or_else(behind)?;
        let count = u32::try_from(steps).ok().filter(|steps| *steps > 0)?;
        self.in_seconds().map(|seconds| (seconds / f64::from(count), steps))
    }

    /// The word after the number, if that counts: `100 steps`.
    pub(super) fn counted(&self) -> Option<&str> {
        if self.form == Form::Digits { counted(self.after) } else { None }
    }

    /// Whether it is a score in percent before a number in parentheses: `Acc: 50% (32/64)`.
    pub(super) fn is_score(&self) -> bool {
        if !matches!(self.unit.as_bytes(), [b'%']) {
            return false;
        }
        let after = self.after.as_bytes();
        let is_followed = matches!(after, [b' ', b'(', b'0'..=b'9', ..] | [b'(', b'0'..=b'9', ..]);
        is_followed && self.words.as_slice().last().is_some_and(|word| is_score(word))
    }

    /// Whether it is the share that is done, before the counter and its total: `50% (5/10)`.
    pub(super) fn is_share(&self) -> bool {
        let counter = self.after.trim_start_matches([' ', '(', '[', '|']);
        self.unit == "%" && scan::count(counter).is_some_and(|(_, rest)| rest.starts_with('/'))
    }

    /// The seconds of `00:04:59`, `4:59`, `0:04:59.25`, `00h04m59s` and `4m59s`.
    pub(super) fn clock(&self) -> Option<f64> {
        let unit = self.unit.trim_end_matches(',');
        let seconds = match unit.strip_prefix(':') {
            Some(rest) => {
                let (second, rest) = scan::number(rest)?;
                match rest.strip_prefix(':') {
                    Some(rest) => {
                        let (third, "") = scan::number(rest)? else { return None };
                        self.value * 3600.0 + second * 60.0 + third
                    }
                    None if rest.is_empty() => self.value * 60.0 + second,
                    None => return None,
                }
            }
            None => parts_of_clock(self.value, unit)?,
        };
        Some(seconds).filter(|all| *all > 0.0 && all.is_finite())
    }

    /// The value in seconds, if its unit is a time.
    pub(super) fn in_seconds(&self) -> Option<f64> {
        let of_one = match self.unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" | "msec" => 1e3,
            "us" | "µs" | "μs" => 1e6,
            _ => return None,
        };
        Some(self.value / of_one).filter(|seconds| *seconds > 0.0 && seconds.is_finite())
    }
}

/// The seconds of a time whose first number is `first` and whose rest is `unit`: `h04m59s`.
fn parts_of_clock(first: f64, unit: &str) -> Option<f64> {
    let (mut number, mut rest, mut sum) = (first, unit, 0.0);
    loop {
        let (of_one, after) = if let Some(after) = rest.strip_prefix('h') {
            (3600.0, after)
        } else if let Some(after) = rest.strip_prefix('m') {
            (60.0, after)
        } else {
            (1.0, rest.strip_prefix('s')?)
        };
        sum += number * of_one;
        if after.is_empty() {
            break;
        }
        (number, rest) = scan::number(after)?;
    }
    // One part alone is a plain time.
    unit.contains(|c: char| c.is_ascii_digit()).then_some(sum)
}

/// The number of steps in parentheses at the start of `text`, and the text after them: `(100 iters)`.
pub(super) fn steps_in(text: &str) -> Option<(u64, &str)> {
    let (steps, after) = scan::count(text.strip_prefix('(')?)?;
    let (word, after) = after.strip_prefix(' ')?.split_once(')')?;
    is_step(word).then_some((steps, after))
}

/// The number of which `part` is so many percent, if only one fits the digits that are printed.
fn total_of_share(part: f64, percent: f64) -> Option<u64> {
    let at = |percent: f64| part * 100.0 / percent;
    let (least, most) = (at(percent + HALF_DIGIT).ceil(), at(percent - HALF_DIGIT).floor());
    let is_one = percent > HALF_DIGIT && least.total_cmp(&most).is_eq();
    whole(most).filter(|_| is_one)
}

/// Half of the last digit of a percentage with two digits after the point.
const HALF_DIGIT: f64 = 0.005;
