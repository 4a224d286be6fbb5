//! What all sources say together: one job.
//!
//! Sources overlap. A log and an event file tell the same losses, each rank prints its own, a bar
//! is drawn anew. The desk takes each step's loss once: from one source at a time, from one rank,
//! of one kind. The step and the total belong together, so one source says both: that of the losses,
//! or another one if it alone knows the total. It does no I/O and reads no clock.

mod choice;
mod pace;
mod pass;
mod steps;

use std::collections::BTreeMap;

use crate::observation::{Loss, Observation, Phase, Span};
use choice::Choice;
use pace::Pace;
use steps::{Line, Plan, Position, Steps, Total};

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
    /// How many steps there are to be; `None`: that is not known any more.
    TotalSteps(Option<u64>),
    /// How many of them the job expects to need.
    ExpectedSteps(u64),
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
    /// How many steps there are to be, where no source says so.
    pub total_steps: Option<u64>,
}

/// Makes one job of what sources say.
#[derive(Debug, Default)]
pub struct Desk {
    hints: Hints,
    sources: Vec<Told>,
    plan: Plan,
    /// Where training losses are taken from.
    loss_from: Option<SourceId>,
    /// Where losses on held-out data are taken from.
    validation_from: Option<SourceId>,
    /// Where steps and their total are taken from.
    steps_from: Option<SourceId>,
    /// The step that was reported last.
    step: Option<u64>,
    /// The total that was reported last.
    total: Option<u64>,
}

/// What one source has told.
#[derive(Debug)]
struct Told {
    kind: Kind,
    choice: Choice,
    ranks: BTreeMap<u32, Process>,
    /// Of lines that no rank is said of.
    process: Process,
    /// How many steps the leading process has.
    total: Total,
}

/// What one process has said.
#[derive(Debug)]
struct Process {
    steps: Steps,
    pace: Pace,
}

impl Desk {
    /// A desk without sources.
    pub fn new(hints: Hints) -> Self {
        Self { total: hints.total_steps, hints, ..Self::default() }
    }

    /// One more source.
    pub fn add(&mut self, kind: Kind) -> SourceId {
        self.sources.push(Told {
            kind,
            choice: Choice::default(),
            ranks: BTreeMap::new(),
            process: Process::new(self.hints.batch_size),
            total: Total::Unsaid,
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
        let line =
            Line { span: loss.map(|loss| loss.span), speaks_for_job: told.kind == Kind::Push };
        self.plan.learn(observation);
        let process = match observation.rank {
            Some(rank) => {
                told.ranks.entry(rank).or_insert_with(|| Process::new(self.hints.batch_size))
            }
            None => &mut told.process,
        };
        let position = process.steps.place(observation, &self.plan, line);
        let batch = process.took(observation, position, now, paused);
        if !leads {
            return;
        }
        told.total = position.total;
        let kind = told.kind;
        if loss.is_some() && self.prefers(kind, self.loss_from) {
            self.loss_from = Some(source);
            self.steps_from = None;
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
        let gives_losses = self.loss_from.is_none_or(|chosen| chosen == source);
        let counts = self.counts_steps(source, position);
        if counts && self.take_total(source, position) {
            report(Entry::TotalSteps(self.total));
        }
        if let Some(steps) = observation.expected_steps {
            report(Entry::ExpectedSteps(steps));
        }
        if gives_losses {
            if let Some(epoch) = position.epoch {
                report(Entry::Epoch(epoch));
            }
            if let Some(seconds) = batch {
                report(Entry::Batch(seconds));
            }
            if let Some(loss) = loss {
                report(Entry::Loss(loss.value));
            }
        }
        // After the loss, which counts as a step by itself.
        let step = if counts {
            position.global
        } else {
            self.step.filter(|_| gives_losses && loss.is_some())
        };
        if let Some(step) = step {
            self.step = Some(step);
            report(Entry::Step(step));
        }
    }

    /// Takes the number of steps that there are to be from `source`, which counts the steps. Returns
    /// whether it has changed.
    fn take_total(&mut self, source: SourceId, position: Position) -> bool {
        let is_new = self.steps_from.replace(source) != Some(source);
        let total = match position.total {
            Total::Steps(total) => Some(total),
            Total::Unsaid if !is_new => self.total,
            Total::Unsaid | Total::Open => self.hints.total_steps,
        };
        std::mem::replace(&mut self.total, total) != total
    }

    /// Whether `source`, which is at `position`, counts the steps of the job. That is the source of
    /// the losses, unless another one alone knows how many there are to be, and goes on.
    fn counts_steps(&self, source: SourceId, position: Position) -> bool {
        let Some(current) = self.steps_from.filter(|current| *current != source) else {
            return true;
        };
        let knows = |id: SourceId| {
            let told = self.sources.get(id.0);
            told.is_some_and(|told| matches!(told.total, Total::Steps(_)))
        };
        if self.loss_from == Some(source) {
            return knows(source) || !knows(current);
        }
        knows(source) && !knows(current) && position.moved
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
        rank.map_or(Some(&told.process), |rank| told.ranks.get(&rank))?.pace.from()
    }

    /// Whether the chosen source's lines come in blocks.
    pub fn is_block_buffered(&self) -> bool {
        let text = self.chosen().filter(|told| told.kind == Kind::Text);
        let processes =
            text.into_iter().flat_map(|told| told.ranks.values().chain([&told.process]));
        processes.map(|process| &process.pace).any(Pace::in_blocks)
    }

    /// Each rank of the chosen source with its batches and their seconds.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, u64, f64)> {
        let ranks = self.chosen().into_iter().flat_map(|told| &told.ranks);
        ranks.map(|(rank, process)| (*rank, process.pace.count(), process.pace.sum()))
    }

    fn chosen(&self) -> Option<&Told> {
        self.sources.get(self.loss_from?.0)
    }
}

impl Process {
    fn new(batch_size: Option<u64>) -> Self {
        Self { steps: Steps::new(batch_size), pace: Pace::default() }
    }

    /// How long a batch took, once that is known. A line about the run as a whole is no batch.
    fn took(
        &mut self,
        observation: &Observation,
        position: Position,
        now: f64,
        paused: bool,
    ) -> Option<f64> {
        let Observation { step, batch_seconds, losses, .. } = observation;
        if step.is_none() && batch_seconds.is_none() && losses.is_empty() {
            return None;
        }
        let step = position.global.filter(|_| step.is_some());
        self.pace.took(*batch_seconds, step, observation.at.unwrap_or(now), paused)
    }
}

/// The loss on held-out data, if it says one.
fn held_out(observation: &Observation) -> Option<&Loss> {
    let of = |phase| observation.losses.iter().find(move |loss| loss.phase == phase);
    of(Phase::Validation).or_else(|| of(Phase::Test))
}

#[cfg(test)]
mod tests;
