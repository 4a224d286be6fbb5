//! Finds out which program's lines it is given.

mod announced;
mod heading;
mod mention;

use super::draft::Draft;
use super::held::Held;
use super::{Grammar, Patterns, Reading};
use super::{
    boosting, fastprogress::Fastprogress, flax, hugging_face::HuggingFace, json::Json,
    keras::Keras, key_value::KeyValue, language, megatron, others, pytorch, tqdm::Tqdm, vision,
};
use crate::observation::Observation;
use crate::terminal::End;
use crate::terminal::prefix::{Stripped, strip};
use heading::Heading;
use mention::Mentions;

/// A grammar that has explained so many lines more than any other is tried first.
const ENOUGH: u64 = 8;

/// A program says how long it is going to train before it does: not after so many lines.
const PREFACE: u64 = 10_000;

/// Reads lines of any program.
///
/// All grammars are tried on a line, from the particular to the general, until one knows it. Once
/// one has explained some lines it is tried first, and the others where it does not know a line, so
/// that streams of several programs are read too.
#[derive(Debug)]
pub struct Detector {
    patterns: Patterns,
    grammars: Vec<Box<dyn Grammar>>,
    /// What is tried last.
    general: KeyValue,
    /// For each byte, the places of the grammars whose lines may start with it.
    starts: Vec<Vec<usize>>,
    /// For each grammar, how many lines with a loss it has read; the last two are for the general
    /// one and the patterns.
    explained: Vec<u64>,
    chosen: Option<usize>,
    heading: Option<Heading>,
    /// The bar that counts the steps began below a heading: it is of an epoch.
    below_heading: bool,
    held: Held,
    mentions: Mentions,
    counts: Counts,
    draft: Draft,
}

/// The grammar of most lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// What people call it, such as `keras bar` and `hugging face`; `pattern` for a person's own.
    pub name: &'static str,
    /// Of the lines that tell a new loss, or mention one but could not be read, the share that it
    /// has read: between 0 and 1.
    pub confidence: f64,
}

/// How many lines there have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines and frames, apart from blank ones and those that have not ended.
    pub lines: u64,
    /// Those that told a new loss.
    pub losses: u64,
    /// Those that mention a loss and a number, and that no grammar knows.
    pub unread: u64,
}

impl Detector {
    /// A detector that has seen nothing. `patterns` are tried before its own grammars.
    pub fn new(patterns: Patterns) -> Self {
        let mut grammars: Vec<Box<dyn Grammar>> = Vec::new();
        grammars.extend(pytorch::grammars());
        grammars.extend(vision::grammars());
        grammars.extend(language::grammars());
        grammars.extend(megatron::grammars());
        grammars.push(Box::new(Keras::default()));
        grammars.push(Box::new(HuggingFace::default()));
        grammars.push(Box::new(Json::default()));
        grammars.extend(flax::grammars());
        grammars.extend(boosting::grammars());
        grammars.extend(others::grammars());
        grammars.push(Box::new(Tqdm::default()));
        grammars.push(Box::new(Fastprogress::default()));
        let explained = vec![0; grammars.len() + 2];
        let starting = |byte| {
            let all = grammars.iter().enumerate().filter(|(_, grammar)| grammar.starts(byte));
            all.map(|(index, _)| index).collect()
        };
        let starts = (0..=u8::MAX).map(starting).collect();
        Self {
            patterns,
            grammars,
            general: KeyValue::default(),
            starts,
            explained,
            chosen: None,
            heading: None,
            below_heading: false,
            held: Held::default(),
            mentions: Mentions::default(),
            counts: Counts::default(),
            draft: Draft::default(),
        }
    }

    /// What a line or frame says, if that is anything new. It may also be what an earlier line said
    /// for which this one has the step. `line` is as [`crate::terminal::Screen`] shows it, with
    /// the prefixes of launchers and loggers.
    pub fn read(&mut self, line: &str, end: End) -> Option<&Observation> {
        let Stripped { text, rank, at } = strip(line);
        self.draft.clear();
        let (index, reading) = if text.is_empty() || end == End::Flush {
            self.unended(text, end)
        } else {
            self.counts.lines += 1;
            self.ended(line, text, end)
        };
        if matches!(reading, Reading::Foreign | Reading::Known) {
            return None;
        }
        let found = &mut self.draft.found;
        found.rank = found.rank.or(rank);
        found.at = found.at.or(at);
        if matches!(reading, Reading::Bar { .. }) {
            if found.step == Some(0) {
                self.below_heading = self.heading.is_some();
            }
            found.step_in_epoch |= self.below_heading;
        }
        fill_epoch(self.heading, self.draft.counted_epoch, found);
        let told = match reading {
            Reading::Bar { moved } => self.held.bar(found, moved),
            Reading::SaysBeforeBar => {
                self.explained(index);
                self.held.losses(&mut self.draft.found)
            }
            Reading::Says | Reading::Known | Reading::Foreign => {
                if !found.losses.is_empty() {
                    self.explained(index);
                }
                true
            }
        };
        told.then_some(&self.draft.found)
    }

    /// What has been waiting for another line, for when the source has been quiet or has ended.
    pub fn flush(&mut self) -> Option<Observation> {
        self.held.flush()
    }

    /// The grammar of most lines; `None` while no line has told a loss.
    pub fn matched(&self) -> Option<Match> {
        let (at, most) =
            self.explained.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
        let name = match self.grammars.get(at) {
            Some(grammar) => grammar.name(),
            None if at == self.grammars.len() => self.general.name(),
            None => "pattern",
        };
        let all = self.counts.losses + self.counts.unread;
        (*most > 0).then(|| Match { name, confidence: ratio(*most, all) })
    }

    /// How many lines there have been.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A frame that is blank or has not ended.
    fn unended(&mut self, text: &str, end: End) -> (usize, Reading) {
        let bars = self.grammars.iter_mut().enumerate().filter(|(_, grammar)| grammar.is_of_bars());
        for (index, grammar) in bars {
            let reading = grammar.read(text, end, &mut self.draft);
            if reading != Reading::Foreign {
                return (index, reading);
            }
        }
        (0, Reading::Foreign)
    }

    /// A line or frame, and its text without prefixes.
    fn ended(&mut self, line: &str, text: &str, end: End) -> (usize, Reading) {
        if self.patterns.read(text, &mut self.draft)
            || (line.len() != text.len() && self.patterns.read(line, &mut self.draft))
        {
            return (self.grammars.len() + 1, Reading::Says);
        }
        if let Some(chosen) = self.chosen
            && let Some(grammar) = self.grammars.get_mut(chosen)
        {
            let reading = grammar.read(text, end, &mut self.draft);
            if reading != Reading::Foreign {
                return (chosen, reading);
            }
        }
        let first = text.bytes().next().map_or(0, usize::from);
        for index in self.starts.get(first).into_iter().flatten().copied() {
            if Some(index) != self.chosen
                && let Some(grammar) = self.grammars.get_mut(index)
            {
                let reading = grammar.read(text, end, &mut self.draft);
                if reading != Reading::Foreign {
                    return (index, reading);
                }
            }
        }
        let may_speak = self.mentions.near(text);
        if may_speak && self.general.read(text, end, &mut self.draft) == Reading::Says {
            return (self.grammars.len(), Reading::Says);
        }
        if let Some(heading) = Heading::parse(text) {
            self.heading = Some(heading);
        } else if self.counts.losses == 0
            && self.counts.lines < PREFACE
            && announced::read(text, &mut self.draft.found)
        {
            return (self.grammars.len(), Reading::Says);
        } else if may_speak && self.mentions.a_loss(text) {
            self.counts.unread += 1;
        }
        (0, Reading::Foreign)
    }

    fn explained(&mut self, index: usize) {
        self.counts.losses += 1;
        if let Some(count) = self.explained.get_mut(index) {
            *count += 1;
            let is_particular = index < self.grammars.len();
            if is_particular && *count >= ENOUGH && self.chosen != Some(index) {
                let count = *count;
                let chosen = self.chosen.and_then(|chosen| self.explained.get(chosen));
                if chosen.is_none_or(|chosen| *chosen + ENOUGH <= count) {
                    self.chosen = Some(index);
                }
            }
        }
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::new(Patterns::default())
    }
}

/// Many programs print the epoch on a line of its own.
fn fill_epoch(heading: Option<Heading>, counted: Option<u32>, found: &mut Observation) {
    let is_global = found.step.is_some() && !found.step_in_epoch;
    if let Some(Heading { epoch, epochs }) = heading
        && found.epoch.is_none()
        && !is_global
    {
        found.epoch = Some(epoch);
        found.total_epochs = found.total_epochs.or(epochs);
    }
    found.epoch = found.epoch.or(counted.map(f64::from));
}

/// A share of a count; of more than 2^32, the last digits do not matter.
fn ratio(part: u64, all: u64) -> f64 {
    let shift = (u64::BITS - all.leading_zeros()).saturating_sub(u32::BITS);
    let float = |count: u64| u32::try_from(count >> shift).map_or(f64::NAN, f64::from);
    float(part) / float(all)
}

#[cfg(test)]
mod tests;
