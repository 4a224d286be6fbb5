//! Any line with `key: value`, `key = value` or `key value`. This grammar is tried last, and only
//! on lines that may mention a loss.
//!
//! A key is a few known words, so that `best loss 0.5`, `saved with loss 0.5` and `val_loss
//! improved from 0.5` are ignored. [`vocabulary`] has the words, [`counters`] the counters.

mod counters;
mod pairs;
mod vocabulary;

use std::borrow::Cow;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first, put};
use super::{Grammar, Reading};
use crate::names::{self, rank};
use crate::observation::{Loss, Phase, Span};
use crate::terminal::End;
use counters::{Counters, Order};
use pairs::{Pair, Pairs, begins_extent, is_counted};
use vocabulary::{Role, role};

/// What is known of the program's lines.
#[derive(Debug, Default)]
pub(super) struct KeyValue {
    keys: Keys,
    order: Order,
}

/// The line that is being read.
#[derive(Debug, Default)]
struct Now {
    counters: Counters,
    /// The data that the counters of the line speak of.
    phase: Option<Phase>,
    /// A loss whose value comes after a counter: `loss after step 5: 0.5`.
    pending: Option<(Phase, Option<Span>)>,
    /// The previous number was that of `loss train`, so that of `val` is a loss, too.
    of_data: bool,
    /// The word of a time that is that of the data, or until the end, is in the line.
    beside_time: bool,
    /// The line is about means, as those of an epoch.
    mean: bool,
    /// A time without a name.
    bare_time: Option<f64>,
}

impl Grammar for KeyValue {
    fn name(&self) -> &'static str {
        "key value"
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        if self.line(line, draft) && !draft.found.losses.is_empty() {
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
        if self.line(line, draft) && draft.found.losses.is_empty() && draft.steps.named {
            return true;
        }
        draft.clear();
        false
    }

    /// The held-out data that the words before a dict speak of.
    pub(super) fn held_out(text: &str) -> Option<Phase> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let roles = words.fold(Role::default(), |all, word| all | role(word));
        roles.phase().filter(|phase| *phase != Phase::Train)
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
        self.order.correct(&mut draft.found, draft.steps.fixed);
    }

    /// Reads a line into `draft`. Returns false if it repeats an earlier loss.
    fn line(&mut self, line: &str, draft: &mut Draft) -> bool {
        let mut now = Now::default();
        for pair in Pairs::new(line) {
            let roles = pair.words.roles();
            if (roles | pair.context).any(Role::REPEATS) {
                if draft.found.losses.is_empty() {
                    return false;
                }
                continue;
            }
            now.beside_time |= (roles | pair.context).any(Role::BESIDE_TIME);
            now.mean |= pair.context.any(Role::MEAN);
            self.pair(&pair, roles, &mut now, draft);
        }
        self.settle(&now, draft);
        if draft.found.losses.iter().any(|loss| loss.phase == Phase::Train) {
            draft.data = data(line);
            draft.settle_data();
        }
        true
    }

    fn pair(&mut self, pair: &Pair<'_>, roles: Role, now: &mut Now, draft: &mut Draft) {
        let words = pair.words.as_slice();
        if let Some(seconds) = pair.seconds {
            let found = &mut draft.found;
            found.batch_seconds = found.batch_seconds.or(Some(seconds));
            return;
        }
        // In `loss after 5 steps: 0.5` the name of the counter comes after it.
        let goes_on = match words {
            [] => true,
            [word] => pair.is_separated && is_counted(word),
            _ => false,
        };
        if let Some((phase, span)) = now.pending.take_if(|_| goes_on)
            && pair.unit.is_empty()
        {
            draft.push("loss", phase, span.unwrap_or(usual(phase)), pair.value);
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
            if pair.is_of_data() {
                // `test loss (100 batches): 0.5`.
                now.pending = Some((phase, span));
                return;
            }
            if pair.precedes_value(now.counters.has_steps()) {
                now.pending = Some((phase, span));
                let field = words.last().map_or(Field::Step, |last| self.keys.field(last));
                let is_counter =
                    matches!(field, Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch);
                now.counters.take(pair, if is_counter { field } else { Field::Step });
                return;
            }
            draft.push(&name, phase, span.unwrap_or(usual(phase)), pair.value);
            now.of_data =
                words.len() > 1 && words.last().is_some_and(|word| role(word).any(Role::TRAIN));
            return;
        }
        self.other(pair, roles, now, draft);
    }

    /// A counter, a time, or a number without a meaning.
    fn other(&mut self, pair: &Pair<'_>, roles: Role, now: &mut Now, draft: &mut Draft) {
        let words = pair.words.as_slice();
        let Some((last, before)) = words.split_last() else {
            now.bare(pair);
            return now.counters.take(pair, Field::Other);
        };
        if pair.unit == "ms" && before.is_empty() && last.eq_ignore_ascii_case("took") {
            return now.bare(pair);
        }
        if let Some(counted) = pair.counted()
            && role(last).any(Role::LINK)
            && !begins_extent(last)
        {
            return self.link_before(pair, counted, now);
        }
        let field = self.field(last, before, pair.unit, roles);
        match field {
            Field::BatchTime(parts) => {
                let seconds = pair.in_seconds().unwrap_or(pair.value / parts);
                draft.found.batch_seconds =
                    Some(seconds).filter(|seconds| *seconds > 0.0 && seconds.is_finite());
            }
            Field::At if last.eq_ignore_ascii_case("time") => {
                let seconds =
                    pair.in_seconds().or(Some(pair.value).filter(|_| pair.unit.is_empty()));
                draft.time = draft.time.or(seconds.filter(|seconds| *seconds > 0.0));
            }
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
        let counts = pair.total.is_some()
            || matches!(field, Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch)
            || words.len() == 1;
        if pair.unit.is_empty() && counts && roles.any(Role::DATA) {
            now.phase = now.phase.or(roles.phase());
        }
    }

    /// The meaning of a key: of its last word, or of several words together.
    fn field(&mut self, last: &str, before: &[&str], unit: &str, roles: Role) -> Field {
        // `Iter(train) 5` is a counter like `Iter 5`.
        let (last, before) = match before.split_last() {
            Some((word, rest)) if role(last).any(Role::DATA) => (*word, rest),
            _ => (last, before),
        };
        let field = self.keys.field(last);
        let is_timed = matches!(unit, "s" | "ms" | "sec" | "secs" | "us");
        let previous = before.last();
        match field {
            Field::Step | Field::Batch
                if previous.is_some_and(|word| word.eq_ignore_ascii_case("global")) =>
            {
                Field::GlobalStep
            }
            Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch if !is_timed => field,
            Field::BatchTime(_)
            | Field::BatchRate
            | Field::BesideTime
            | Field::Rank
            | Field::Steps
            | Field::Epochs => field,
            Field::Loss { .. }
            | Field::Epoch
            | Field::Step
            | Field::GlobalStep
            | Field::Batch
            | Field::StepOf
            | Field::At
            | Field::Data
            | Field::Flag(_)
            | Field::Other => {
                let together = is_timed || (!before.is_empty() && roles.any(Role::TIMED));
                let field_together =
                    if together { self.together(last, before, unit, is_timed) } else { None };
                field_together.unwrap_or(field)
            }
        }
    }

    /// The meaning of the last words together: `elapsed time per iteration (ms)`, `data time`.
    fn together(
        &mut self,
        last: &str,
        before: &[&str],
        unit: &str,
        is_timed: bool,
    ) -> Option<Field> {
        if is_timed && last.eq_ignore_ascii_case("dt") {
            return Some(Field::BatchTime(1.0));
        }
        let unit = if is_timed { unit } else { "" };
        let first = before.len().saturating_sub(4);
        (first..=before.len()).find_map(|from| {
            let words = before.get(from..)?.iter().chain([&last, &unit]);
            let name = words.copied().collect::<Vec<_>>().join(" ");
            let field = self.keys.field(name.trim_end());
            matches!(field, Field::BatchTime(_) | Field::BatchRate | Field::BesideTime)
                .then_some(field)
        })
    }

    /// Takes a counter whose name follows it, and notes the loss whose value comes after both:
    /// `loss after 100 steps: 0.5`.
    fn link_before(&mut self, pair: &Pair<'_>, counted: &str, now: &mut Now) {
        let singular = counted.trim_end_matches('s');
        let field = self.keys.field(singular);
        let is_other = matches!(field, Field::Epoch | Field::Batch);
        now.counters.take(pair, if is_other { field } else { Field::Step });
        let name = pair.words.as_slice().split_last().map(|(_, name)| name.join(" "));
        let after = pair.after.trim_start();
        let is_followed = after
            .get(counted.len()..)
            .is_some_and(|after| after.trim_start_matches([' ', ')']).starts_with([':', '=']));
        if is_followed
            && let Some(name) = name
            && let Field::Loss { phase, span } = self.keys.field(&name)
        {
            now.pending = Some((phase, span));
        }
    }

    /// Notes a loss whose value comes after the counter of `pair`.
    fn link(&mut self, pair: &Pair<'_>, now: &mut Now) {
        let words = pair.words.as_slice();
        let Some(at) = words.iter().position(|word| role(word).any(Role::LINK)) else { return };
        let Some((name, _)) = words.split_at_checked(at) else { return };
        let name = name.join(" ");
        let is_followed = pair.after.trim_start().starts_with([':', '=', '|']);
        if let Field::Loss { phase, span } = self.keys.field(&name)
            && is_followed
        {
            now.pending = Some((phase, span));
        }
    }

    /// The loss of a pair: its name, the data, and the span if the name gives it.
    fn loss<'a>(
        &mut self,
        pair: &Pair<'a>,
        now: &Now,
    ) -> Option<(Cow<'a, str>, Phase, Option<Span>)> {
        if !pair.unit.is_empty() || pair.total.is_some() {
            return None;
        }
        let words = pair.words.as_slice();
        // `the loss is nan` is said about an earlier one.
        if pair.value.is_nan() && words.last().is_some_and(|word| word.eq_ignore_ascii_case("is")) {
            return None;
        }
        let is_loss = |keys: &mut Keys, word: &str| {
            word.eq_ignore_ascii_case("entropy") || matches!(keys.field(word), Field::Loss { .. })
        };
        let at = words.iter().rposition(|word| is_loss(&mut self.keys, word))?;
        let (before, rest) = words.split_at_checked(at)?;
        let known = |words: &[&str], roles| words.iter().all(|word| role(word).any(roles));
        let repeated =
            |word: &&str| rest.first().is_some_and(|loss| word.eq_ignore_ascii_case(loss));
        let before_is_known = before.iter().all(|word| {
            role(word).any(Role::BEFORE)
                || repeated(word)
                || matches!(self.keys.field(word), Field::Loss { .. })
        });
        // The steps that a mean is of: `loss over the last 100 steps: 0.5`.
        let after = rest.get(1..)?;
        let is_mean = !after.is_empty() && pair.is_separated && !pair.is_digits && is_extent(after);
        if !before_is_known || !(is_mean || known(after, Role::AFTER)) {
            return None;
        }
        let words = if is_mean { words.get(..=at)? } else { words };
        let name = match words {
            [word] => Cow::Borrowed(*word),
            words => Cow::Owned(words.join(" ")),
        };
        let Field::Loss { mut phase, span } = self.keys.field(&name) else { return None };
        if phase == Phase::Train && !pair.words.roles().any(Role::TRAIN) {
            let held_out = |phase: &Phase| *phase != Phase::Train;
            phase = pair.context.phase().filter(held_out).or(now.phase).unwrap_or(phase);
        }
        Some((name, phase, span))
    }

    fn settle(&mut self, now: &Now, draft: &mut Draft) {
        draft.steps.named = now.counters.has_steps();
        draft.global = now.counters.is_global();
        draft.held_out = now.phase.is_some_and(|phase| phase != Phase::Train);
        now.counters.settle(&self.order, draft);
        draft.steps.fixed = now.counters.is_fixed();
        draft.beside_time |= now.beside_time;
        draft.settle_time();
        let found = &mut draft.found;
        if found.step.is_some() {
            found.batch_seconds = found.batch_seconds.or(now.bare_time);
        }
        if found.losses.len() > 1 {
            main_loss_first(&mut found.losses);
            inherit(&mut found.losses);
            // Another name of a loss counts only where no loss has its own name.
            if found.losses.first().is_some_and(|loss| rank(&loss.name) < WEAK) {
                draft.retain(|loss| rank(&loss.name) < WEAK);
            }
        }
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

/// Names of fields whose text says which data a line is about.
const DATA: [&str; 5] = ["mode", "split", "phase", "subset", "stage"];

/// The held-out data that a field such as `split=valid` names, anywhere in a line.
fn data(line: &str) -> Option<Phase> {
    memchr::memchr2_iter(b'=', b':', line.as_bytes()).find_map(|at| {
        let (key, value) = line.split_at_checked(at)?;
        let key = key.trim_end_matches(['"', '\'']);
        if !key.ends_with(['e', 't']) {
            return None;
        }
        let name = DATA.iter().find(|name| key.ends_with(*name))?;
        let before = key.strip_suffix(name)?.chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            return None;
        }
        let value = value.get(1..)?.trim_start_matches([' ', '"', '\'']);
        let length = value.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(value.len());
        names::held_out_by(value.get(..length)?)
    })
}

/// Whether words after "loss" say which steps it is of: `over the last 100 steps`.
fn is_extent(words: &[&str]) -> bool {
    let is_between = |word: &&str| {
        let known =
            ["the", "one", "of", "all"].iter().any(|known| word.eq_ignore_ascii_case(known));
        known || begins_extent(word) || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((last, between)) = words.split_last() else { return false };
    is_counted(last)
        && between.first().is_some_and(|word| begins_extent(word))
        && between.iter().all(is_between)
}

/// The rank of other names of a loss.
const WEAK: u8 = 4;

/// Parts of a loss on held-out data need not repeat that they are: `valid loss 0.5, box loss 0.1`.
fn inherit(losses: &mut [Loss]) {
    let is_part = |loss: &Loss| loss.phase == Phase::Train && rank(&loss.name) >= 2;
    let held_out = losses.iter().find(|loss| loss.phase != Phase::Train).map(|loss| loss.phase);
    let trains = losses.iter().any(|loss| loss.phase == Phase::Train && !is_part(loss));
    if let Some(phase) = held_out.filter(|_| !trains) {
        for loss in losses.iter_mut().filter(|loss| is_part(loss)) {
            (loss.phase, loss.span) = (phase, Span::Epoch);
        }
        main_loss_first(losses);
    }
}

fn usual(phase: Phase) -> Span {
    if phase == Phase::Train { Span::Step } else { Span::Epoch }
}

#[cfg(test)]
mod tests;
