//! Which grammar knows a line: all are tried, from the particular to the general.

use std::borrow::Cow;

use paceline_lines::terminal::End;
use paceline_lines::translate;
use paceline_lines::{bytes, scan};

use super::envelope;
use super::heading::Heading;
use super::join::Joined;
use super::mention::Language;
use super::section::Section;
use super::{Detector, Kind, NO_GRAMMAR, announced, settings, under_prefix};
use crate::key_value::begins_with_brackets;
use crate::{Grammar, Reading, columns, keras, totals, tuples};

/// Programs announce the length of a training before it starts. After so many lines, announcements
/// are ignored.
const PREFACE: u64 = 10_000;

/// The start of lines that repeat earlier values: the summary of Weights & Biases, and fastai's callback that saves.
const REPEATS: [&str; 2] = ["wandb:", "Better model found at epoch "];

impl Detector {
    /// Reads a frame that is blank or incomplete.
    #[inline(never)]
    pub(super) fn unended(&mut self, text: &str, end: End) -> (usize, Reading) {
        let bars = self.grammars.iter_mut().enumerate().filter(|(_, grammar)| grammar.is_of_bars());
        for (index, grammar) in bars {
            let reading = grammar.read(text, end, &mut self.draft);
            if reading != Reading::Foreign {
                return (index, reading);
            }
        }
        (0, Reading::Foreign)
    }

    /// Reads a complete line or frame. `text` is the line without prefixes.
    #[inline]
    pub(super) fn ended(&mut self, line: &str, text: &str, end: End) -> (usize, Reading) {
        if !self.patterns.is_empty() && self.by_patterns(line, text) {
            return (self.grammars.len() + 1, Reading::Says);
        }
        if REPEATS.iter().any(|start| text.starts_with(start)) {
            return (NO_GRAMMAR, Reading::Known);
        }
        if let Some(frames) = keras::split(text) {
            self.message = Some(under_prefix(line, text, frames.into_iter()));
            self.counts.lines -= 1;
            return (NO_GRAMMAR, Reading::Known);
        }
        // The text in an envelope may be part of an object, but not the envelope.
        if self.join.is_active() && self.is_envelope(text) {
            return (NO_GRAMMAR, Reading::Known);
        }
        if !self.join.may_take(text) {
            return self.alone(text, end);
        }
        self.joined(text, end)
    }

    #[inline(never)]
    fn by_patterns(&mut self, line: &str, text: &str) -> bool {
        self.patterns.read(text, &mut self.draft)
            || (line.len() != text.len() && self.patterns.read(line, &mut self.draft))
    }

    /// Reads a line that may be a part of an object.
    #[inline(never)]
    fn joined(&mut self, text: &str, end: End) -> (usize, Reading) {
        match self.join.take(text) {
            Joined::Alone => self.alone(text, end),
            Joined::Part => (NO_GRAMMAR, Reading::Known),
            Joined::Whole => {
                let whole = self.join.text();
                self.alone(&whole, end)
            }
        }
    }

    /// Takes the text out of an object of a log collector. Returns whether the line is one.
    fn is_envelope(&mut self, text: &str) -> bool {
        let Some(message) =
            Some(text).filter(|text| envelope::may_be(text)).and_then(envelope::message)
        else {
            return false;
        };
        self.message = Some(self.with_rank(&message));
        self.counts.lines -= 1;
        true
    }

    /// A text in a line, with the prefix of a launcher, which is also that of the text.
    pub(super) fn with_rank(&self, text: &str) -> String {
        let rank = self.rank.map_or(String::new(), |rank| format!("[rank{rank}]: "));
        format!("{rank}{text}")
    }

    /// Reads a line that is not a part of a longer text.
    fn alone(&mut self, text: &str, end: End) -> (usize, Reading) {
        let (index, reading) = self.by_grammars(text, end);
        // Other lines have a form of their own.
        let may_list = matches!(self.kind(index), Kind::Dicts | Kind::General);
        if may_list && !self.draft.found.losses.is_empty() && settings::are_listed(text) {
            return self.settings(text);
        }
        (index, reading)
    }

    /// Reads a line that lists settings.
    #[cold]
    fn settings(&mut self, text: &str) -> (usize, Reading) {
        self.draft.clear();
        if self.announces(text) {
            return (self.grammars.len(), Reading::Says);
        }
        (NO_GRAMMAR, Reading::Known)
    }

    #[inline]
    fn by_grammars(&mut self, text: &str, end: End) -> (usize, Reading) {
        if let Some(chosen) = self.chosen
            && let Some(grammar) = self.grammars.get_mut(chosen)
        {
            let reading = grammar.read(text, end, &mut self.draft);
            if reading != Reading::Foreign {
                return (chosen, reading);
            }
        }
        self.not_of_chosen(text, end)
    }

    #[inline(never)]
    fn not_of_chosen(&mut self, text: &str, end: End) -> (usize, Reading) {
        for index in self.starts.of(&self.grammars, text.as_bytes()) {
            if Some(index) != self.chosen
                && let Some(grammar) = self.grammars.get_mut(index)
            {
                let reading = grammar.read(text, end, &mut self.draft);
                if reading != Reading::Foreign {
                    return (index, reading);
                }
            }
        }
        if self.is_envelope(text) {
            return (NO_GRAMMAR, Reading::Known);
        }
        let near = self.mentions.near(text);
        if near.is_none()
            && totals::may_begin(text)
            && self.mentions.a_total(text)
            && let Some(sum) = totals::as_loss(text)
            && let Some(found) = self.general(&sum, Language::English, end)
        {
            return found;
        }
        let may_speak = near.is_some();
        if let Some(language) = near
            && let Some(found) = self.general(text, language, end).or_else(|| self.sum(text, end))
        {
            return found;
        }
        if (may_speak || columns::may_have_total(text))
            && self.columns.header(text, self.counts.losses == 0)
        {
            let is_below = self.block.section() == Some(Section::HeldOut);
            self.columns.held_out = is_below && self.block.is_at_start();
            return (self.table(), Reading::Known);
        }
        if (self.columns.is_active() || text.starts_with(columns::BARS))
            && (self.heading.is_some() || !self.columns.is_of_data())
            && self.columns.row(text, &mut self.draft)
        {
            return (self.table(), Reading::Says);
        }
        let has_number = bytes::contains_digit(text.as_bytes());
        if has_number && let Some(heading) = heading(text) {
            self.heading = Some(heading);
            self.draft.below = Some(heading.epoch);
            // With a batch beside the epoch, the line may be one of an evaluation.
            if !begins_with_brackets(text) && !self.block.takes_epoch(text, heading.epoch) {
                self.queued = self.block.end();
            }
        } else if has_number && self.announces(text) {
            return (self.grammars.len(), Reading::Says);
        } else if may_speak && self.mentions.a_loss(text) {
            self.counts.unread += 1;
        }
        (0, Reading::Foreign)
    }

    /// Reads a line that announces the length of the training, before it starts.
    fn announces(&mut self, text: &str) -> bool {
        self.counts.losses == 0
            && self.counts.lines < PREFACE
            && announced::read(text, &mut self.draft.found)
    }

    /// Reads a line with the parts of a loss behind its name, of which the last is their sum.
    #[inline(never)]
    fn sum(&mut self, text: &str, end: End) -> Option<(usize, Reading)> {
        let sum = totals::behind_name(text)?;
        self.general(&sum, Language::English, end)
    }

    /// Reads a line with the general grammar, in English and with decimal points. A line that was in
    /// another language may then have one of the known forms, too.
    fn general(&mut self, text: &str, language: Language, end: End) -> Option<(usize, Reading)> {
        let mut text = Cow::Borrowed(text);
        if language == Language::Other
            && let Some(english) = translate::labels(&text)
        {
            for index in self.starts.of(&self.grammars, english.as_bytes()) {
                let Some(grammar) = self.grammars.get_mut(index) else { continue };
                let reading = grammar.read(&english, end, &mut self.draft);
                if reading != Reading::Foreign {
                    return Some((index, reading));
                }
            }
            text = Cow::Owned(english);
        } else if let Some(english) = translate::mixed(&text) {
            text = Cow::Owned(english);
        }
        if memchr::memchr(b',', text.as_bytes()).is_some()
            && let Some(points) = translate::commas(&text, self.commas)
        {
            self.commas = true;
            text = Cow::Owned(points);
        }
        // Python 2 prints the arguments as a tuple: `('step', 5, 'loss', 0.5)`.
        if text.starts_with("('") && text.ends_with(')') {
            text = Cow::Owned(text.replace("', ", "': "));
        }
        let pairs = tuples::as_pairs(&text);
        let is_list = pairs.is_some();
        if let Some(pairs) = pairs {
            text = Cow::Owned(pairs);
        }
        if let Some(row) = row_of_two(&text) {
            text = Cow::Owned(row);
        }
        let reading = self.general.read(&text, end, &mut self.draft);
        if reading != Reading::Says {
            return None;
        }
        // Without a counter, such a list may be the result of an evaluation.
        if is_list && self.draft.found.step.is_none() && self.draft.found.epoch.is_none() {
            self.draft.clear();
            return None;
        }
        self.draft.found.of_unnamed_loop = begins_with_bar(&text) && !self.draft.says_train();
        Some((self.grammars.len(), reading))
    }
}

/// Whether a line begins with a bar, and no word: `[==>..] loss 0.5 1/10`. Its counter may stand in it:
/// `[== 1/10 ..] loss 0.5`.
fn begins_with_bar(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    inside.is_some_and(|(bar, _)| {
        let counter = bar.trim_matches(|c: char| !c.is_alphanumeric());
        let is_counter = counter.contains('/') && bar.len() > counter.len() + MIN_BAR;
        let is_known = |byte: u8| byte.is_ascii_digit() || byte == b'/';
        let is_plain = counter.is_empty() || (is_counter && counter.bytes().all(is_known));
        bar.len() > 2 && is_plain
    })
}

/// Minimum number of marks of a bar around its counter. Blanks may stand around a counter in brackets.
const MIN_BAR: usize = 4;

/// The heading of an epoch, in any language.
fn heading(text: &str) -> Option<Heading> {
    Heading::parse(text).or_else(|| {
        let english = if text.len() <= MAX_HEADING { translate::heading(text) } else { None };
        Heading::parse(&english?)
    })
}

/// Maximum length of a heading in another language, in bytes.
const MAX_HEADING: usize = 100;

/// The cells of a row with two of them, as `key: value`.
pub(super) fn row_of_two(text: &str) -> Option<String> {
    // The last bytes of the bars.
    if !matches!(text.as_bytes(), [.., b'|' | 0x82 | 0x83]) {
        return None;
    }
    let bars = ['|', '\u{2502}', '\u{2503}'];
    // The first bar may be gone with the prefix of a logger.
    let inside = text.strip_prefix(bars).unwrap_or(text).strip_suffix(bars)?;
    let (key, value) = inside.split_once(bars)?;
    let (key, value) = (key.trim(), value.trim());
    let is_row = !key.is_empty() && scan::whole(value).is_some();
    is_row.then(|| format!("{key}: {value}"))
}
