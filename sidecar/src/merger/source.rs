//! What is known of one source: its processes, and which of its losses are new.

use std::collections::BTreeMap;

use paceline_lines::observation::{Loss, Observation, Phase};

use super::Kind;
use super::choice::Choice;
use super::elapsed::RunningTime;
use super::pace::Pace;
use super::pass::Evaluation;
use super::said::Said;
use super::steps::{Plan, Position, Steps, Total};

/// The state of one source.
#[derive(Debug)]
pub(super) struct SourceState {
    pub(super) kind: Kind,
    batch_size: Option<u64>,
    pub(super) choice: Choice,
    /// The step of the last training loss.
    said: Said,
    /// The lowest ranks: at most [`MAX_RANKS`].
    pub(super) ranks: BTreeMap<u32, Process>,
    /// For all higher ranks.
    pub(super) further: Process,
    /// For lines without a rank.
    pub(super) process: Process,
    /// The number of steps of the leading process.
    pub(super) total: Total,
    /// The last step with a loss.
    pub(super) last: Option<Place>,
    /// Where a higher rank was when the leading one printed its first loss, and how many losses up
    /// to there may still come.
    pub(super) repeats: Option<(Place, u8)>,
    /// The epoch and the bits of the last loss, if that had no step, and the checksum of its line.
    of_epoch: Option<(u64, u64, (usize, u64))>,
    /// Whether steps have advanced.
    pub(super) advances: bool,
    /// Parts of a loss, until it is clear that no main loss comes with them.
    pub(super) waiting: Option<Observation>,
}

/// A step with a loss, as its source counts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    rank: Option<u32>,
    epoch: Option<u64>,
    step: Option<u64>,
    global: Option<u64>,
    /// The loss as bits.
    loss: u64,
}

/// Maximum number of ranks that are distinguished. A job may send its step number as a rank, and the
/// allocator refuses a progress of more than 64 KiB.
const MAX_RANKS: usize = 512;

/// Maximum number of losses of the leading rank that repeat those of a higher one before it.
const MAX_REPEATS: u8 = 8;

impl Place {
    /// Whether `other`, of the same process, is of the same step.
    fn is_at(&self, other: Self) -> bool {
        (self.step, self.global, self.epoch) == (other.step, other.global, other.epoch)
    }

    fn is_counted(self) -> bool {
        self.global.or(self.step).or(self.epoch).is_some()
    }

    /// Whether it comes after `other` in the run.
    fn is_beyond(self, other: Self) -> bool {
        match (self.global, other.global) {
            (Some(own), Some(other)) => own > other,
            _ => (self.epoch, self.step) > (other.epoch, other.step),
        }
    }
}

/// What to do with an observation.
pub(super) enum Wait {
    /// Take it.
    Take,
    /// Take it later, or never.
    Later,
    /// Take this earlier one first.
    After(Observation),
}

impl SourceState {
    /// A source of which nothing is known yet. With `batch_size`, samples are converted to steps.
    pub(super) fn new(kind: Kind, batch_size: Option<u64>) -> Self {
        Self {
            kind,
            batch_size,
            choice: Choice::default(),
            said: Said::default(),
            ranks: BTreeMap::new(),
            further: Process::new(batch_size),
            process: Process::new(batch_size),
            total: Total::Unknown,
            last: None,
            repeats: None,
            of_epoch: None,
            advances: false,
            waiting: None,
        }
    }

    /// The process that has printed a line.
    pub(super) fn process(&mut self, rank: Option<u32>) -> &mut Process {
        let Some(rank) = rank else { return &mut self.process };
        if self.ranks.len() >= MAX_RANKS && !self.ranks.contains_key(&rank) {
            if self.ranks.last_key_value().is_some_and(|(highest, _)| *highest < rank) {
                return &mut self.further;
            }
            // The leading rank is the lowest one, and must not share its steps with others.
            self.ranks.pop_last();
        }
        self.ranks.entry(rank).or_insert_with(|| Process::new(self.batch_size))
    }

    /// What a line of an unnamed loop is of an evaluation; `None` if it is not of one.
    pub(super) fn evaluates(
        &mut self,
        observation: &Observation,
        plan: &Plan,
    ) -> Option<Evaluation> {
        if self.kind != Kind::Text || !observation.of_unnamed_loop {
            return None;
        }
        if !self.choice.goes_on(observation) {
            return None;
        }
        let process = self.process(observation.rank);
        let evaluation = process.steps.evaluates(observation, plan)?;
        process.pace.pause();
        Some(evaluation)
    }

    /// Whether a line has only another part of the loss of its step.
    pub(super) fn has_said(&mut self, observation: &Observation) -> bool {
        self.kind == Kind::Text && self.said.repeats(observation)
    }

    /// Whether a loss is not that of the last step again: two loggers may print it, or two processes.
    pub(super) fn is_new(
        &mut self,
        observation: &Observation,
        position: Position,
        loss: f64,
    ) -> bool {
        if self.kind != Kind::Text {
            return true;
        }
        let place = Place {
            rank: observation.rank,
            epoch: position.epoch,
            step: observation.step,
            global: position.global,
            loss: loss.to_bits(),
        };
        // A rounded step stands for several.
        let is_same_rank = self.last.is_some_and(|last| last.rank == place.rank);
        if observation.is_rough && is_same_rank && self.repeats.is_none() {
            return self.last.replace(place) != Some(place);
        }
        // Most lines are of the next step, and no process is named.
        if let Some(last) = &mut self.last
            && place.rank.or(last.rank).is_none()
            && place.step.is_some()
            && self.repeats.is_none()
            && !last.is_at(place)
        {
            self.advances |= last.step.is_some();
            *last = place;
            return true;
        }
        let last = self.last;
        if observation.step.is_some() || place.rank != last.and_then(|last| last.rank) {
            self.last = Some(place);
        }
        // Two reports within an epoch have different parts of it.
        let epoch = observation.epoch.map(f64::to_bits).or(place.epoch);
        let of_epoch = epoch
            .filter(|_| place.epoch.is_some() && place.step.is_none())
            .map(|epoch| (epoch, place.loss, checksum(observation)));
        let before = std::mem::replace(&mut self.of_epoch, of_epoch);
        if let (Some((epoch, loss, all)), Some((last_epoch, last_loss, last_all))) =
            (of_epoch, before)
        {
            let is_known = all.0 != last_all.0 || all == last_all;
            // Several loggers print the loss of an epoch.
            if (epoch, loss) == (last_epoch, last_loss) && is_known {
                return false;
            }
        }
        let Some(last) = last else { return true };
        if place.rank.is_some() && place.rank < last.rank {
            self.repeats = Some((last, MAX_REPEATS));
        }
        if let Some((until, left)) = self.repeats.take()
            && let Some(left) = left.checked_sub(1)
            && !place.is_beyond(until)
        {
            // Without counters, one loss is known to be the same.
            self.repeats = place.is_counted().then_some((until, left));
            return false;
        }
        if observation.step.is_none() {
            return true;
        }
        let same = Place { loss: last.loss, ..place } == last;
        self.advances |= !same && last.step.is_some();
        // Without another step so far, the counter may restart after each line. Within an epoch it does
        // not, so other processes print the line.
        let is_within = position.epoch.is_some()
            && observation.total_steps.is_some_and(|total| observation.step < Some(total))
            && observation.step > Some(0);
        !same || (last.loss != place.loss && !self.advances && !is_within)
    }

    /// Each tag of an event file comes by itself, so parts of a loss wait for the main one.
    pub(super) fn wait(&mut self, observation: &Observation, is_named: bool) -> Wait {
        if self.kind != Kind::Events || is_named || observation.losses.is_empty() {
            return Wait::Take;
        }
        if !self.choice.is_partial(observation) {
            if observation.losses.iter().any(|loss| loss.phase == Phase::Train) {
                self.waiting = None;
            }
            return Wait::Take;
        }
        let Some(waiting) = &self.waiting else {
            self.waiting = Some(observation.clone());
            return Wait::Later;
        };
        // The same part again: the line has no main loss.
        let name =
            |observation: &Observation| observation.losses.first().map(|loss| loss.name.clone());
        if name(waiting) != name(observation) {
            return Wait::Later;
        }
        self.waiting.take().map_or(Wait::Take, Wait::After)
    }
}

/// The number of training losses in a line, and a checksum of them.
fn checksum(observation: &Observation) -> (usize, u64) {
    let losses = observation.losses.iter().filter(|loss| loss.phase == Phase::Train);
    losses.fold((0, 0_u64), |(count, all), loss| {
        (count + 1, all.rotate_left(9) ^ loss.value.to_bits())
    })
}

/// The last line of an evaluation that does not say so: the means of its data.
pub(super) fn of_evaluation(observation: &Observation) -> Observation {
    let Observation { at, epoch, rank, .. } = *observation;
    let of_data = |loss: &Loss| Loss { phase: Phase::Validation, ..loss.clone() };
    let losses = observation.losses.iter().map(of_data).collect();
    Observation { at, epoch, rank, losses, ..Observation::default() }
}

/// The state of one process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) steps: Steps,
    pub(super) pace: Pace,
    running: RunningTime,
}

impl Process {
    pub(super) fn new(batch_size: Option<u64>) -> Self {
        Self {
            steps: Steps::new(batch_size),
            pace: Pace::default(),
            running: RunningTime::default(),
        }
    }

    /// The duration of a batch in seconds, once it is known. A line about the whole run does not
    /// count as a batch.
    pub(super) fn took(
        &mut self,
        observation: &Observation,
        position: Position,
        now: Option<f64>,
        paused: bool,
    ) -> Option<f64> {
        let Observation { step, batch_seconds, losses, .. } = observation;
        if step.is_none() && batch_seconds.is_none() && losses.is_empty() {
            return None;
        }
        let step = position.global.filter(|_| step.is_some());
        // The time between lines that count samples is not that of a batch.
        let is_unknown = observation.step_in_samples && step.is_none();
        let now = observation.at.or(now).filter(|_| !is_unknown);
        // A batch of held-out data is not one of the training, and neither is what another bar counts.
        let is_other = observation.step.is_some() && observation.total_steps.is_some();
        let trains = if losses.is_empty() {
            !(is_other && position.global.is_none())
        } else {
            losses.iter().any(|loss| loss.phase == Phase::Train)
        };
        let mut reported = batch_seconds.filter(|_| trains);
        let mut is_warm = observation.warm;
        if let Some(elapsed) = observation.elapsed.filter(|_| trains)
            && let Some(step) = step
        {
            let between = self.running.took(elapsed, step, position.epoch);
            // It is without the work before the first of both lines.
            is_warm |= reported.is_none() && between.is_some();
            reported = reported.or(between);
        }
        if trains && is_warm {
            self.pace.warm_up();
        }
        self.pace.took(reported, step, now, paused)
    }
}
