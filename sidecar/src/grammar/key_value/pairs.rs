//! Numbers and the words before them. [`super::numbers`] has what stands beside them.

use super::numbers::{
    attached, begins_extent, counted, denominator, further, glued_loss, is_digits, is_step,
    per_step, spaced_unit,
};
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
    /// The text after it.
    pub(super) after: &'a str,
}

impl Pair<'_> {
    /// Whether the number is a counter between the words and their value, which follows it:
    /// `loss 100 0.5`, `Loss (step 5): 0.25`, `loss [20]: 0.5`. `has_steps`: the line has another
    /// counter of steps, so that a number without a mark is no counter.
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

    /// Whether the number is that of the data that a loss is of: `test loss (100 batches): 0.5`.
    pub(super) fn is_of_data(&self) -> bool {
        if self.is_separated {
            return false;
        }
        let after = |word: &str| self.after.trim_start().get(word.len()..);
        self.counted().and_then(after).is_some_and(|after| after.starts_with(')'))
    }

    /// The end of a range of counters, in place of the number: `Minibatch[ 501-1000]`.
    pub(super) fn range_end(&self) -> Option<Self> {
        if self.form != Form::Digits {
            return None;
        }
        let is_spaced = self.unit.is_empty();
        let text = if is_spaced { self.after } else { self.unit };
        let (end, after) = scan::count(text.strip_prefix('-')?.trim_start())?;
        // Without the bracket, `3-100` may be a counter and its total.
        let closed = |text: &str| text.starts_with([']', ')']);
        let is_whole =
            if is_spaced { closed(after) } else { after.is_empty() && closed(self.after) };
        let value = u32::try_from(end).ok().map(f64::from)?;
        (is_whole && value >= self.value).then_some(Self { value, unit: "", ..*self })
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
        let inside = self.after.trim_start().strip_prefix('(')?;
        let (steps, after) = scan::count(inside)?;
        let (word, _) = after.strip_prefix(' ')?.split_once(')')?;
        let count = u32::try_from(steps).ok().filter(|steps| *steps > 0 && is_step(word))?;
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

    /// The seconds of `00:04:59`.
    pub(super) fn clock(&self) -> Option<f64> {
        let (minutes, rest) = scan::count(self.unit.strip_prefix(':')?)?;
        let (seconds, "") = scan::count(rest.strip_prefix(':')?)? else { return None };
        let seconds = u32::try_from(minutes.checked_mul(60)?.checked_add(seconds)?).ok()?;
        Some(self.value * 3600.0 + f64::from(seconds)).filter(|all| *all > 0.0 && all.is_finite())
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "marks of a line come in any order, so no state names all at once"
)]
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    rest: &'a str,
    /// The last word of the key of the last number, if nothing but brackets follows it so far.
    numbered: &'a str,
    /// The word before parentheses that have no number so far: `Batch(5/90)`.
    called: &'a str,
    words: Words<'a>,
    context: Role,
    /// After `:` or `=`.
    separated: bool,
    /// Directly after `=`, so that a word is a value: `level=info`.
    equals: bool,
    /// Nothing but brackets so far.
    leads: bool,
    /// A counter and its total were in brackets with a comma between them.
    bracketed: bool,
}

impl<'a> Pairs<'a> {
    /// The pairs of `line`.
    pub(super) fn new(line: &'a str) -> Self {
        Self {
            rest: line,
            numbered: "",
            called: "",
            words: Words::default(),
            context: Role::default(),
            separated: false,
            equals: false,
            leads: true,
            bracketed: false,
        }
    }

    /// Moves the words so far to the context: they have no number.
    fn abandon(&mut self) {
        (self.numbered, self.called) = ("", "");
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
        // `loss: train 0.5, val 0.25`, but not `loss: train 12 samples`.
        let is_of_data = self.separated && self.ends_in_loss() && role(word).any(Role::DATA);
        if is_of_data && !self.is_before_amount() {
            self.separated = false;
        }
        if self.separated || self.words.count >= MAX_WORDS {
            self.abandon();
        }
        self.words.push(word);
    }

    /// Handles the arguments of the last word, which are at the start of `rest`. `leads`: the word is
    /// the first one of its line.
    fn call(&mut self, rest: &'a str, leads: bool) {
        let shown = if leads && self.names_loss() { shown_value(rest) } else { None };
        let Some((value, data)) = shown else {
            let name = self.words.as_slice().last().copied().unwrap_or_default();
            self.abandon();
            self.called = name;
            return;
        };
        if let Some(data) = data {
            self.words.push(data);
        }
        (self.separated, self.rest) = (true, value);
    }

    /// Whether a whole number comes next, and after it a word for what it counts. A word for data is a key.
    fn is_before_amount(&self) -> bool {
        let amount = scan::count(self.rest.trim_start_matches([' ', ':', '=']));
        let Some(after) = amount.and_then(|(_, after)| after.strip_prefix(' ')) else {
            return false;
        };
        let length = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        length > 0 && !after.get(..length).is_some_and(|word| role(word).any(Role::DATA))
    }

    /// Whether the last word is "loss" or ends with it, and its value comes next.
    fn names_loss(&self) -> bool {
        !self.separated && self.ends_in_loss()
    }

    /// Whether the last word is "loss" or ends with it.
    fn ends_in_loss(&self) -> bool {
        let last = self.words.as_slice().last();
        last.is_some_and(|word| word.ends_with("oss") || word.ends_with("OSS"))
    }

    /// Handles the character `first`, after which `self.rest` begins.
    fn mark(&mut self, first: char) {
        self.equals = first == '=' || (self.equals && matches!(first, '"' | '\''));
        match first {
            ':' | '=' => self.separated = self.words.count > 0,
            ' ' if self.rest.starts_with("- ") || self.rest.starts_with("-> ") => {
                // `Loss - 0.5`.
                match after_dash(self.rest).filter(|_| self.names_loss()) {
                    Some(value) => (self.separated, self.rest) = (true, value),
                    None => self.abandon(),
                }
            }
            // A gap parts columns, unless it is before a number.
            ' ' | '\t'
                if !self.separated && (first == '\t' || self.rest.starts_with([' ', '\t'])) =>
            {
                let next = self.rest.trim_start_matches([' ', '\t']);
                if next.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    self.abandon();
                }
                // Its last blank stays: a mark may follow.
                let gap = self.rest.len() - next.len();
                self.rest = self.rest.get(gap.saturating_sub(1)..).unwrap_or_default();
            }
            // A list of tuples is a history.
            '[' if begins_tuple(self.rest) => self.abandon(),
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
                // `Batch 5/90 done. Loss: 0.5`. A fold or a run that is done has a result.
                let numbered = std::mem::take(&mut self.numbered);
                if counts_training(numbered) && is_one(word.trim_end_matches('.'), &ENDS) {
                    self.rest = rest;
                    continue;
                }
                if let Some((name, number)) = glued_loss(word)
                    && !rest.trim_start().starts_with([':', '='])
                    && !(self.leads && rest.trim_ascii().is_empty())
                {
                    self.word(name);
                    self.rest = self.rest.get(word.len() - number.len()..)?;
                    let (value, rest) = scan::number(self.rest)?;
                    return Some(self.pair(value, rest));
                }
                if let Some((name, number)) = attached(word) {
                    if self.words.count > 0 {
                        self.abandon();
                    }
                    self.words.push(name);
                    self.rest = self.rest.get(word.len() - number.len()..)?;
                    let (value, rest) = scan::number(self.rest)?;
                    return Some(self.pair(value, rest));
                }
                self.rest = rest;
                let leads = std::mem::take(&mut self.leads);
                // In `training's loss` the letter is no word.
                if let [b'\'', b's', b' ', ..] = rest.as_bytes() {
                    self.rest = rest.get(3..)?;
                }
                // `tensor(0.5, device=…)`, unlike other calls, is a value.
                if !(rest.starts_with('(') && is_number_type(word)) {
                    self.word(word);
                    if rest.starts_with('(') && !is_qualified(rest) {
                        self.call(rest, leads);
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
            if first == '['
                && self.words.count > 0
                && let Some(counted) = in_brackets(self.rest)
                && self.counts_in_brackets(counted.2)
            {
                return Some(self.in_brackets(counted));
            }
            self.rest = self.rest.get(first.len_utf8()..)?;
            self.mark(first);
        }
    }
}

impl<'a> Pairs<'a> {
    /// Whether the brackets after the words so far have a counter: the first ones that of the epoch. Other
    /// brackets with a comma have a shape or a range.
    fn counts_in_brackets(&self, after: &str) -> bool {
        let last = self.words.as_slice().last().copied().unwrap_or_default();
        if self.bracketed {
            return counts_training(last);
        }
        last.eq_ignore_ascii_case("epoch") && is_followed_by_brackets(after)
    }

    /// A counter and its total in brackets, as [`in_brackets`] finds them.
    fn in_brackets(&mut self, (value, total, after): (u32, u64, &'a str)) -> Pair<'a> {
        (self.bracketed, self.leads, self.equals, self.rest) = (true, false, false, after);
        Pair {
            words: std::mem::take(&mut self.words),
            context: self.context,
            leads: false,
            value: f64::from(value),
            form: Form::Digits,
            is_separated: std::mem::take(&mut self.separated),
            total: Some(total),
            list: "",
            unit: "",
            seconds: None,
            after,
        }
    }

    /// Whether the words so far end in one that says which steps a mean is of.
    fn is_extent(&self) -> bool {
        // A batch is of samples, too.
        match self.words.as_slice() {
            _ if self.separated => false,
            [.., loss, of] if of.eq_ignore_ascii_case("of") => loss.ends_with("oss"),
            [.., last] => begins_extent(last),
            [] => false,
        }
    }

    /// Whether the words so far name a value that has no unit.
    fn is_of_value(&self) -> bool {
        let last = self.words.as_slice().last();
        self.ends_in_loss() || last.is_some_and(|word| is_score(word) || is_one(word, &["lr"]))
    }

    fn pair(&mut self, value: f64, rest: &'a str) -> Pair<'a> {
        let number = self.rest.get(..self.rest.len() - rest.len()).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '%' | 'µ' | '_'));
        let (mut unit, mut after) =
            rest.split_at_checked(length.unwrap_or(rest.len())).unwrap_or((rest, ""));
        // In `12s:345ms` the first part is not the whole time.
        if let [b':', b'0'..=b'9', ..] = after.as_bytes()
            && !unit.is_empty()
        {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, ':' | '.');
            let length = after.find(|c| !is_part(c)).unwrap_or(after.len()) + unit.len();
            (unit, after) = rest.split_at_checked(length).unwrap_or((unit, after));
        }
        let is_scaled = matches!(unit, "k" | "K" | "M");
        let (factor, unit) = match unit {
            "k" | "K" => (1e3, ""),
            "M" => (1e6, ""),
            _ => (1.0, unit),
        };
        let mut unit = unit;
        let mut total = None;
        let mut list = "";
        if unit.is_empty() {
            if matches!(after.as_bytes(), [b'/', ..] | [b' ', b'/', ..])
                && !is_digits(number)
                && let Some(length) = further(after)
            {
                (list, after) = after.split_at_checked(length).unwrap_or(("", after));
            } else if let Some((count, rest)) = denominator(after) {
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
        let (mut seconds, mut rest) = per_step(value, unit, after);
        // In `loss 0.5 it/s 4.0` the unit is the next key.
        if seconds.is_some() && unit.is_empty() && self.is_of_value() && is_before_value(rest) {
            (seconds, rest) = (None, after);
        }
        let after = rest;
        if unit.is_empty() && seconds.is_none() && total.is_none() {
            (unit, self.rest) = spaced_unit(after);
        } else {
            self.rest = after;
        }
        let is_separated = std::mem::take(&mut self.separated);
        self.equals = false;
        let called = std::mem::take(&mut self.called);
        self.numbered = self.words.as_slice().last().copied().unwrap_or(called);
        Pair {
            form: match (is_scaled, is_digits(number)) {
                (true, _) => Form::Scaled,
                (false, true) => Form::Digits,
                (false, false) => Form::Other,
            },
            is_separated,
            words: std::mem::take(&mut self.words),
            context: self.context,
            leads: std::mem::take(&mut self.leads),
            value: value * factor,
            total,
            list,
            unit,
            seconds,
            after: self.rest,
        }
    }
}

/// Whether a number without a unit is the next word of `text`. A word after it is the next key if a number
/// follows that.
fn is_before_value(text: &str) -> bool {
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let number = text.strip_prefix(' ').map(str::trim_start).filter(|text| digit(text));
    let Some((_, after)) = number.and_then(scan::number) else { return false };
    let Some(word) = after.strip_prefix(' ').map(str::trim_start) else {
        return scan::ends_before(after);
    };
    let rest = word.trim_start_matches(|c: char| c.is_alphabetic() || matches!(c, '_' | '/'));
    let value = rest.trim_start_matches([' ', ':', '=']);
    rest.len() == word.len() || (value.len() < rest.len() && digit(value))
}

/// Whether the last part of a name is a word for a score: `acc`, `top-1`, `val_acc@5`.
fn is_score(name: &str) -> bool {
    let last = name.split(|c: char| !c.is_alphabetic()).rfind(|part| !part.is_empty());
    last.is_some_and(|word| is_one(word, &SCORES))
}

/// Whether `name` is that of an epoch or of a step.
fn counts_training(name: &str) -> bool {
    is_one(name, &COUNTERS)
}

/// Names of what a training consists of.
const COUNTERS: [&str; 9] =
    ["epoch", "ep", "step", "iter", "iteration", "batch", "minibatch", "mini-batch", "update"];

/// Words after a counter that say that it is over.
const ENDS: [&str; 5] = ["done", "finished", "completed", "complete", "ended"];

/// Words for a score.
const SCORES: [&str; 9] =
    ["acc", "accuracy", "prec", "precision", "top", "err", "error", "correct", "recall"];

fn is_one(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// The value after a dash or an arrow between spaces. A whole number there is a count.
fn after_dash(text: &str) -> Option<&str> {
    let value = text.trim_start_matches(['-', '>']).trim_start_matches(' ');
    let (_, after) = scan::number(value)?;
    let number = value.get(..value.len() - after.len())?;
    number.contains(['.', 'e', 'E']).then_some(value)
}

/// Whether `word` is a type of numbers or of arrays, by its last part: `np.float32`.
fn is_number_type(word: &str) -> bool {
    let name = word.rsplit('.').next().unwrap_or_default();
    NUMBER_TYPES.contains(&name)
}

/// Names of types that a number is printed with.
const NUMBER_TYPES: [&str; 9] =
    ["tensor", "Tensor", "Array", "DeviceArray", "array", "float16", "float32", "float64", "param"];

/// A counter and its total in brackets with a comma: `[3,90]`. And the text after them.
fn in_brackets(text: &str) -> Option<(u32, u64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let inside = text.strip_prefix('[')?;
    let (value, rest) = inside.split_at_checked(digits(inside))?;
    let rest = rest.strip_prefix(',')?.trim_start_matches(' ');
    let (total, rest) = rest.split_at_checked(digits(rest))?;
    // `[1,000]` is a number.
    if total.starts_with('0') {
        return None;
    }
    let (value, total) = (value.parse().ok()?, total.parse().ok()?);
    (u64::from(value) <= total).then_some((value, total, rest.strip_prefix(']')?))
}

/// Whether the next brackets have a counter and its total, too. One pair of brackets alone may have
/// a number with a comma between its thousands, or the epoch and the batch.
fn is_followed_by_brackets(text: &str) -> bool {
    let next = text.find('[').and_then(|at| text.get(at..));
    next.and_then(in_brackets).is_some()
}

/// The value that Julia shows behind an expression, `(x, y) = 0.5`, and the argument that names the data.
fn shown_value(text: &str) -> Option<(&str, Option<&str>)> {
    let (inside, value) = text.strip_prefix('(')?.split_once(") = ")?;
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    };
    // With one argument, it may be the name of a part.
    if !inside.contains(", ") || !inside.split(", ").all(is_name) {
        return None;
    }
    let number = value.strip_prefix("param(").unwrap_or(value);
    let (_, after) = scan::number(number)?;
    let after = after.strip_prefix(')').unwrap_or(after).trim_ascii();
    let parts = inside.split([',', ' ', '_', '.']);
    let data = parts.clone().find(|part| role(part).any(Role::DATA));
    // In `testX`, `xdev` and `x_te` it is not certain.
    let is_short = |name: &str| matches!(name.as_bytes(), [_] | [_, b's']);
    let is_plain = data.is_some() || inside.split(", ").all(is_short);
    let is_whole = after.is_empty() || after == "(tracked)";
    (is_whole && is_plain).then_some((value, data))
}

/// Whether a tuple that begins with a number is at the start of `text`: `(0, 0.5)`.
fn begins_tuple(text: &str) -> bool {
    let number = text.strip_prefix('(').and_then(scan::number);
    number.is_some_and(|(_, after)| after.starts_with(','))
}

/// Whether parentheses after a word contain the data or the mean that it is of: `Epoch(train)`,
/// `loss(train/val)`.
fn is_qualified(rest: &str) -> bool {
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let is_known = |inside: &str| inside.split('/').all(|word| role(word).any(Role::AFTER));
    inside.is_some_and(|(inside, _)| inside.len() <= MAX_QUALIFIED && is_known(inside))
}

/// Maximum length of what is between such parentheses, in bytes.
const MAX_QUALIFIED: usize = 20;

/// `nan` and `inf`, which are numbers only after a key.
fn number(text: &str) -> Option<(f64, &str)> {
    if text.starts_with(['n', 'N', 'i', 'I']) { scan::number(text) } else { None }
}

fn may_start_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | '\u{2212}')
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | '-')
}
