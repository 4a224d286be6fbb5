//! What all sources say together: one job.
//!
//! Sources overlap. A log and an event file tell the same losses, each rank prints its own, a bar
//! is drawn anew. The desk takes each step's loss once: from one source at a time, from one rank,
//! of one kind. It does no I/O and reads no clock.

mod choice;
mod pace;
mod steps;

use std::collections::BTreeMap;

use crate::observation::{Loss, Observation, Phase, Span};
use choice::Choice;
use pace::Pace;
use steps::Steps;

/// What a source is; the first of these that tells a loss is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The job itself says so, over HTTP or a datagram.
    Push,
    /// What it prints.
    Text,
    /// Rows of a file.
    Csv,
    /// Event files, which are often minutes late.
    Events,
}

/// One of the sources of a desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(usize);

/// What is to be reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry {
    /// A training loss, which may be NaN or infinite.
    Loss(f64),
    /// A loss on held-out data.
    Validation(f64),
    /// How long a batch took, in seconds.
    Batch(f64),
    /// The step that has been reached.
    Step(u64),
    /// The epoch, counted from 1.
    Epoch(u64),
    /// How many steps there are to be.
    TotalSteps(u64),
}

/// Where latencies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyFrom {
    /// The framework says so.
    Reported,
    /// The times between its lines.
    Inferred,
}

/// What a person knows better.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// The name of the loss to take, where there are several.
    pub loss: Option<String>,
    /// Samples in a batch, where lines count samples.
    pub batch_size: Option<u64>,
}

/// Makes one job of what sources say.
#[derive(Debug, Default)]
pub struct Desk {
    hints: Hints,
    sources: Vec<Told>,
    /// Where training losses are taken from.
    loss_from: Option<SourceId>,
    /// Where losses on held-out data are taken from.
    validation_from: Option<SourceId>,
}

/// What one source has told.
#[derive(Debug)]
struct Told {
    kind: Kind,
    choice: Choice,
    steps: Steps,
    ranks: BTreeMap<u32, Pace>,
    /// Of lines that no rank is said of.
    pace: Pace,
}

impl Desk {
    /// A desk without sources.
    pub fn new(hints: Hints) -> Self {
        Self { hints, ..Self::default() }
    }

    /// One more source.
    pub fn add(&mut self, kind: Kind) -> SourceId {
        self.sources.push(Told {
            kind,
            choice: Choice::default(),
            steps: Steps::new(self.hints.batch_size),
            ranks: BTreeMap::new(),
            pace: Pace::default(),
        });
        SourceId(self.sources.len() - 1)
    }

    /// Takes what `source` says at `now`, in seconds; what is to be reported goes to `report`, in
    /// order.
    pub fn take(
        &mut self,
        source: SourceId,
        observation: &Observation,
        now: f64,
        mut report: impl FnMut(Entry),
    ) {
        let Some(told) = self.sources.get_mut(source.0) else { return };
        let leads = told.choice.leads(observation);
        let loss = told.choice.train(observation, self.hints.loss.as_deref());
        let paused = loss.is_none() && !observation.losses.is_empty();
        let position = told.steps.place(observation);
        let pace = match observation.rank {
            Some(rank) => told.ranks.entry(rank).or_default(),
            None => &mut told.pace,
        };
        let time = observation.at.unwrap_or(now);
        let batch = pace.took(observation.batch_seconds, position.global, time, paused);
        if !leads {
            return;
        }
        let kind = told.kind;
        if loss.is_some() && self.prefers(kind, self.loss_from) {
            self.loss_from = Some(source);
        }
        let validation = held_out(observation);
        if validation.is_some() && self.prefers(kind, self.validation_from) {
            self.validation_from = Some(source);
        }
        if let Some(Loss { value, .. }) =
            validation.filter(|_| self.validation_from == Some(source))
        {
            report(Entry::Validation(*value));
        }
        if self.loss_from.is_some_and(|chosen| chosen != source) {
            return;
        }
        if let Some(steps) = position.total {
            report(Entry::TotalSteps(steps));
        }
        if let Some(epoch) = position.epoch {
            report(Entry::Epoch(epoch));
        }
        if let Some(seconds) = batch {
            report(Entry::Batch(seconds));
        }
        if let Some(loss) = loss {
            report(Entry::Loss(loss.value));
        }
        // After the loss, which counts as a step by itself.
        if let Some(step) = position.global {
            report(Entry::Step(step));
        }
    }

    /// Whether a source of this kind is believed rather than the chosen one.
    fn prefers(&self, kind: Kind, chosen: Option<SourceId>) -> bool {
        chosen.and_then(|chosen| self.sources.get(chosen.0)).is_none_or(|told| kind < told.kind)
    }

    /// Where training losses are taken from.
    pub fn loss_from(&self) -> Option<SourceId> {
        self.loss_from
    }

    /// What the losses that are taken are the mean of.
    pub fn loss_span(&self) -> Option<Span> {
        self.chosen()?.choice.span()
    }

    /// Where the latencies that are taken come from.
    pub fn latency_from(&self) -> Option<LatencyFrom> {
        let told = self.chosen()?;
        let rank = told.choice.rank();
        rank.map_or(Some(&told.pace), |rank| told.ranks.get(&rank))?.from()
    }

    /// Whether the chosen source's lines come in blocks.
    pub fn is_block_buffered(&self) -> bool {
        let paces = |told: &Told| told.pace.in_blocks() || told.ranks.values().any(Pace::in_blocks);
        self.chosen().is_some_and(|told| told.kind == Kind::Text && paces(told))
    }

    /// Each rank of the chosen source with its batches and their seconds.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, u64, f64)> {
        let ranks = self.chosen().into_iter().flat_map(|told| &told.ranks);
        ranks.map(|(rank, pace)| (*rank, pace.count(), pace.sum()))
    }

    fn chosen(&self) -> Option<&Told> {
        self.sources.get(self.loss_from?.0)
    }
}

/// The loss on held-out data, if it says one.
fn held_out(observation: &Observation) -> Option<&Loss> {
    let of = |phase| observation.losses.iter().find(move |loss| loss.phase == phase);
    of(Phase::Validation).or_else(|| of(Phase::Test))
}

#[cfg(test)]
mod tests;
