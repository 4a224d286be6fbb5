//! Merges all sources into one job.
//!
//! Sources overlap: a log and an event file contain the same losses, each rank prints its own, a
//! bar is redrawn. The merger takes each step's loss once: from one source at a time, from one
//! rank, of one kind. Step and total come from one source: that of the losses, or another one if
//! only that one knows the total. The merger does no I/O and reads no clock.

mod choice;
mod elapsed;
mod ended;
mod pace;
mod pass;
mod preparation;
mod said;
mod source;
mod steps;
#[cfg(test)]
mod testing;

use paceline_lines::observation::{Loss, Observation, Phase, Span};

use pace::Pace;
use pass::Evaluation;
use source::{SourceState, Wait, of_evaluation};
use steps::{Line, Plan, Position, Total};

/// The kind of a source, in order of preference: losses are taken from the first kind that reports
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reports of the job itself, over HTTP or datagrams.
    Push,
    /// Printed text.
    Text,
    /// Rows of a CSV file.
    Csv,
    /// Event files, which are often minutes late.
    Events,
}

/// Identifies a source of a merger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(usize);

/// One value to report.
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
    /// The planned number of steps; `None` if it is no longer known.
    TotalSteps(Option<u64>),
    /// How many steps the job expects to need.
    ExpectedSteps(u64),
}

/// The origin of the latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyFrom {
    /// Reported by the framework.
    Reported,
    /// Inferred from the times between lines.
    Inferred,
}

/// Settings that the user gives for a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// The name of the loss to report, if there are several.
    pub loss: Option<String>,
    /// Samples in a batch, where lines count samples.
    pub batch_size: Option<u64>,
    /// The planned number of steps, used if no source reports one.
    pub total_steps: Option<u64>,
}

/// Merges the observations of all sources into one job.
#[derive(Debug, Default)]
pub struct Merger {
    hints: Hints,
    sources: Vec<SourceState>,
    plan: Plan,
    /// Where training losses are taken from.
    loss_from: Option<SourceId>,
    /// Where losses on held-out data are taken from.
    validation_from: Option<SourceId>,
    /// Where steps and their total are taken from.
    steps_from: Option<SourceId>,
    /// The last reported step.
    step: Option<u64>,
    /// The last reported total.
    total: Option<u64>,
}

impl Merger {
    /// Creates a merger without sources.
    pub fn new(hints: Hints) -> Self {
        Self { total: hints.total_steps, hints, ..Self::default() }
    }

    /// Adds a source.
    pub fn add(&mut self, kind: Kind) -> SourceId {
        self.sources.push(SourceState::new(kind, self.hints.batch_size));
        SourceId(self.sources.len() - 1)
    }

    /// Takes an observation of `source` at `now`, in seconds; `None` if it is older than its reading, so
    /// that the times between observations are unknown. Passes the values to report to `report`, in order.
    pub fn take(
        &mut self,
        source: SourceId,
        observation: &Observation,
        now: impl Into<Option<f64>>,
        mut report: impl FnMut(Entry),
    ) {
        let now = now.into();
        let Some(state) = self.sources.get_mut(source.0) else { return };
        match state.wait(observation, self.hints.loss.is_some()) {
            Wait::Take => {}
            Wait::Later => return,
            Wait::After(earlier) => self.take_now(source, &earlier, now, &mut report),
        }
        self.take_now(source, observation, now, &mut report);
    }

    fn take_now(
        &mut self,
        source: SourceId,
        observation: &Observation,
        now: Option<f64>,
        report: &mut impl FnMut(Entry),
    ) {
        let Some(state) = self.sources.get_mut(source.0) else { return };
        let named = self.hints.loss.as_deref();
        let evaluation =
            if named.is_none() { state.evaluates(observation, &self.plan) } else { None };
        match evaluation {
            Some(Evaluation::Ends) => {
                return self.take_now(source, &of_evaluation(observation), now, report);
            }
            Some(Evaluation::GoesOn) => return,
            None => {}
        }
        let leads = state.choice.leads(observation);
        let repeats = leads && named.is_none() && state.has_said(observation);
        let loss = if repeats { None } else { state.choice.train(observation, named) };
        let paused = loss.is_none() && !observation.losses.is_empty();
        let line =
            Line { span: loss.map(|loss| loss.span), speaks_for_job: state.kind == Kind::Push };
        self.plan.learn(observation);
        // Where losses come without a rank, the number before a bar is not one.
        let rank = observation.rank.filter(|_| !state.choice.names_no_rank(observation));
        let process = state.process(rank);
        let position = process.steps.place(observation, &self.plan, line);
        // Another part of a loss comes with the time of the first.
        let mut batch =
            if repeats { None } else { process.took(observation, position, now, paused) };
        if !leads {
            return;
        }
        let loss = loss.filter(|loss| state.is_new(observation, position, loss.value));
        if loss.is_none() && line.span.is_some() {
            batch = None;
        }
        state.total = position.total;
        let kind = state.kind;
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
        // After the loss, because a loss alone counts as a step.
        let step = if counts {
            position.global
        } else {
            self.step.filter(|_| gives_losses && loss.is_some())
        };
        // A tag of TensorBoard may count epochs as steps.
        let is_back = kind == Kind::Events && loss.is_none() && step < self.step;
        if let Some(step) = step.filter(|_| !is_back) {
            self.step = Some(step);
            report(Entry::Step(step));
        }
    }

    /// Takes the planned number of steps from `source`, which counts the steps. Returns whether it
    /// has changed.
    fn take_total(&mut self, source: SourceId, position: Position) -> bool {
        let is_new = self.steps_from.replace(source) != Some(source);
        let total = match position.total {
            Total::Steps(total) => Some(total),
            Total::Unknown if !is_new => self.total,
            Total::Unknown | Total::Open => self.hints.total_steps,
        };
        std::mem::replace(&mut self.total, total) != total
    }

    /// Whether `source`, at `position`, counts the steps of the job. The source of the losses does.
    /// Another source does if only it knows the total and it advances.
    fn counts_steps(&self, source: SourceId, position: Position) -> bool {
        let Some(current) = self.steps_from.filter(|current| *current != source) else {
            return true;
        };
        let knows = |id: SourceId| {
            let state = self.sources.get(id.0);
            state.is_some_and(|state| matches!(state.total, Total::Steps(_)))
        };
        if self.loss_from == Some(source) {
            return knows(source) || !knows(current);
        }
        knows(source) && !knows(current) && position.moved
    }

    /// Whether a source of this kind is preferred to the chosen one.
    fn prefers(&self, kind: Kind, chosen: Option<SourceId>) -> bool {
        chosen.and_then(|chosen| self.sources.get(chosen.0)).is_none_or(|state| kind < state.kind)
    }

    /// The settings that the user has given.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Where training losses are taken from.
    pub fn loss_from(&self) -> Option<SourceId> {
        self.loss_from
    }

    /// The steps over which the reported losses are averaged.
    pub fn loss_span(&self) -> Option<Span> {
        self.chosen()?.choice.span()
    }

    /// The origin of the reported latencies.
    pub fn latency_from(&self) -> Option<LatencyFrom> {
        let state = self.chosen()?;
        let rank = state.choice.rank();
        rank.map_or(Some(&state.process), |rank| state.ranks.get(&rank))?.pace.from()
    }

    /// Whether the chosen source's lines arrive in blocks, as from a buffered pipe.
    pub fn is_block_buffered(&self) -> bool {
        let text = self.chosen().filter(|state| state.kind == Kind::Text);
        let processes = text
            .into_iter()
            .flat_map(|state| state.ranks.values().chain([&state.further, &state.process]));
        processes.map(|process| &process.pace).any(Pace::in_blocks)
    }

    /// Each of the lowest ranks of the chosen source: rank, number of batches, sum of their seconds.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, u64, f64)> {
        let ranks = self.chosen().into_iter().flat_map(|state| &state.ranks);
        ranks.map(|(rank, process)| (*rank, process.pace.count(), process.pace.sum()))
    }

    fn chosen(&self) -> Option<&SourceState> {
        self.sources.get(self.loss_from?.0)
    }
}

/// The loss on held-out data, if there is one.
fn held_out(observation: &Observation) -> Option<&Loss> {
    let of = |phase| observation.losses.iter().find(move |loss| loss.phase == phase);
    of(Phase::Validation).or_else(|| of(Phase::Test))
}

#[cfg(test)]
mod tests;
