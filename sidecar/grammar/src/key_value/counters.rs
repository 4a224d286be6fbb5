//! The counters of a line: which of them counts the steps, and whether it restarts with each epoch.

use paceline_lines::number::{float, whole};
use paceline_lines::observation::{Observation, Phase};
use paceline_lines::scan;

use super::pair::{Form, Pair};
use crate::draft::Draft;
use crate::keys::Field;

/// A counter and the number that it counts up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    value: u64,
    total: Option<u64>,
    of: Of,
}

/// What a counter counts, by what stands behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Of {
    #[default]
    Steps,
    /// Samples, or steps: the share that is done follows.
    Shares,
    Samples,
}

impl Of {
    fn after(pair: &Pair<'_>) -> Self {
        if pair.counts_data() {
            Self::Samples
        } else if pair.has_share() {
            Self::Shares
        } else {
            Self::Steps
        }
    }
}

/// The counters of a line, the first of each kind.
#[expect(
    clippy::struct_excessive_bools,
    reason = "marks of a line come in any order, so no state names all at once"
)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    epoch: Option<(f64, Option<u64>)>,
    /// Its name is `ep`, which may be that of an episode.
    short_epoch: bool,
    /// The number after a word such as "Train", which is the epoch if a counter follows it.
    lead: Option<Count>,
    /// Steps of the whole run, by their name.
    global: Option<Count>,
    step: Option<Count>,
    /// Its name is `round`, which may have several epochs.
    is_round: bool,
    batch: Option<Count>,
    /// A number without a name: `[5/90]` after an epoch.
    anonymous: Option<Count>,
    /// A number at the start of the line: `120 | loss 0.5`.
    bare: Option<u64>,
    /// A rounded step: `Step: 12k`. It counts where no other counter does.
    rough: Option<Count>,
    /// The epoch comes before the steps.
    epoch_first: bool,
    /// The epoch is in a pair of brackets before those of the batch.
    paired: bool,
    /// The brackets behind those of the epoch have the batch: `Epoch: [3][50]`.
    before_batch: bool,
    /// Two numbers in parentheses at the start of the line: `(3, 50)`.
    tuple: Option<(u64, u64)>,
    /// A step directly behind a counter of samples.
    behind: Option<u64>,
    /// The last number was a score in percent, which a quotient in parentheses repeats.
    scored: bool,
}

impl Counters {
    /// Takes a number that is neither a loss nor a time, whose key means `field`.
    pub(super) fn take(&mut self, pair: &Pair<'_>, field: Field) {
        let count = whole(pair.value).filter(|_| pair.unit.is_empty());
        let counted = count.map(|value| Count { value, total: pair.total, of: Of::after(pair) });
        match field {
            Field::Epoch if pair.unit.is_empty() => self.epoch(pair),
            Field::GlobalStep | Field::Step if pair.form == Form::Scaled => {
                self.rough = self.rough.or(counted);
            }
            Field::GlobalStep => self.global = self.global.or(counted),
            Field::Step => self.step(pair, counted),
            Field::Batch => self.batch = self.batch.or(counted),
            Field::Loss { .. }
            | Field::BatchTime(_)
            | Field::BatchRate
            | Field::Epoch
            | Field::Epochs
            | Field::Steps
            | Field::StepOf
            | Field::At
            | Field::Elapsed
            | Field::BesideTime
            | Field::Rank
            | Field::Data
            | Field::Flag(_)
            | Field::Other => self.unnamed(pair, counted),
        }
    }

    /// Takes a step, also behind a round of several epochs: `Round 2 Epoch: 1 | Iteration: 10/40`.
    fn step(&mut self, pair: &Pair<'_>, counted: Option<Count>) {
        let last = pair.words.as_slice().last();
        let is_round = last.is_some_and(|name| name.eq_ignore_ascii_case("round"));
        if self.step.is_none() {
            (self.step, self.is_round) = (counted, is_round);
        } else if self.is_round && !is_round && self.epoch.is_some() && counted.is_some() {
            (self.step, self.is_round, self.epoch_first) = (counted, false, true);
        }
    }

    fn epoch(&mut self, pair: &Pair<'_>) {
        let is_short =
            pair.words.as_slice().last().is_some_and(|name| name.eq_ignore_ascii_case("ep"));
        let counts = self.epoch.is_none() || (self.short_epoch && !is_short);
        if counts && pair.value.is_finite() {
            self.epoch = Some((pair.value, pair.total));
            self.short_epoch = is_short;
            self.epoch_first = self.step.is_none();
            self.before_batch = self.is_without_steps() && pair.after.starts_with("][");
        }
    }

    fn unnamed(&mut self, pair: &Pair<'_>, counted: Option<Count>) {
        let is_batch = std::mem::take(&mut self.before_batch);
        let Some(count) = counted else {
            self.scored = pair.is_score();
            return;
        };
        let words = pair.words.as_slice();
        // `Acc: 50% (32/64)` counts samples.
        if std::mem::take(&mut self.scored) && words.is_empty() {
            return;
        }
        if !words.is_empty() {
            let roles = pair.words.roles();
            if let [name, "count" | "counter" | "idx" | "index"] = words
                && count.total.is_some()
                && self.named(name, count)
            {
                return;
            }
            let is_index = matches!(words, [word] if ["i", "n", "idx"].contains(word));
            if is_index && count.total.is_some() {
                self.anonymous = self.anonymous.or(Some(count));
                return;
            }
            let is_lead = words.len() == 1 && roles.phase().is_some() && self.lead.is_none();
            if is_lead && self.is_empty() {
                self.lead = Some(count);
            } else if count.total.is_some() && roles.phase().is_some_and(|of| of != Phase::Train) {
                self.anonymous = self.anonymous.or(Some(count));
            }
            return;
        }
        if is_batch && pair.form == Form::Digits && pair.after.starts_with(']') {
            self.anonymous = Some(count);
            return;
        }
        // `57.00` is a time or a value.
        if pair.form == Form::Other && count.total.is_none() {
            return;
        }
        if count.total.is_some() {
            // `[3: 5/90]` has the epoch and the batch.
            if let Some(epoch) = self.bare
                && self.epoch.is_none()
                && pair.after.starts_with(']')
            {
                (self.epoch, self.bare, self.epoch_first) =
                    (Some((float(epoch), None)), None, true);
            }
            match self.anonymous {
                None => {
                    self.anonymous = Some(count);
                    self.name_lead();
                }
                // Two in a row are the epoch and the batch.
                Some(first)
                    if self.epoch.is_none() && self.lead.is_none() && self.bare.is_none() =>
                {
                    self.epoch = Some((float(first.value), first.total));
                    (self.anonymous, self.epoch_first) = (Some(count), true);
                    self.paired = true;
                }
                Some(_) => {}
            }
        } else if self.bare.is_some() && self.is_empty() && pair.after.starts_with(']') {
            // `[3,  5]` has the epoch and the batch, too.
            let bare = self.bare.take().filter(|_| self.anonymous.is_none());
            self.epoch = bare.map(|epoch| (float(epoch), None));
            self.anonymous = self.anonymous.or(bare.map(|_| count));
            self.epoch_first = true;
        } else if self.bare.is_some() && self.is_empty() && pair.after.starts_with(')') {
            let bare = self.bare.take().filter(|_| self.anonymous.is_none());
            self.tuple = bare.map(|first| (first, count.value));
        } else if pair.leads && count.value < 1_000_000_000 && is_parted(pair.after) {
            self.bare = Some(count.value);
        }
    }

    /// Takes a counter with its total by the first word of its name: `batch count: 5/90`. Returns whether it is one.
    fn named(&mut self, name: &str, count: Count) -> bool {
        let is = |names: [&str; 3]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is(["batch", "minibatch", "mini-batch"]) {
            self.batch = self.batch.or(Some(count));
        } else if is(["step", "iter", "iteration"]) {
            self.step = self.step.or(Some(count));
        } else {
            return false;
        }
        true
    }

    /// The batch of an epoch that is beside a step without a total, and equal to it.
    fn batch_beside(&self, step: Count) -> Option<Count> {
        let is_same = |batch: &Count| batch.total.is_some() && batch.value == step.value;
        self.batch.filter(is_same).filter(|_| step.total.is_none())
    }

    /// The number after "Train" is the epoch, because another counter follows it.
    fn name_lead(&mut self) {
        if let Some(lead) = self.lead.filter(|_| self.epoch.is_none()) {
            self.epoch = Some((float(lead.value), lead.total));
            self.epoch_first = true;
        }
    }

    /// Takes a step directly behind a counter of samples.
    pub(super) fn take_behind(&mut self, pair: &Pair<'_>) {
        self.behind = self.behind.or(whole(pair.value));
        self.take(pair, Field::Step);
    }

    /// The steps of an epoch, by the samples up to this one.
    fn length_behind(&self) -> Option<u64> {
        let (step, samples) = (self.behind?, self.anonymous?);
        let is_even = step > 0 && samples.value > 0 && samples.value.is_multiple_of(step);
        let size = is_even.then(|| samples.value / step)?;
        Some(samples.total?.div_ceil(size))
    }

    fn is_without_steps(&self) -> bool {
        !self.has_steps() && self.anonymous.is_none()
    }

    fn is_empty(&self) -> bool {
        self.epoch.is_none() && self.step.is_none() && self.batch.is_none()
    }

    /// Whether a step or a batch was named.
    pub(super) fn has_steps(&self) -> bool {
        self.global.or(self.step).or(self.batch).or(self.rough).is_some()
    }

    /// Whether a step, a batch or an epoch was named.
    pub(super) fn has_place(&self) -> bool {
        self.has_steps() || self.epoch.is_some()
    }

    /// Whether the steps are those of the whole run, by their name.
    pub(super) fn is_global(&self) -> bool {
        self.global.is_some()
    }

    /// Whether the steps restart with each epoch in any case, or never.
    pub(super) fn is_fixed(&self) -> bool {
        self.global.is_some() || (self.step.is_none() && self.batch.or(self.anonymous).is_some())
    }

    /// The length of the run from the lengths of its epochs, if `step` of the run is where `beside`, a
    /// counter of the epoch, says. It is not if several batches are one step.
    fn total_of_run(self, step: u64, beside: Count) -> Option<u64> {
        let (epoch, epochs) = self.epoch?;
        let (length, epochs) = (beside.total?, epochs?);
        let epoch = whole(epoch)?;
        let is_at = |passed: u64| {
            let place = passed.checked_mul(length).and_then(|done| done.checked_add(beside.value));
            place.is_some_and(|place| place.abs_diff(step) <= 1)
        };
        let is_there = is_at(epoch) || epoch.checked_sub(1).is_some_and(is_at);
        length.checked_mul(epochs).filter(|_| is_there)
    }

    /// Writes the counters into `draft`.
    pub(super) fn settle(mut self, order: &mut Order, draft: &mut Draft) {
        let found = &mut draft.found;
        order.behind =
            if self.behind.is_some() { self.length_behind().or(order.behind) } else { None };
        if self.paired {
            order.epochs = self.epoch.and_then(|(epoch, epochs)| Some((epoch, epochs?)));
        } else if order.epochs.is_some() && self.is_empty() {
            // The brackets of the batch are missing at the end of an epoch. Another number than that of the
            // last epoch may be a step of an evaluation.
            let of_epochs = |count: &mut Count| {
                count.total.map(|epochs| (float(count.value), epochs)) == order.epochs
            };
            let epoch = self.anonymous.take_if(of_epochs);
            self.epoch = epoch.map(|count| (float(count.value), count.total));
        }
        if let Some((epoch, epochs)) = self.epoch {
            (found.epoch, found.total_epochs) = (Some(epoch), epochs.or(found.total_epochs));
        }
        if let Some(tuple) = self.tuple.filter(|_| self.is_empty()) {
            order.tuples.take(tuple, found);
        }
        // Held-out data are counted by themselves: `Test: [5/20]`.
        let lead = self.lead.filter(|lead| self.epoch.is_none() && lead.total.is_some());
        let anonymous = self.anonymous.or(lead);
        found.step_in_samples = anonymous.is_some_and(|count| order.is_of_samples(count));
        if let Some(count) = self.global {
            let beside = self.step.or(self.batch).or(anonymous);
            let total = count.total.or_else(|| self.total_of_run(count.value, beside?));
            Count { total, ..count }.put(found, false);
        } else if let Some(batch) = self.step.and_then(|step| self.batch_beside(step)) {
            batch.put(found, true);
        } else if let Some(count) = self.step {
            let in_epoch = order.of_steps(count.total, self.epoch, self.epoch_first);
            count.put(found, in_epoch);
        } else if let Some(count) = self.batch {
            count.put(found, true);
        } else if let Some(count) = anonymous {
            // An epoch with a fraction is computed from the steps of the run.
            let in_epoch = self.epoch.is_some_and(|(epoch, _)| epoch.fract() == 0.0);
            count.put(found, in_epoch);
            draft.steps.below_heading = self.epoch.is_none();
        } else if let Some(step) = self.bare {
            found.step = Some(step);
        } else if let Some(count) = self.rough {
            count.put(found, false);
            found.is_rough = true;
        }
    }
}

impl Count {
    fn put(self, found: &mut Observation, in_epoch: bool) {
        found.step_in_samples &= self.of != Of::Steps;
        found.step = Some(self.value);
        found.total_steps = self.total.or(found.total_steps.filter(|_| !in_epoch));
        found.step_in_epoch = in_epoch;
    }
}

/// Whether the steps of a program restart with each epoch.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The last epoch and step of the training.
    last: Option<(f64, u64)>,
    /// Once that is known.
    in_epoch: Option<bool>,
    /// The last epoch and the number of epochs, where their brackets come before those of the batch.
    epochs: Option<(f64, u64)>,
    /// The steps of an epoch, where steps are directly behind samples.
    behind: Option<u64>,
    alone: Alone,
    tuples: Tuples,
    /// Epochs have had fractions, so they are computed from the steps of the run.
    fractions: bool,
    /// A counter with its share has not moved by whole batches, so it counts steps.
    shares_of_steps: bool,
}

/// A counter with a total and without a name or an epoch. It is that of the run, or of each epoch.
#[derive(Debug, Default)]
struct Alone {
    step: u64,
    total: Option<u64>,
    /// How far it went on with its last line.
    stride: u64,
    /// It has begun again after its end, so it is that of an epoch.
    of_epochs: bool,
}

impl Alone {
    /// Takes the counter. Returns whether it is that of an epoch.
    fn take(&mut self, step: u64, total: Option<u64>) -> bool {
        if self.total != total {
            *self = Self { step, total, ..Self::default() };
            return false;
        }
        let Some(stride) = step.checked_sub(self.step) else {
            let is_at_end = total <= self.step.checked_add(self.stride);
            self.of_epochs |= is_at_end && step <= self.stride;
            self.step = step;
            return self.of_epochs;
        };
        (self.step, self.stride) = (step, stride.max(1));
        self.of_epochs
    }
}

/// Two numbers in parentheses, without names: the epoch and the batch, or a step and something else. The one that
/// moves is the step.
#[derive(Debug, Default)]
struct Tuples {
    last: Option<(u64, u64)>,
    moves: Option<Moves>,
}

#[derive(Clone, Copy, Debug)]
enum Moves {
    First,
    Second,
}

impl Tuples {
    fn take(&mut self, tuple: (u64, u64), found: &mut Observation) {
        let last = self.last.replace(tuple);
        let moves = last.and_then(|last| match (tuple.0 > last.0, tuple.1 > last.1) {
            (true, false) if tuple.1 == last.1 => Some(Moves::First),
            (false, true) if tuple.0 == last.0 => Some(Moves::Second),
            _ => None,
        });
        self.moves = self.moves.or(moves);
        match self.moves {
            Some(Moves::First) => found.step = Some(tuple.0),
            Some(Moves::Second) => {
                found.epoch = Some(float(tuple.0));
                (found.step, found.step_in_epoch) = (Some(tuple.1), true);
            }
            None => {}
        }
    }
}

/// Samples of a batch, at least, and of an epoch.
const MIN_BATCH: u64 = 8;
const MIN_SAMPLES: u64 = 1000;

impl Order {
    /// Whether a counter counts samples.
    fn is_of_samples(&mut self, count: Count) -> bool {
        if count.of == Of::Shares {
            let is_small = count.total.is_some_and(|total| total < MIN_SAMPLES);
            let is_end = count.total == Some(count.value);
            self.shares_of_steps |= is_small || !(count.value.is_multiple_of(MIN_BATCH) || is_end);
        }
        count.of == Of::Samples || (count.of == Of::Shares && !self.shares_of_steps)
    }

    /// Corrects whether a counter without an epoch restarts, once it has done so.
    pub(super) fn correct_alone(&mut self, found: &mut Observation) {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        if let Some(step) = found.step
            && trains
            && found.epoch.is_none()
            && found.total_steps.is_some()
        {
            found.step_in_epoch |= self.alone.take(step, found.total_steps);
        }
    }

    /// Whether there was a counter with a total and without a name or an epoch.
    pub(super) fn has_alone(&self) -> bool {
        self.alone.total.is_some()
    }

    /// Forgets that counter, because another run begins.
    pub(super) fn forget_alone(&mut self) {
        self.alone = Alone::default();
    }

    /// The most likely answer for a step of `total` on a line with this epoch.
    fn of_steps(
        &self,
        total: Option<u64>,
        epoch: Option<(f64, Option<u64>)>,
        epoch_first: bool,
    ) -> bool {
        let Some((epoch, epochs)) = epoch else { return false };
        let likely = total.is_some() && (epochs.is_some() || epoch_first);
        likely && epoch.fract() == 0.0 && !self.fractions
    }

    /// Corrects whether the steps of `found` restart, by those before it.
    pub(super) fn correct(&mut self, found: &mut Observation, is_batch: bool) {
        let (Some(step), Some(epoch)) = (found.step, found.epoch) else { return };
        self.fractions |= epoch.fract() != 0.0;
        if is_batch || found.losses.iter().all(|loss| loss.phase != Phase::Train) {
            return;
        }
        if let Some((last_epoch, last_step)) = self.last
            && last_epoch < epoch
        {
            // A rounded step stays the same for several lines.
            let is_again = step == last_step && !self.fractions;
            self.in_epoch = Some(step < last_step || is_again);
        }
        self.last = Some((epoch, step));
        found.step_in_epoch = self.in_epoch.unwrap_or(found.step_in_epoch);
        if found.step_in_epoch {
            found.total_steps = found.total_steps.or(self.behind);
        }
    }
}

/// Whether a number at the start of a line ends as a counter does.
fn is_parted(after: &str) -> bool {
    after.starts_with([':', ',', '|', ')', ']', '\t', ';'])
        || after.starts_with("  ")
        || after.starts_with(" |")
        || after.starts_with(" -")
        || after.starts_with(" :")
}

/// Whether a line begins with the epoch and its batch: `Epoch [2/6][10/50]`. Other numbers with a total
/// are too often those of samples: `Epoch 2: 64/80 right`.
pub(crate) fn begins_with_brackets(line: &str) -> bool {
    let Some(("epoch" | "Epoch" | "EPOCH", rest)) = line.split_at_checked(5) else {
        return false;
    };
    let inside =
        bracketed(rest.trim_start_matches([' ', ':'])).and_then(|(_, _, rest)| bracketed(rest));
    inside.is_some_and(|(_, total, _)| total.is_some())
}

/// A counter in brackets, its total, and the text after them.
fn bracketed(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (count, rest) = scan::count(text.trim_start().strip_prefix('[')?.trim_start())?;
    let total = rest.trim_start().strip_prefix('/').map(str::trim_start).and_then(scan::count);
    let (total, rest) = total.map_or((None, rest), |(total, rest)| (Some(total), rest));
    Some((count, total, rest.trim_start().strip_prefix(']')?))
}
