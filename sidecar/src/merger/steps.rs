//! The position of a line in the whole run, and the length of the run.

use paceline_lines::number::floor;
use paceline_lines::observation::{Observation, Phase, Span};

use super::ended::Ended;
use super::pass::{Evaluation, Pass};
use super::preparation::Preparation;

/// Number of steps of a run that only reports the fraction done.
const PERCENT: u64 = 100;

/// The planned length of the run, which may be on lines of its own.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The planned number of epochs.
    epochs: Option<u64>,
    /// The same, if it was on a line without a loss.
    announced: Option<u64>,
    /// The planned number of steps.
    steps: Option<u64>,
    batch_size: Size,
}

/// The number of samples in a batch, as the log announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Unknown,
    Known(u64),
    /// There were several numbers, such as that of an evaluation.
    Several,
}

/// The number of steps of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Total {
    /// No source has reported it.
    #[default]
    Unknown,
    /// The number is known.
    Steps(u64),
    /// Steps are counted per epoch and the number of epochs is unknown.
    Open,
}

/// How to place a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// The span of its training loss, if it is reported.
    pub(super) span: Option<Span>,
    /// The job itself reports it: each of its losses without a step counts as a step.
    pub(super) speaks_for_job: bool,
}

/// A position in the run; unknown values are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Position {
    /// Steps since the start.
    pub(super) global: Option<u64>,
    /// The planned total.
    pub(super) total: Total,
    /// The epoch, counted from 1.
    pub(super) epoch: Option<u64>,
    /// Whether the step has advanced.
    pub(super) moved: bool,
}

/// Converts the counters of a process into steps of the whole run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "lines set them independently, so no state names all at once"
)]
#[derive(Debug)]
pub(super) struct Steps {
    batch_size: Option<u64>,
    /// The number of the first epoch: 0 or 1.
    first_epoch: Option<f64>,
    /// The same, as far as results on held-out data show: they may be those of the model before the training.
    first_held_out: Option<f64>,
    /// The last reported epoch.
    epoch: Option<f64>,
    /// The first epoch had a fraction, so epochs are of what is done.
    fractions: bool,
    /// There was one epoch so far, a whole number above 1.
    began_late: bool,
    pass: Pass,
    /// Whether steps have been counted, and not only epochs or fractions of the run.
    counts: bool,
    reached: Option<u64>,
    total: Total,
    /// A counter without epochs and without a length has gone back.
    restarted: bool,
    /// The last step of the run and its total, if no epoch was named. It may turn out to be that of an epoch.
    alone: Option<(u64, u64)>,
    /// That step was that of an epoch, whose number is printed only at its end.
    named_at_end: bool,
    /// The step of the last line of the training with a counter of its own and no total.
    numbered: Option<u64>,
    ended: Ended,
    /// The epoch of the last loss and the highest step in it, and whether steps have gone back where the epoch went on.
    before: Option<(f64, u64)>,
    goes_back: bool,
    preparation: Preparation,
}

impl Plan {
    /// Records the plan of the whole run, if a line contains it.
    pub(super) fn learn(&mut self, observation: &Observation) {
        self.epochs = observation.total_epochs.or(self.epochs);
        if observation.losses.is_empty() {
            self.announced = observation.total_epochs.or(self.announced);
        }
        if let Some(size) = observation.batch_size {
            self.batch_size = match self.batch_size {
                Size::Known(known) if known != size => Size::Several,
                Size::Several => Size::Several,
                Size::Unknown | Size::Known(_) => Size::Known(size),
            };
        }
        if observation.step.is_none() && !observation.step_in_epoch {
            self.steps = observation.total_steps.or(self.steps);
        }
    }
}

impl Steps {
    /// With `batch_size`, samples are converted to steps.
    pub(super) fn new(batch_size: Option<u64>) -> Self {
        Self {
            batch_size,
            first_epoch: None,
            first_held_out: None,
            epoch: None,
            fractions: false,
            began_late: false,
            pass: Pass::default(),
            counts: false,
            reached: None,
            total: Total::Unknown,
            restarted: false,
            alone: None,
            named_at_end: false,
            numbered: None,
            ended: Ended::default(),
            before: None,
            goes_back: false,
            preparation: Preparation::default(),
        }
    }

    /// The position of `observation`.
    pub(super) fn place(&mut self, observation: &Observation, plan: &Plan, line: Line) -> Position {
        if !line.speaks_for_job && self.preparation.is_over(observation, self.epoch) {
            self.forget();
        }
        let says_epochs = self.epoch.is_some();
        let epoch = self.enter(observation);
        if !says_epochs && self.epoch.is_some() && self.is_total_of_pass(plan) {
            self.total = Total::Open;
        }
        let before = self.reached;
        self.ended.take(observation);
        let step = observation.step.and_then(|step| self.batches(observation, step, plan));
        let total =
            observation.total_steps.and_then(|total| self.batches(observation, total, plan));
        let global = if self.is_beside(observation, total) {
            None
        } else if self.is_announced(observation, step, total, plan) {
            step.map(|step| self.in_run(step, total))
        } else if observation.step_in_epoch
            || self.restarts(observation)
            || self.begins_again(observation, step, total)
        {
            let length = total.or(self.ended.length().filter(|length| step <= Some(*length)));
            step.and_then(|step| self.in_epoch(step, length, plan))
        } else if observation.step.is_some() {
            let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
            if let Some(step) = step.filter(|_| trains) {
                self.pass.show(step);
            }
            step.map(|step| self.in_run(step, total.or(plan.steps)))
        } else {
            self.without_step(observation, plan, line)
        };
        let global =
            global.filter(|step| line.speaks_for_job || self.is_of_training(observation, *step));
        self.reached = global.or(self.reached);
        Position { global, total: self.total, epoch, moved: self.reached > before }
    }

    /// Whether a counter of an epoch is that of the run, whose length was announced: it goes on in the next epoch.
    fn is_announced(
        &self,
        observation: &Observation,
        step: Option<u64>,
        total: Option<u64>,
        plan: &Plan,
    ) -> bool {
        let is_total = total.is_some() && plan.steps == total;
        let goes_on = || self.reached.is_none_or(|reached| step >= Some(reached));
        observation.step_in_epoch && is_total && self.pass.before() > 0 && goes_on()
    }

    /// Whether the steps of losses restart with each epoch, although none of its lines shows it. It matters only where a bar
    /// shows how long the epochs are.
    fn restarts(&mut self, observation: &Observation) -> bool {
        let Observation { epoch: Some(epoch), step: Some(step), total_steps: None, .. } =
            *observation
        else {
            return false;
        };
        if !observation.losses.iter().any(|loss| loss.phase == Phase::Train) {
            return false;
        }
        let before = self.before.filter(|(of, _)| epoch >= *of);
        self.goes_back |= before.is_some_and(|(of, most)| epoch > of && step < most);
        let most = before.filter(|(of, _)| epoch <= *of).map_or(step, |(_, most)| most.max(step));
        self.before = Some((epoch, most));
        self.goes_back && self.pass.length().is_some() && self.pass.begin().is_some()
    }

    /// Whether a counter without an epoch has begun again after its total, and an epoch was named in between.
    fn begins_again(
        &mut self,
        observation: &Observation,
        step: Option<u64>,
        total: Option<u64>,
    ) -> bool {
        if let (Some((last, of)), Some(step), None) = (self.alone, step, observation.epoch) {
            // A run that is resumed goes back less far.
            let is_at_end = last.saturating_mul(10) >= of.saturating_mul(9);
            let is_at_start = step.saturating_mul(2) <= of;
            self.named_at_end |=
                self.epoch.is_some() && Some(of) == total && is_at_end && is_at_start;
        }
        self.named_at_end && observation.epoch.is_none() && total.is_some()
    }

    /// Forgets the counters so far, which were those of a preparation.
    fn forget(&mut self) {
        let (batch_size, preparation) = (self.batch_size, std::mem::take(&mut self.preparation));
        *self = Self { preparation, total: Total::Open, ..Self::new(batch_size) };
    }

    /// Whether the total so far is the length of a pass, which is that of the run only without epochs.
    fn is_total_of_pass(&self, plan: &Plan) -> bool {
        let length = self.pass.length().filter(|_| plan.epochs.is_none() && plan.steps.is_none());
        length.is_some_and(|length| self.total == Total::Steps(length))
    }

    /// Whether a counter is that of the training. Beside lines with a loss and a step of their own, a bar without
    /// losses is not if it is behind them: it counts epochs, or the steps of something else.
    fn is_of_training(&mut self, observation: &Observation, step: u64) -> bool {
        let has_total = observation.total_steps.is_some();
        if observation.losses.iter().any(|loss| loss.phase == Phase::Train) {
            if observation.step.is_some() {
                self.numbered = Some(step).filter(|_| !has_total);
            }
            return true;
        }
        let is_bar = observation.losses.is_empty() && observation.step.is_some() && has_total;
        let is_behind = self.numbered.is_some_and(|last| step.saturating_add(1) < last);
        if is_bar && is_behind {
            self.total = Total::Open;
        }
        !(is_bar && is_behind)
    }

    /// Takes a line whose counter is that of a short loop within an epoch, after that of the training.
    pub(super) fn evaluates(
        &mut self,
        observation: &Observation,
        plan: &Plan,
    ) -> Option<Evaluation> {
        let Observation { step, total_steps, epoch, .. } = *observation;
        // In the first line of another epoch, nothing of that has been seen.
        let goes_on = self.epoch.is_some() && epoch.is_none_or(|epoch| Some(epoch) == self.epoch);
        let is_of_epochs = total_steps == plan.epochs;
        if !goes_on || observation.step_in_samples || is_of_epochs {
            return None;
        }
        self.pass.evaluates(step?, total_steps?)
    }

    /// Takes the epoch, if the line has one. Returns it, counted from 1.
    fn enter(&mut self, observation: &Observation) -> Option<u64> {
        let epoch = observation.epoch.filter(|epoch| epoch.is_finite() && *epoch >= 0.0);
        // The program may be recognised only after some lines with its epoch.
        let is_late = observation.epochs_from_zero && self.first_epoch == Some(1.0);
        if is_late {
            self.first_epoch = Some(0.0);
        }
        if let Some(epoch) = epoch
            && (self.epoch != Some(epoch) || is_late)
        {
            // A resumed run that starts at a later epoch is assumed to count from 1, as most do.
            // Fractions begin at 0.
            let from_zero = epoch < 1.0 || epoch.fract() != 0.0;
            // After 2.0, 2.13 is what is done: a run that counts from 1 would have begun at 1.
            if std::mem::take(&mut self.began_late) && epoch.fract() != 0.0 {
                (self.first_epoch, self.fractions) = (Some(0.0), true);
            }
            self.began_late = self.first_epoch.is_none() && !from_zero && epoch > 1.0;
            let first = self.first_epoch(observation, epoch, from_zero);
            // Where fractions are of what is done, a whole number above the last one ends an epoch. One
            // below it has no fraction because its line rounds down.
            let goes_on = self.epoch.is_some_and(|last| epoch > last);
            let ends = self.fractions && goes_on && epoch.fract() == 0.0;
            let ended = if ends { 1.0 } else { 0.0 };
            self.fractions |= self.epoch.is_none() && epoch.fract() != 0.0;
            let before = floor(epoch - first - ended);
            if let Some(before) = before.filter(|before| *before != self.pass.before()) {
                self.pass.go_to(before);
            }
            self.epoch = before.map(|_| epoch);
        }
        let is_known = self.epoch.is_some() && observation.epoch.is_some();
        is_known.then(|| self.pass.before()).and_then(|before| before.checked_add(1))
    }

    /// The number of the first epoch, in a line of `epoch`. An epoch 0 of held-out data alone may be before the
    /// training, whose epochs then count from 1.
    fn first_epoch(&mut self, observation: &Observation, epoch: f64, from_zero: bool) -> f64 {
        if let Some(first) = self.first_epoch {
            return first;
        }
        let usual = if from_zero || observation.epochs_from_zero { 0.0 } else { 1.0 };
        let usual = base(observation, epoch).unwrap_or(usual);
        let trains = observation.losses.iter().any(|loss| loss.phase == Phase::Train);
        if !trains && !observation.losses.is_empty() {
            return *self.first_held_out.get_or_insert(usual);
        }
        let is_next = self.epoch == Some(0.0) && epoch.total_cmp(&1.0).is_eq();
        let first = self.first_held_out.filter(|_| !is_next).unwrap_or(usual);
        *self.first_epoch.insert(first)
    }

    /// Converts a count of `observation` to batches.
    fn batches(&self, observation: &Observation, count: u64, plan: &Plan) -> Option<u64> {
        let announced = match plan.batch_size {
            Size::Known(size) => Some(size),
            Size::Unknown | Size::Several => None,
        };
        match self.batch_size.or(announced) {
            _ if !observation.step_in_samples => Some(count),
            Some(size) if size > 0 => Some(count.div_ceil(size)),
            _ => None,
        }
    }

    /// Whether a line about held-out data counts the steps of that data, and not of the training.
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

    /// Converts `step` of an epoch of `length` steps to a step of the run.
    fn in_epoch(&mut self, step: u64, length: Option<u64>, plan: &Plan) -> Option<u64> {
        let says_epochs = self.epoch.is_some() && !self.named_at_end;
        if let Some((before, total)) = self.alone.take()
            && length == Some(total)
            && !says_epochs
            && self.pass.length().is_none()
        {
            self.pass.take(before, length);
        }
        if let Some(length) = length
            && !says_epochs
            && self.pass.is_over(step, length)
        {
            self.pass.go_to(self.pass.before().saturating_add(1));
        }
        if !self.pass.take(step, length) {
            // Other loops leave the step unchanged.
            return self.reached;
        }
        self.counts = true;
        if let Some(length) = self.pass.length() {
            let total = match plan.epochs {
                // It was announced as that of the run.
                _ if plan.steps == Some(length) && self.pass.before() == 0 => Some(length),
                Some(epochs) => self.pass.total(epochs),
                // A source without epochs has a single one.
                None => Some(length).filter(|_| !says_epochs && self.pass.before() == 0),
            };
            self.total = total.map_or(Total::Open, Total::Steps);
        } else if !says_epochs {
            // Without epochs and their length, only the first pass is certain.
            self.restarted |= self.reached.is_some_and(|reached| step < reached);
            return Some(step).filter(|_| !self.restarted);
        }
        self.pass.begin()?.checked_add(step)
    }

    /// Takes a step of the run and the total, if that is known.
    fn in_run(&mut self, step: u64, total: Option<u64>) -> u64 {
        self.counts = true;
        let known = total.map_or(self.total, Total::Steps);
        // A total below the step is that of something else.
        let is_below = matches!(known, Total::Steps(total) if total < step);
        self.total = if is_below { Total::Open } else { known };
        self.alone = total.map(|total| (step, total)).filter(|_| self.epoch.is_none());
        step
    }

    /// The step of a line without one.
    fn without_step(&mut self, observation: &Observation, plan: &Plan, line: Line) -> Option<u64> {
        if line.speaks_for_job {
            self.total = observation.total_steps.map_or(self.total, Total::Steps);
        }
        if let Some(done) = observation.done {
            return self.part(done, plan);
        }
        if self.counts {
            // Its loss does not add a step.
            return self.reached.filter(|_| line.span.is_some() && !line.speaks_for_job);
        }
        // If only epochs are counted and their number was announced, each one is a step.
        let epochs = plan.announced.filter(|_| line.span == Some(Span::Epoch))?;
        let epoch = self.epoch.is_some().then(|| self.pass.before().checked_add(1)).flatten()?;
        self.total = Total::Steps(epochs.max(epoch));
        Some(epoch)
    }

    /// Converts the fraction done to a step.
    fn part(&mut self, done: f64, plan: &Plan) -> Option<u64> {
        let total = match self.total {
            Total::Steps(total) => total,
            // For a run that counts steps, the fraction is useless without the total.
            Total::Unknown | Total::Open if self.counts => return None,
            Total::Unknown | Total::Open => plan.steps.unwrap_or(PERCENT),
        };
        let step = floor(done * f64::from(u32::try_from(total).ok()?) + 0.5)?;
        self.total = Total::Steps(total);
        Some(step.min(total))
    }
}

/// The number of the first epoch, from a line with the part of the run that is done: `epoch 1.25/4, step 25/400`.
fn base(observation: &Observation, epoch: f64) -> Option<f64> {
    let Observation {
        step: Some(step), total_steps: Some(total), total_epochs: Some(epochs), ..
    } = *observation
    else {
        return None;
    };
    if observation.step_in_epoch || epoch.fract() == 0.0 {
        return None;
    }
    let float = |count: u64| u32::try_from(count).ok().map(f64::from);
    let done = float(step)? / float(total)? * float(epochs)?;
    let near = |first: f64| (epoch - first - done).abs() <= NEAR;
    [0.0, 1.0].into_iter().find(|first| near(*first))
}

/// How far an epoch with a fraction may be from the part of the run that is done.
const NEAR: f64 = 0.25;
