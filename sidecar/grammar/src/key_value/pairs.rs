//! The numbers of a line, one after the other, each with the words before it. [`super::numbers`] has what stands
//! beside them.

use paceline_lines::observation::Phase;
use paceline_lines::scan;

use super::enclosed::{
    begins_tuple, in_brackets, is_followed_by_brackets, is_qualified, is_unit, shown_value,
};
use super::known_words::{
    ENDS, NUMBERED, counts_training, ends_sentence, is_number_type, is_one, is_score,
};
use super::numbers::{
    after_slash, attached, begins_extent, counted, denominator, further, glued_loss, is_digits,
    per_step, spaced_unit,
};
use super::pair::{Form, Pair, Words, steps_in};
use super::vocabulary::{Role, role, role_of_end};

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
    /// The steps that the time named last is of.
    steps: Option<u64>,
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
            steps: None,
        }
    }

    /// Moves the words so far to the context: they have no number.
    fn abandon(&mut self) {
        (self.numbered, self.called) = ("", "");
        self.context |= self.words.roles();
        self.words = Words::default();
        self.separated = false;
    }

    fn ends_sentence(&self, word: &str, rest: &str) -> bool {
        let evaluates = self.words.roles().any(Role::HELD_OUT | Role::TEST);
        ends_sentence(word, rest, evaluates)
    }

    /// Ends a sentence, which says what the next one is about. Behind `Load the stats.` a loss is an earlier one.
    fn end_sentence(&mut self) {
        if self.words.roles().phase() == Some(Phase::Train) {
            self.context |= Role::ABOUT_TRAINING;
        }
        self.abandon();
        if self.context.any(Role::UNSURE) {
            self.context |= Role::REPEATS;
        }
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
        if self.separated || self.words.is_full() {
            self.abandon();
        }
        self.words.push(word);
    }

    /// Handles the arguments of the last word, which are at the start of `rest`. `leads`: the word is
    /// the first one of its line.
    fn call(&mut self, rest: &'a str, leads: bool) {
        // `Time(100 iters): 5.0s`.
        if self.is_time()
            && let Some((steps, after)) = steps_in(rest)
            && after.trim_start().starts_with([':', '='])
        {
            (self.steps, self.rest) = (Some(steps), after);
            return;
        }
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
            ':' | '=' => {
                self.separated = !self.words.is_empty();
                if !self.separated {
                    self.words = Words::default();
                }
            }
            ' ' if begins_dash(self.rest) => {
                // `Loss - 0.5`.
                // A long arrow has a value behind any name: `seconds_per_step --> 0.5`.
                let is_named = self.rest.starts_with("--") && !self.words.is_empty();
                let may_be = self.names_loss() || (is_named && !self.separated);
                match after_dash(self.rest).filter(|_| may_be) {
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
                if !self.words.is_empty()
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
                    if !self.words.is_empty() {
                        self.abandon();
                    }
                    self.words.push(name);
                    self.rest = self.rest.get(word.len() - number.len()..)?;
                    let (value, rest) = scan::number(self.rest)?;
                    return Some(self.pair(value, rest));
                }
                self.rest = rest;
                let leads = std::mem::take(&mut self.leads);
                // `run_test, loss 0.5`, but not `do_test: True, loss 0.5`.
                if leads && rest.starts_with([',', ':']) && !is_flag(rest) {
                    self.context |= role_of_end(word);
                }
                // In `training's loss` the letter is not a word.
                if let [b'\'', b's', b' ', ..] = rest.as_bytes() {
                    self.rest = rest.get(3..)?;
                }
                // `tensor(0.5, device=…)`, unlike other calls, is a value.
                if !(rest.starts_with('(') && is_number_type(word)) {
                    self.word(word);
                    if word.ends_with('.') && self.ends_sentence(word, rest) {
                        self.end_sentence();
                    }
                    if rest.starts_with('(') && !is_qualified(rest) && !is_unit(rest) {
                        self.call(rest, leads);
                    }
                }
                continue;
            }
            if may_start_number(first)
                && let Some((value, rest)) = scan::number(self.rest)
            {
                let text = self.rest.get(..self.rest.len() - rest.len()).unwrap_or_default();
                // In `loss over 100 steps: 0.5` and `style 2 loss: 0.5` the number is one of the words.
                if is_digits(text)
                    && ((self.is_extent() && counted(rest).is_some()) || self.is_part(rest))
                {
                    self.word(text);
                    self.rest = rest;
                    continue;
                }
                let pair = self.pair(value, rest);
                // The word behind a count is not that of the next key.
                let unit = pair.unit_of_count().map(|(_, rest)| self.rest.len() - rest.len());
                self.rest = unit.and_then(|unit| self.rest.get(unit..)).unwrap_or(self.rest);
                return Some(pair);
            }
            if first == '['
                && !self.words.is_empty()
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
            steps: None,
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

    /// Whether the number after the words so far is that of one of several parts, whose loss follows in `rest`.
    fn is_part(&self, rest: &str) -> bool {
        let Some(next) = rest.strip_prefix(' ').filter(|_| !self.separated) else { return false };
        let loss = next.split([':', '=', ' ']).next().unwrap_or_default();
        loss.eq_ignore_ascii_case("loss")
            && self.words.as_slice().last().is_some_and(|word| is_one(word, &NUMBERED))
    }

    /// Whether the words so far name a time.
    fn is_time(&self) -> bool {
        self.words
            .as_slice()
            .last()
            .is_some_and(|word| is_one(word, &["time", "took", "speed", "dt"]))
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
        let of_step = if unit.is_empty() && self.is_time() { after_slash(after) } else { None };
        after = of_step.unwrap_or(after);
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
        if of_step.is_some() {
            (seconds, rest) = (Some(value).filter(|seconds| *seconds > 0.0), after);
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
            words: std::mem::replace(&mut self.words, Words::behind_number()),
            context: self.context,
            leads: std::mem::take(&mut self.leads),
            value: value * factor,
            total,
            list,
            unit,
            seconds,
            steps: self.steps.take(),
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

/// Whether a truth value follows a colon.
fn is_flag(rest: &str) -> bool {
    let value = rest.strip_prefix(':').unwrap_or_default().trim_start();
    let length = value.find(|c: char| !c.is_alphabetic()).unwrap_or(value.len());
    let values = ["true", "false", "none", "null", "yes", "no"];
    value.get(..length).is_some_and(|word| is_one(word, &values))
}

/// Whether a dash or an arrow between spaces begins here: `- `, `-> `, `--> `.
fn begins_dash(text: &str) -> bool {
    let after = text.trim_start_matches('-');
    after.len() < text.len()
        && (after.starts_with("> ") || (after.starts_with(' ') && text.len() == after.len() + 1))
}

/// The value after a dash or an arrow between spaces. A whole number there is a count.
fn after_dash(text: &str) -> Option<&str> {
    let value = text.trim_start_matches(['-', '>']).trim_start_matches(' ');
    let (_, after) = scan::number(value)?;
    let number = value.get(..value.len() - after.len())?;
    number.contains(['.', 'e', 'E']).then_some(value)
}

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
