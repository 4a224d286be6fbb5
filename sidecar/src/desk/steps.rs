//! Where in the whole run a line is, and how long the run is.

use super::pass::Pass;
use crate::number::floor;
use crate::observation::{Observation, Phase, Span};

/// How many steps a run has that only says which part of it is done.
const PERCENT: u64 = 100;

/// What sources say of the run as a whole, on lines of its own too.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// How many epochs there are to be.
    epochs: Option<u64>,
    /// How many steps there are to be.
    steps: Option<u64>,
}

/// How many steps the run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Total {
    /// Nothing has been said.
    #[default]
    Unsaid,
    /// So many.
    Steps(u64),
    /// The steps that are counted are those of an epoch, and how many epochs there are is not said.
    Open,
}

/// How a line is to be placed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// What its training loss is the mean of, if it is taken.
    pub(super) span: Option<Span>,
    /// The job itself says it: each of its losses without a step is a step.
    pub(super) speaks_for_job: bool,
}

/// A place in the run; `None` for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Position {
    /// Steps since the start.
    pub(super) global: Option<u64>,
    /// How many there are to be.
    pub(super) total: Total,
    /// The epoch, counted from 1.
    pub(super) epoch: Option<u64>,
    /// Further steps have been made.
    pub(super) moved: bool,
}

/// Counts steps of the whole run from what a process counts.
#[derive(Debug)]
pub(super) struct Steps {
    batch_size: Option<u64>,
    /// What the source calls the first epoch: 0 or 1.
    first_epoch: Option<f64>,
    /// The epoch that was said last.
    epoch: Option<f64>,
    pass: Pass,
    /// Whether steps have been counted, and not epochs or parts of the run alone.
    counts: bool,
    reached: Option<u64>,
    total: Total,
}

impl Plan {
    /// Takes note of what a line says of the whole run.
    pub(super) fn learn(&mut self, observation: &Observation) {
        self.epochs = observation.total_epochs.or(self.epochs);
        if observation.step.is_none() && !observation.step_in_epoch {
            self.steps = observation.total_steps.or(self.steps);
        }
    }
}

impl Steps {
    /// With the size of a batch, samples can be counted as steps.
    pub(super) fn new(batch_size: Option<u64>) -> Self {
        Self {
            batch_size,
            first_epoch: None,
            epoch: None,
            pass: Pass::default(),
            counts: false,
            reached: None,
            total: Total::Unsaid,
        }
    }

    /// Where `observation` is.
    pub(super) fn place(&mut self, observation: &Observation, plan: &Plan, line: Line) -> Position {
        let epoch = self.enter(observation);
        let before = self.reached;
        let step = observation.step.and_then(|step| self.batches(observation, step));
        let total = observation.total_steps.and_then(|total| self.batches(observation, total));
        let global = if self.is_beside(observation, total) {
            None
        } else if observation.step_in_epoch {
            step.and_then(|step| self.in_epoch(step, total, plan))
        } else if observation.step.is_some() {
            step.map(|step| self.in_run(step, total.or(plan.steps)))
        } else {
            self.without_step(observation, plan, line)
        };
        self.reached = global.or(self.reached);
        Position { global, total: self.total, epoch, moved: self.reached > before }
    }

    /// Takes the epoch, if the line says it; returns it, counted from 1.
    fn enter(&mut self, observation: &Observation) -> Option<u64> {
        let epoch = observation.epoch.filter(|epoch| epoch.is_finite() && *epoch >= 0.0);
        if let Some(epoch) = epoch
            && self.epoch != Some(epoch)
        {
            // A run that goes on at a later epoch counts from 1, as most do.
            let first = *self.first_epoch.get_or_insert(if epoch < 1.0 { 0.0 } else { 1.0 });
            let before = floor(epoch - first);
            if let Some(before) = before.filter(|before| *before != self.pass.before()) {
                self.pass.go_to(before);
            }
            self.epoch = before.map(|_| epoch);
        }
        let is_known = self.epoch.is_some() && observation.epoch.is_some();
        is_known.then(|| self.pass.before()).and_then(|before| before.checked_add(1))
    }

    /// A count of `observation`, in batches.
    fn batches(&self, observation: &Observation, count: u64) -> Option<u64> {
        match self.batch_size {
            _ if !observation.step_in_samples => Some(count),
            Some(size) if size > 0 => Some(count.div_ceil(size)),
            _ => None,
        }
    }

    /// Whether the steps of a line about held-out data are those of that data.
    fn is_beside(&self, observation: &Observation, total: Option<u64>) -> bool {
        let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
        if observation.losses.is_empty() || trains {
            return false;
        }
        if observation.step_in_epoch {
            return self.pass.length().is_none() || self.pass.length() != total;
        }
        total.is_some_and(|total| self.total != Total::Steps(total))
    }

    /// The step of the run that is `step` of an epoch of `length` steps.
    fn in_epoch(&mut self, step: u64, length: Option<u64>, plan: &Plan) -> Option<u64> {
        let says_epochs = self.epoch.is_some();
        if let Some(length) = length
            && !says_epochs
            && self.pass.is_over(step, length)
        {
            self.pass.go_to(self.pass.before().saturating_add(1));
        }
        if !self.pass.take(step, length) {
            // What is beside the training leaves its count as it is.
            return self.reached;
        }
        self.counts = true;
        if let Some(length) = self.pass.length() {
            let total = match plan.epochs {
                Some(epochs) => self.pass.total(epochs),
                // A source that has not spoken of epochs has one.
                None => Some(length).filter(|_| !says_epochs && self.pass.before() == 0),
            };
            self.total = total.map_or(Total::Open, Total::Steps);
        } else if !says_epochs {
            return None;
        }
        self.pass.begin()?.checked_add(step)
    }

    /// A step of the run, which has `total` of them if that is known.
    fn in_run(&mut self, step: u64, total: Option<u64>) -> u64 {
        self.counts = true;
        self.total = total.map_or(self.total, Total::Steps);
        step
    }

    /// The step of a line that does not say one.
    fn without_step(&mut self, observation: &Observation, plan: &Plan, line: Line) -> Option<u64> {
        if line.speaks_for_job {
            self.total = observation.total_steps.map_or(self.total, Total::Steps);
        }
        if let Some(done) = observation.done {
            return self.part(done, plan);
        }
        if self.counts {
            // Its loss is no further step.
            return self.reached.filter(|_| line.span.is_some() && !line.speaks_for_job);
        }
        // Where only epochs are counted, each is a step.
        let epochs = plan.epochs.filter(|_| line.span == Some(Span::Epoch))?;
        let epoch = self.epoch.is_some().then(|| self.pass.before().checked_add(1)).flatten()?;
        self.total = Total::Steps(epochs.max(epoch));
        Some(epoch)
    }

    /// The step up to which a part of the run is done.
    fn part(&mut self, done: f64, plan: &Plan) -> Option<u64> {
        let total = match self.total {
            Total::Steps(total) => total,
            // Of a run that counts steps, the part says nothing without their number.
            Total::Unsaid | Total::Open if self.counts => return None,
            Total::Unsaid | Total::Open => plan.steps.unwrap_or(PERCENT),
        };
        let step = floor(done * f64::from(u32::try_from(total).ok()?) + 0.5)?;
        self.total = Total::Steps(total);
        Some(step.min(total))
    }
}
