//! Any line with `key: value`, `key = value` or `key value`. This grammar is tried last, and only
//! on lines that may mention a loss.
//!
//! A key is a few known words, so that `best loss 0.5`, `saved with loss 0.5` and `val_loss
//! improved from 0.5` are ignored. [`vocabulary`] has the words, [`counters`] the counters.

mod behind;
mod counters;
mod enclosed;
mod field;
mod held_out;
mod known_words;
mod line_time;
mod lists;
mod loss;
mod main_loss;
mod numbered;
mod numbers;
mod pair;
mod pairs;
mod sentence;
mod vocabulary;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first, put};
use super::{Grammar, Reading};
pub(super) use counters::begins_with_brackets;
use counters::{Counters, Order};
use field::counts;
pub(super) use held_out::abbreviated;
use paceline_lines::bytes;
use paceline_lines::names::rank;
use paceline_lines::observation::{Loss, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use held_out::{
    data, drop_parts_named_after_data, inherit, is_best, is_final, is_scored, is_summary,
};
use known_words::{counts_training, is_one};
use line_time::{LineTime, TimedParts, is_plain_time, took, unnamed};
use main_loss::{keep_whole_cost, of_batch};
use numbered::{counts_checkpoints, names_run, starts_from};
use numbers::{begins_extent, is_counted, lettered};
use pair::{Form, Pair};
use pairs::Pairs;
use vocabulary::{Role, role};

/// What is known of the program's lines.
#[derive(Debug, Default)]
pub(super) struct KeyValue {
    keys: Keys,
    order: Order,
    /// The last number of steps that a time is of, and whether it is known not to be a step.
    steps_of_time: Option<(u64, bool)>,
    times: LineTime,
}

/// The line that is being read.
#[expect(
    clippy::struct_excessive_bools,
    reason = "marks of a line come in any order, so no state names all at once"
)]
#[derive(Debug, Default)]
struct Now {
    counters: Counters,
    /// The data that the counters of the line speak of.
    phase: Option<Phase>,
    /// A loss whose value comes after a counter: `loss after step 5: 0.5`.
    pending: Option<Pending>,
    /// The previous number was that of `loss train`, so that of `val` is a loss, too.
    of_data: bool,
    /// The word of a time that is that of the data, or until the end, is in the line.
    beside_time: bool,
    /// The line is about means, as those of an epoch.
    mean: bool,
    /// The line has a word that makes sentences unsure.
    unsure: bool,
    /// It has a loss so far.
    has_loss: bool,
    /// The line has a loss whose name is behind its value.
    behind: bool,
    /// A time without a name.
    bare_time: Option<f64>,
    /// The time that the line took, as it says: `took 1.2 s`.
    took: Option<f64>,
    /// The times of parts of a step.
    parts: TimedParts,
    /// The number of steps that a time is of.
    steps_of_time: Option<u64>,
}

/// A loss whose value is still to come. Its whole name tells whether it is a part of another one.
#[derive(Debug)]
struct Pending {
    name: String,
    phase: Phase,
    span: Option<Span>,
}

impl Grammar for KeyValue {
    fn name(&self) -> &'static str {
        "key value"
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if lists::may_be_names(line) {
            match self.names_then_values(line, draft) {
                Some(true) => return Reading::Says,
                Some(false) => {
                    draft.clear();
                    return Reading::Foreign;
                }
                None => draft.clear(),
            }
        }
        if self.line(line, draft) && !draft.found.losses.is_empty() {
            return Reading::Says;
        }
        draft.clear();
        if line.starts_with(|c: char| c.is_ascii_digit()) && self.numbers_then_names(line, draft) {
            return Reading::Says;
        }
        draft.clear();
        Reading::Foreign
    }
}

impl KeyValue {
    /// The losses in a piece of text.
    pub(super) fn losses(&mut self, text: &str) -> Vec<Loss> {
        if !text.contains(['l', 'L']) {
            return Vec::new();
        }
        let mut draft = Draft::default();
        if self.line(text, &mut draft) { draft.found.losses } else { Vec::new() }
    }

    /// Reads a line without losses as the heading of a report. Returns whether it counts steps.
    pub(super) fn heading(&mut self, line: &str, draft: &mut Draft) -> bool {
        if names_task(line) {
            return false;
        }
        if self.line(line, draft) && draft.found.losses.is_empty() {
            if draft.steps.named {
                draft.found.batch_seconds = None;
                return true;
            }
            if begins_with_brackets(line) && Self::held_out(line).is_none() {
                return true;
            }
        }
        draft.clear();
        false
    }

    /// The time of a batch in a line that begins with its name. A whole number may be that of the batches.
    pub(super) fn time(&mut self, line: &str) -> Option<f64> {
        let (name, value) = line.split_once([':', '='])?;
        // Other names are not worth remembering.
        let name = Some(name.trim()).filter(|name| name.contains("ime") || name.contains("sec"))?;
        let Field::BatchTime(parts) = self.keys.field(name) else { return None };
        let value = value.trim_start();
        let (time, rest) = scan::number(value)?;
        let is_count = !value.get(..value.len() - rest.len())?.contains('.');
        let parts = if rest.trim_start().starts_with("ms") { 1e3 } else { parts };
        Some(time / parts).filter(|seconds| !is_count && *seconds > 0.0 && seconds.is_finite())
    }

    /// Reads the text before a dict. Returns whether it counts steps or epochs.
    pub(super) fn before_dict(&mut self, text: &str, draft: &mut Draft) -> bool {
        let is_read = self.line(text, draft) && draft.found.losses.is_empty();
        is_read && (draft.steps.named || draft.found.epoch.is_some())
    }

    /// The held-out data that the words before a dict speak of.
    pub(super) fn held_out(text: &str) -> Option<Phase> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let roles = words.fold(Role::default(), |all, word| all | role(word));
        roles.phase().filter(|phase| *phase != Phase::Train)
    }

    /// Takes a line without a loss. Below `Training fold 2`, a counter that begins again is that of another
    /// run, not that of an epoch.
    pub(super) fn heading_of_run(&mut self, text: &str) {
        if self.order.has_alone() && names_run(text) {
            self.order.forget_alone();
        }
    }

    /// Corrects the counters of an observation of this grammar, once its epoch is known. Below a
    /// heading, a loss that is said to be of the training, or a mean, is that of the epoch.
    pub(super) fn correct(&mut self, draft: &mut Draft) {
        let found = &mut draft.found;
        if found.step.is_none() && found.epoch.is_some() {
            let of_epoch = |loss: &&mut Loss| {
                let of = |roles: Role, word| roles | role(word);
                let roles = loss.name.split([' ', '_', '/']).fold(Role::default(), of);
                loss.span == Span::Step
                    && loss.phase == Phase::Train
                    && roles.any(Role::TRAIN | Role::MEAN)
            };
            found.losses.iter_mut().filter(of_epoch).for_each(|loss| loss.span = Span::Epoch);
        }
        if draft.steps.below_heading {
            self.order.correct_alone(&mut draft.found);
        }
        self.order.correct(&mut draft.found, draft.steps.fixed);
    }

    /// Reads a line into `draft`. Returns false if it repeats an earlier loss.
    fn line(&mut self, line: &str, draft: &mut Draft) -> bool {
        let mut now = Now::default();
        for pair in Pairs::new(line) {
            if !pair.list.is_empty() && self.list(&pair, draft) {
                continue;
            }
            let roles = pair.words.roles();
            if counts_checkpoints(&pair) {
                now.mean = true;
                continue;
            }
            if (roles | pair.context).any(Role::REPEATS) || starts_from(&pair) {
                if draft.found.losses.is_empty() {
                    return false;
                }
                continue;
            }
            now.beside_time |= (roles | pair.context).any(Role::BESIDE_TIME);
            now.mean |= pair.context.any(Role::MEAN);
            now.unsure |= (roles | pair.context).any(Role::UNSURE);
            now.has_loss = !draft.found.losses.is_empty();
            if pair.words.as_slice().is_empty() && draft.found.losses.is_empty() {
                let end = line.len() - pair.after.len();
                self.before_counter(line.get(..end).unwrap_or_default(), &mut now);
            }
            if self.behind(&pair, line, &mut now, draft) {
                continue;
            }
            self.pair(&pair, roles, &mut now, draft);
            now.unsure |= roles.any(Role::MODEL);
        }
        self.settle(&now, draft);
        if line.starts_with("* ") && is_summary(line) {
            draft.data = Some(Phase::Validation);
            draft.settle_data();
        }
        let is_counted = draft.found.step.is_some() || draft.found.epoch.is_some();
        if !is_counted && (is_best(line) || is_scored(line, &draft.found.losses)) {
            draft.data = Some(Phase::Validation);
            draft.settle_data();
        }
        if is_final(line, is_counted) {
            draft.data = Some(Phase::Test);
            draft.settle_data();
        }
        if draft.found.losses.iter().any(|loss| loss.phase == Phase::Train) {
            draft.data = data(line);
            draft.settle_data();
        }
        true
    }

    fn pair(&mut self, pair: &Pair<'_>, roles: Role, now: &mut Now, draft: &mut Draft) {
        let words = pair.words.as_slice();
        // The results of a pass over some data: `END valid top1: 0.5 loss: 2.5`.
        if let [end, data, _, ..] = words
            && is_one(end, &["end"])
            && role(data).any(Role::HELD_OUT | Role::TEST)
        {
            now.phase = now.phase.or(role(data).phase());
        }
        if let Some(seconds) = pair.seconds {
            let found = &mut draft.found;
            found.batch_seconds = found.batch_seconds.or(Some(seconds));
            return;
        }
        // In `loss after 5 steps: 0.5` the name of the counter comes after it.
        let goes_on = match words {
            [] => true,
            [word] => (pair.is_separated && is_counted(word)) || is_one(word, &["is", "was"]),
            _ => false,
        };
        if let Some(Pending { name, phase, span }) = now.pending.take_if(|_| goes_on)
            && pair.unit.is_empty()
        {
            draft.push(&name, phase, span.unwrap_or(usual(phase)), pair.value);
            return;
        }
        let of_data = std::mem::take(&mut now.of_data);
        if of_data
            && words.len() == 1
            && pair.unit.is_empty()
            && roles.any(Role::HELD_OUT | Role::TEST)
        {
            let phase = roles.phase().unwrap_or(Phase::Validation);
            draft.push("loss", phase, usual(phase), pair.value);
            return;
        }
        if let Some((name, phase, span)) = self.loss(pair, now) {
            // Where names are behind the values, this one belongs to another loop.
            if now.behind && !roles.any(Role::DATA) {
                return;
            }
            if let Some(field) = self.comes_later(pair, now) {
                if counts(field) {
                    now.counters.take(pair, field);
                }
                // The counter's name is none of the words of the loss.
                let last = words.last().copied().unwrap_or_default();
                let is_named = words.len() > 1 && counts(self.keys.field(last));
                let name = name.rsplit_once(' ').filter(|_| is_named).map_or(&*name, |name| name.0);
                let span = span.filter(|_| !self.precedes_counter(pair));
                now.pending = Some(Pending { name: name.to_owned(), phase, span });
                return;
            }
            if pair.is_of_name() {
                return;
            }
            draft.push(&name, phase, span.unwrap_or(usual(phase)), pair.value);
            now.of_data =
                words.len() > 1 && words.last().is_some_and(|word| role(word).any(Role::TRAIN));
            return;
        }
        self.other(pair, roles, now, draft);
    }

    /// What the number of a loss means if it is not its value, which then comes later: a counter, or the size of the
    /// data, which is another field.
    fn comes_later(&mut self, pair: &Pair<'_>, now: &Now) -> Option<Field> {
        if pair.is_of_data() {
            // `test loss (100 batches): 0.5`.
            return Some(Field::Other);
        }
        if !pair.precedes_value(now.counters.has_steps()) && !self.precedes_counter(pair) {
            return None;
        }
        let last = pair.words.as_slice().last();
        let field = last.map_or(Field::Step, |last| self.keys.field(last));
        Some(if counts(field) { field } else { Field::Step })
    }

    /// A counter, a time, or a number without a meaning.
    fn other(&mut self, pair: &Pair<'_>, roles: Role, now: &mut Now, draft: &mut Draft) {
        let words = match pair.words.as_slice() {
            // `Epoch is [1/20]`.
            [words @ .., last] if !words.is_empty() && last.eq_ignore_ascii_case("is") => words,
            words => words,
        };
        let Some((last, before)) = words.split_last() else {
            now.bare(pair);
            return match pair.step_behind() {
                Some(step) => now.counters.take_behind(&step),
                None => now.counters.take(pair, Field::Other),
            };
        };
        if let Some((seconds, steps)) = clocked(pair, last, roles) {
            now.steps_of_time = now.steps_of_time.or(steps);
            draft.found.batch_seconds = draft.found.batch_seconds.or(Some(seconds));
            return;
        }
        if took(pair, last, before) || now.parts.sum_up(pair, last, before) {
            now.took = now.took.or(pair.in_seconds());
            return now.bare(pair);
        }
        if let Some(counted) = pair.counted()
            && role(last).any(Role::LINK)
            && !begins_extent(last)
        {
            return self.link_before(pair, counted, now);
        }
        if let Some(end) = pair.range_end() {
            let field = self.keys.field(last);
            if matches!(field, Field::Step | Field::Batch) {
                return now.counters.take(&end, field);
            }
        }
        if pair.total.is_some() && self.two(last, pair, now) {
            return;
        }
        let letter = if pair.total.is_some() && before.is_empty() { lettered(last) } else { None };
        let letter = letter.or_else(|| numbered_counter(last, before));
        let field = self.field(letter.unwrap_or(last), before, pair.unit, roles);
        let field =
            if field == Field::Other { other_counter(last, pair, &now.counters) } else { field };
        // Without a unit it may be that of a model that is searched for.
        if is_one(last, &["latency"]) && before.is_empty() && pair.in_seconds().is_some() {
            return line_time::of_batch(pair, 1.0, draft);
        }
        // Beside the time of the data, `Batch: 0.25s` and `Batch 0.25 (0.5)` are times, too.
        if field == Field::Batch && pair.form == Form::Other {
            let plain =
                || Some(pair.value).filter(|value| pair.unit.is_empty() && value.fract() != 0.0);
            if let Some(seconds) = pair.in_seconds().or_else(plain) {
                draft.time = draft.time.or(Some(seconds).filter(|seconds| *seconds > 0.0));
                return;
            }
        }
        match field {
            Field::BatchTime(parts) => line_time::of_batch(pair, parts, draft),
            Field::Elapsed => line_time::since_start(pair, before, draft),
            Field::At if last.eq_ignore_ascii_case("time") => line_time::plain(pair, before, draft),
            Field::BesideTime => draft.beside_time = true,
            Field::BatchRate | Field::Steps | Field::Epochs | Field::Rank | Field::At => {
                if pair.unit.is_empty() {
                    put(field, last, pair.value, draft);
                }
            }
            Field::Loss { .. } | Field::StepOf | Field::Data | Field::Flag(_) | Field::Other => {
                now.counters.take(pair, Field::Other);
            }
            Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch => {
                now.counters.take(pair, field);
                self.link(pair, now);
            }
        }
        let is_counter = pair.total.is_some()
            || counts(field)
            || words.len() == 1
            || counts_evaluation(last, before);
        // `Testing: [===>] 50% (5/10) Loss 0.5`, but not `Test acc 50% (5/10) train loss 0.5`.
        let is_share = pair.is_share() && role(last).any(Role::DATA);
        if (is_share || (pair.unit.is_empty() && is_counter)) && roles.any(Role::DATA) {
            now.phase = now.phase.or(roles.phase());
        }
    }

    fn settle(&mut self, now: &Now, draft: &mut Draft) {
        draft.steps.named = now.counters.has_steps();
        draft.global = now.counters.is_global();
        draft.held_out = now.phase.is_some_and(|phase| phase != Phase::Train);
        now.counters.settle(&mut self.order, draft);
        draft.steps.fixed = now.counters.is_fixed();
        draft.beside_time |= now.beside_time;
        draft.settle_time();
        let found = &mut draft.found;
        if let Some(steps) = now.steps_of_time {
            // `(200 iters)` may be the step of the line, and the time that of one step or of all. A first
            // latency is not used in any case.
            let is_other = found.step != Some(steps);
            let is_known = is_other || self.steps_of_time == Some((steps, true));
            if !is_known && self.steps_of_time.is_some() {
                found.batch_seconds = None;
            }
            self.steps_of_time = Some((steps, is_known));
        }
        if let Some(step) = found.step {
            found.batch_seconds = found.batch_seconds.or(now.bare_time);
            if found.losses.iter().any(|loss| loss.phase == Phase::Train) {
                let time = self.times.take((found.epoch, step), now.took, draft.time);
                if found.batch_seconds.is_none()
                    && let Some((seconds, warm)) = time
                {
                    (found.batch_seconds, found.warm) = (Some(seconds), warm);
                }
                if found.batch_seconds.is_none() {
                    found.elapsed = found.elapsed.or(draft.time.map(unnamed));
                }
                // A number alone may be that of an epoch.
                if !draft.steps.named && found.total_steps.is_none() {
                    found.elapsed = None;
                }
            }
        }
        if found.losses.len() > 1 {
            abbreviated(&mut found.losses);
            main_loss_first(&mut found.losses);
            inherit(&mut found.losses);
            keep_whole_cost(draft);
            if now.phase == Some(Phase::Train) {
                drop_parts_named_after_data(draft);
            }
            let found = &draft.found;
            // Another name of a loss counts only where no loss has its own name.
            if found.losses.first().is_some_and(|loss| rank(&loss.name) < WEAK) {
                draft.retain(|loss| rank(&loss.name) < WEAK);
            }
        }
        of_batch(&mut draft.found.losses);
        if draft.found.step.is_none() && (draft.found.epoch.is_some() || now.mean) {
            self.keys.widen(&mut draft.found.losses, Span::Epoch);
        }
    }
}

impl Now {
    /// Takes a time without a name.
    fn bare(&mut self, pair: &Pair<'_>) {
        if pair.unit == "ms" {
            self.bare_time = self.bare_time.or(pair.in_seconds());
        }
    }
}

/// The time of a step as a clock shows it, or from that of several steps, and their number: `dt 00:00:05`,
/// `time 80.5s (100 iters)`.
fn clocked(pair: &Pair<'_>, last: &str, roles: Role) -> Option<(f64, Option<u64>)> {
    let is_time = roles.any(Role::TIMED) && !(roles | pair.context).any(Role::BESIDE_TIME);
    if last.eq_ignore_ascii_case("dt") {
        return pair.clock().map(|seconds| (seconds, None));
    }
    // With further words it may be the time of one step, a mean, or that of other work.
    let is_plain = pair.words.as_slice().iter().all(|word| is_plain_time(word));
    let (seconds, steps) = pair.seconds_of_steps().filter(|_| is_time && is_plain)?;
    Some((seconds, Some(steps)))
}

/// A counter by a name that elsewhere is none: `total_step 50` is a step where no other one is before it, and
/// `epochs: 4.25` the epoch.
fn other_counter(last: &str, pair: &Pair<'_>, counters: &Counters) -> Field {
    if is_one(last, &TOTAL_STEP) && pair.form == Form::Digits && !counters.has_steps() {
        Field::Step
    } else if is_one(last, &["epochs"]) && pair.value.fract() != 0.0 && pair.unit.is_empty() {
        Field::Epoch
    } else {
        Field::Other
    }
}

/// The counter that a number is one of: `Epoch number: 5`.
fn numbered_counter<'a>(last: &str, before: &[&'a str]) -> Option<&'a str> {
    let [counter] = before else { return None };
    (is_one(last, &["number", "index", "idx"]) && counts_training(counter)).then_some(*counter)
}

/// Names of a counter that are in the singular, so that they are not those of a total.
const TOTAL_STEP: [&str; 4] = ["total_step", "total_iter", "total_it", "total_iteration"];

/// Whether a key is that of a step of an evaluation: `eval step`.
fn counts_evaluation(last: &str, before: &[&str]) -> bool {
    last.eq_ignore_ascii_case("step")
        && matches!(before, [word] if role(word).any(Role::HELD_OUT | Role::TEST))
}

/// The rank of other names of a loss.
const WEAK: u8 = 4;

fn usual(phase: Phase) -> Span {
    if phase == Phase::Train { Span::Step } else { Span::Epoch }
}

/// Instructions of a recipe for an image.
const INSTRUCTIONS: [&str; 12] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "LABEL",
    "RUN",
    "USER",
    "WORKDIR",
];
/// Maximum number of tasks: more are steps of the training.
const MAX_TASKS: u64 = 20;

/// Whether a line counts tasks, not steps of the training: `Step 3/12 : RUN pip install torch` of an image's build,
/// `Step 3 of 7: installing torch`.
fn names_task(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("Step ").or_else(|| line.strip_prefix("step ")) else {
        return false;
    };
    let of = scan::count(rest).and_then(|(_, rest)| {
        let rest = rest.strip_prefix('/').or_else(|| rest.strip_prefix(" of "))?;
        scan::count(rest)
    });
    let Some((tasks, rest)) = of else { return false };
    let Some(task) = rest.trim_start().strip_prefix(": ") else { return false };
    let is_instruction = INSTRUCTIONS.contains(&task.split(' ').next().unwrap_or_default());
    let is_text = task.starts_with(char::is_alphabetic) && !bytes::contains_digit(task.as_bytes());
    is_instruction || (is_text && tasks <= MAX_TASKS)
}

#[cfg(test)]
mod tests;
