//! Detects which program's lines it is given.

mod announced;
mod bars;
mod block;
mod envelope;
mod first_part;
mod follow;
mod heading;
mod item;
mod join;
mod line;
mod mention;
mod opening;
mod processes;
mod score;
mod section;
mod settings;
mod starts;
mod streams;
mod summary;
mod trace;

use paceline_lines::observation::Observation;
use paceline_lines::terminal::prefix::{Stripped, Stripper};
use paceline_lines::terminal::{End, lost_escape, octal};

use super::draft::Draft;
use super::held::Held;
use super::{Grammar, Patterns, Reading};
use super::{
    boosting,
    columns::Columns,
    detection,
    fastprogress::Fastprogress,
    flax,
    hugging_face::HuggingFace,
    json::Json,
    keras::Keras,
    key_value::KeyValue,
    language, megatron,
    mllog::MlLog,
    older, others, pytorch,
    restoration::{BasicSr, Edsr},
    speech,
    tqdm::{Loggable, Tqdm, Yolo},
    vision,
    vowpal::VowpalWabbit,
};
use bars::Bars;
use block::Block;
use first_part::{FirstPart, Seen};
use heading::Heading;
use join::Join;
use mention::Mentions;
use processes::Processes;
pub use score::{Counts, Match};
use starts::Starts;
use streams::Streams;
use summary::Summaries;
pub use trace::{Fate, Traced};

/// Reads lines of any program.
///
/// All grammars are tried on a line, from the particular to the general, until one knows it. A
/// grammar that has read enough lines is tried first. The others are still tried on other lines, so
/// that mixed streams are read too.
#[derive(Debug)]
pub struct Detector {
    patterns: Patterns,
    grammars: Vec<Box<dyn Grammar>>,
    /// The grammar that is tried last.
    general: KeyValue,
    columns: Columns,
    starts: Starts,
    /// What each grammar reads.
    kinds: Vec<Kind>,
    stripper: Stripper,
    /// For each grammar, the number of lines with a loss that it has read. The last three are for the
    /// general grammar, the patterns and the tables.
    explained: Vec<u64>,
    chosen: Option<usize>,
    heading: Option<Heading>,
    bars: Bars,
    held: Held,
    mentions: Mentions,
    block: Block,
    join: Join,
    processes: Processes,
    first_part: FirstPart,
    summaries: Summaries,
    /// The counters of the last line of the training without a bar.
    trained: Option<Place>,
    /// Those of the last loss of the training that took them from a heading.
    batch: Option<Place>,
    /// The epoch of the last loss of the training without a step.
    epoch: Option<f64>,
    /// Numbers have a decimal comma.
    commas: bool,
    counts: Counts,
    draft: Draft,
    /// A further observation of the last line.
    queued: Option<Observation>,
    /// The text in the last line, if that was an envelope of a log collector, or the text behind a bar.
    message: Option<String>,
    /// The rank of the process that printed it.
    rank: Option<u32>,
    streams: Streams,
    /// The grammar that knew the last line, and what it was.
    last: (usize, Reading),
    /// What was made of each line, if a caller asks.
    trace: Option<Vec<Traced>>,
}

/// What a grammar reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bars,
    Dicts,
    /// The general grammar: any line with keys and values.
    General,
    Other,
}

/// A place in the training: the step and its total, and the epoch if the line names one.
#[derive(Clone, Copy, Debug)]
struct Place {
    step: u64,
    total: Option<u64>,
    epoch: Option<f64>,
}

impl Place {
    fn of(found: &Observation) -> Option<Self> {
        let (total, epoch) = (found.total_steps, found.epoch);
        found.step.map(|step| Self { step, total, epoch })
    }
}

/// In place of the index of a grammar, for lines that belong to none.
const NO_GRAMMAR: usize = usize::MAX;

impl Detector {
    /// Creates a detector. `patterns` are tried before its own grammars.
    pub fn new(patterns: Patterns) -> Self {
        let mut grammars: Vec<Box<dyn Grammar>> = Vec::new();
        grammars.push(Box::new(MlLog::default()));
        grammars.extend(speech::grammars());
        grammars.extend(detection::grammars());
        grammars.extend(older::grammars());
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
        grammars.push(Box::new(BasicSr::new()));
        grammars.push(Box::new(Edsr::new()));
        grammars.push(Box::new(VowpalWabbit::default()));
        grammars.push(Box::new(Yolo::default()));
        grammars.push(Box::new(Tqdm::default()));
        grammars.push(Box::new(Loggable::default()));
        grammars.push(Box::new(Fastprogress::default()));
        let explained = vec![0; grammars.len() + 3];
        let starts = Starts::new(&grammars);
        let kind = |grammar: &dyn Grammar| match (grammar.is_of_bars(), grammar.is_of_dicts()) {
            (true, _) => Kind::Bars,
            (_, true) => Kind::Dicts,
            _ => Kind::Other,
        };
        let kinds = grammars.iter().map(AsRef::as_ref).map(kind).chain([Kind::General]).collect();
        Self {
            patterns,
            grammars,
            general: KeyValue::default(),
            columns: Columns::default(),
            starts,
            kinds,
            stripper: Stripper::default(),
            explained,
            chosen: None,
            heading: None,
            bars: Bars::default(),
            held: Held::default(),
            mentions: Mentions::default(),
            block: Block::default(),
            join: Join::default(),
            processes: Processes::default(),
            first_part: FirstPart::default(),
            summaries: Summaries::default(),
            trained: None,
            batch: None,
            epoch: None,
            commas: false,
            counts: Counts::default(),
            draft: Draft::default(),
            queued: None,
            message: None,
            rank: None,
            streams: Streams::default(),
            last: (0, Reading::Foreign),
            trace: None,
        }
    }

    /// Reads a line or frame. Returns its observation if it is new, or that of an earlier line that
    /// is complete with this one. Then [`Detector::further`] has what else there is. `line` comes
    /// from [`paceline_lines::terminal::LineSplitter`], with the prefixes of launchers and loggers.
    pub fn read(&mut self, line: &str, end: End) -> Option<&Observation> {
        self.draft.clear();
        if self.queued.is_some() || self.message.is_some() {
            self.drop_unused();
        }
        match octal::decode(line) {
            Some(decoded) => {
                self.unpack(&decoded, end);
                None
            }
            None => self.read_text(&lost_escape::strip(line), end),
        }
    }

    /// Takes a line that has frames and escape sequences in it, to be read as a text of its own. Each frame has the
    /// prefixes of the line.
    #[cold]
    fn unpack(&mut self, line: &str, end: End) {
        if end == End::Flush {
            return;
        }
        self.streams.current = None;
        let text = self.stripper.strip(line).text;
        self.message = Some(under_prefix(line, text, text.split('\r').map(|frame| (frame, '\r'))));
    }

    /// Drops what a caller has not asked for.
    #[cold]
    fn drop_unused(&mut self) {
        (self.queued, self.message) = (None, None);
    }

    fn read_text(&mut self, line: &str, end: End) -> Option<&Observation> {
        let stripped = self.stripper.strip(line);
        self.streams.current = None;
        if let Some(at) = self.streams.find(&stripped, &self.patterns) {
            return self.other_stream(at, line, end, stripped.process);
        }
        self.rank = stripped.rank;
        let (index, mut reading) = if stripped.text.is_empty() || end == End::Flush {
            self.unended(stripped.text, end)
        } else {
            self.counts.lines += 1;
            self.ended(line, stripped.text, end)
        };
        if self.message.is_some() {
            return None;
        }
        let held = self.follow_blocks(stripped.text, index, &mut reading);
        self.last = (index, reading);
        if self.kind(index) == Kind::Bars && reading != Reading::Foreign && end != End::Flush {
            self.behind_bar(stripped.text);
        }
        let is_new = self.complete(&stripped, end, index, reading);
        if let Some(held) = held {
            return Some(self.before(held, stripped.rank, is_new));
        }
        let is_read = is_new && (self.first_part.is_known() || self.is_read_now(index));
        is_read.then_some(&self.draft.found)
    }

    /// Takes the text directly behind a frame of a bar, if there is some.
    #[inline]
    fn behind_bar(&mut self, text: &str) {
        if let Some(behind) = bars::behind(text) {
            // A line is counted when it is read.
            self.counts.lines -= 1;
            self.message = Some(self.with_rank(behind));
        }
    }

    /// An earlier observation that is complete with the line. `is_new`: that of the line follows.
    #[cold]
    fn before(&mut self, mut held: Observation, rank: Option<u32>, is_new: bool) -> &Observation {
        held.rank = held.rank.max(rank);
        if !held.losses.is_empty() {
            self.explained(self.grammars.len());
        }
        self.queued = is_new.then(|| std::mem::take(&mut self.draft.found));
        self.draft.found = held;
        &self.draft.found
    }

    /// Whether to report what is in the draft: it does not wait for another loss of its step. It may then be
    /// an earlier observation, before that of the line.
    fn is_read_now(&mut self, index: usize) -> bool {
        let seen = if self.kind(index) == Kind::General {
            self.first_part.see(&mut self.draft.found)
        } else {
            self.first_part.pass(&self.draft.found)
        };
        match seen {
            Seen::Take => true,
            Seen::Waits => false,
            Seen::After(earlier) => {
                self.queued = Some(std::mem::replace(&mut self.draft.found, *earlier));
                true
            }
        }
    }

    /// What the grammar at an index reads.
    fn kind(&self, index: usize) -> Kind {
        self.kinds.get(index).copied().unwrap_or(Kind::Other)
    }

    /// A further observation of the last line, after the one that [`Detector::read`] returned.
    #[inline]
    pub fn further(&mut self) -> Option<Observation> {
        if self.streams.current.is_none() && self.queued.is_none() {
            return None;
        }
        match self.streams.current() {
            Some(other) => other.further(),
            None => self.queued.take(),
        }
    }

    /// The text of the program in the last line, if a log collector has wrapped it in an object, or if it
    /// follows a bar.
    #[inline]
    pub(super) fn message(&mut self) -> Option<String> {
        if self.streams.current.is_none() && self.message.is_none() {
            return None;
        }
        match self.streams.current() {
            Some(other) => other.message(),
            None => self.message.take(),
        }
    }

    /// Reads a line of another process, whose state is its own.
    #[inline(never)]
    fn other_stream(
        &mut self,
        at: usize,
        line: &str,
        end: End,
        process: Option<&str>,
    ) -> Option<&Observation> {
        let Self { streams, processes, .. } = self;
        streams.current = Some(at);
        let found = streams.current()?.read(line, end)?;
        let leads = match process.filter(|_| found.rank.is_none()) {
            Some(process) => processes.leads(process, found),
            None => true,
        };
        leads.then_some(found)
    }

    /// Completes the observation in the draft. Returns whether it is new.
    #[inline]
    fn complete(
        &mut self,
        stripped: &Stripped<'_>,
        end: End,
        index: usize,
        reading: Reading,
    ) -> bool {
        if matches!(reading, Reading::Foreign | Reading::Known) {
            return false;
        }
        let kind = self.kind(index);
        let is_bar = kind == Kind::Bars;
        let found = &mut self.draft.found;
        found.rank = found.rank.max(stripped.rank).max(rank_at_end(stripped.text));
        found.at = found.at.or(stripped.at);
        if found.rank.is_none()
            && let Some(process) = stripped.process
            && !self.processes.leads(process, found)
        {
            return false;
        }
        // What a program shows before its first step.
        if end == End::Return && found.step == Some(0) && !found.losses.is_empty() {
            let is_placeholder = found.losses.iter().all(|loss| loss.value == 0.0);
            if is_placeholder {
                return false;
            }
        }
        self.draft.counted_epoch = self.bars.count(is_bar, self.draft.counted_epoch, found);
        if kind == Kind::Other && self.heading.is_none() && reading == Reading::Says {
            found.epoch = found.epoch.or(self.draft.counted_epoch.map(f64::from));
            if !found.losses.is_empty() {
                self.explained(index);
            }
            return true;
        }
        self.complete_in_context(index, reading)
    }

    /// The same for a bar, a line of no fixed form or one below a heading.
    #[inline(never)]
    fn complete_in_context(&mut self, index: usize, reading: Reading) -> bool {
        let kind = self.kind(index);
        let is_bar = kind == Kind::Bars;
        let found = &mut self.draft.found;
        if let Some(heading) = &mut self.heading {
            heading.count_as(found);
        }
        let mut reading = reading;
        if is_bar {
            let is_again = self.bars.frame(self.heading, reading, found);
            if let Reading::Bar { moved } = &mut reading {
                *moved |= is_again;
            }
            self.bars.pass(self.heading, self.draft.counted_epoch, found);
        }
        let is_general = kind == Kind::General;
        if is_general && self.heading.is_some() {
            let counted = found.step.is_some() && found.total_steps.is_some();
            let may_be = self.draft.steps.below_heading || !self.draft.steps.fixed;
            found.step_in_epoch |= counted && may_be && found.epoch.is_none();
        }
        // A time alone may follow the losses of a later epoch than that of the heading.
        let is_time = kind == Kind::Other && found.losses.is_empty() && found.step.is_none();
        if !is_time || found.batch_seconds.is_none() {
            fill_epoch(self.heading, self.draft.counted_epoch, is_bar || is_general, found);
        }
        if is_general {
            if let Some(heading) = self.heading.filter(|_| !self.draft.global) {
                heading.give_length(&mut self.draft.found);
            }
            self.general.correct(&mut self.draft);
        }
        let found = &mut self.draft.found;
        match reading {
            Reading::Bar { moved } => {
                let is_new = self.held.bar(found, moved);
                self.queued = self.held.behind();
                is_new
            }
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
        }
    }

    /// Returns an observation that was waiting for another line. For use when the source is quiet
    /// or has ended.
    pub fn flush(&mut self) -> Option<Observation> {
        let rank = self.rank;
        let of_rank = |held: Observation| Observation { rank: held.rank.max(rank), ..held };
        let own = self.held.flush().or_else(|| {
            let held = self.block.line(false).map(of_rank)?;
            self.explained(self.grammars.len());
            Some(held)
        });
        let own = own.or_else(|| self.first_part.flush());
        own.or_else(|| self.streams.others().find_map(Self::flush))
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::new(Patterns::default())
    }
}

/// The rank of a process in the last words of a line, behind another number: `lr 0.001 rank 0`.
#[inline]
fn rank_at_end(text: &str) -> Option<u32> {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let named = before.strip_suffix(" rank ")?.trim_end_matches([',', ' ', '|', ']']);
    let rank = text.get(before.len()..).filter(|rank| rank.len() <= MAX_RANK)?;
    named.ends_with(|c: char| c.is_ascii_digit()).then(|| rank.parse().ok()).flatten()
}

/// Maximum number of digits of a rank.
const MAX_RANK: usize = 5;

/// Parts of `line`, which are behind its prefixes in `text`, each with these prefixes and with the character that
/// ends it.
fn under_prefix<'a>(
    line: &str,
    text: &str,
    parts: impl Iterator<Item = (&'a str, char)>,
) -> String {
    let prefix = line.get(..line.len() - text.len()).unwrap_or_default();
    let (prefix, _) = prefix.split_once('\r').unwrap_or((prefix, ""));
    let mut lines = String::new();
    for (part, end) in parts {
        lines.push_str(prefix);
        lines.push_str(part);
        lines.push(end);
    }
    lines
}

/// Fills in the epoch from a heading: many programs print it on a line of its own.
fn fill_epoch(
    heading: Option<Heading>,
    counted: Option<u32>,
    is_bar: bool,
    found: &mut Observation,
) {
    let is_global = found.step.is_some() && !found.step_in_epoch;
    if let Some(Heading { epoch, epochs, .. }) = heading
        && found.epoch.is_none()
        && (!is_global || is_bar)
    {
        found.epoch = Some(epoch);
        found.total_epochs = found.total_epochs.or(epochs.filter(|_| !is_global));
    }
    found.epoch = found.epoch.or(counted.map(f64::from));
}

#[cfg(test)]
mod tests;
