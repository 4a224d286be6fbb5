//! The meaning of a key, by its last words.

use super::known_words::is_one;
use super::pair::Pair;
use super::vocabulary::{Role, role};
use super::{KeyValue, Now};
use crate::keys::Field;

impl KeyValue {
    /// The meaning of a key: of its last word, or of several words together.
    pub(super) fn field(&mut self, last: &str, before: &[&str], unit: &str, roles: Role) -> Field {
        // `Iter(train) 5` is a counter like `Iter 5`.
        let (last, before) = match before.split_last() {
            Some((word, rest)) if role(last).any(Role::DATA) => (*word, rest),
            _ => (last, before),
        };
        // `batch i: 5` is a counter, too. A capital would be a Roman number.
        let (last, before) = match before.split_last() {
            Some((word, rest)) if last == "i" && counts(self.keys.field(word)) => (*word, rest),
            _ => (last, before),
        };
        // `Batches seen: 5`. The words together are a name.
        if let Some(word) = before.last().filter(|_| is_one(last, &DONE)) {
            let field = self.keys.field(&format!("{word} {last}"));
            if counts(field) {
                return field;
            }
        }
        let field = self.keys.field(last);
        let is_timed = matches!(unit, "s" | "ms" | "sec" | "secs" | "us" | "µs" | "μs");
        let previous = before.last();
        let of_other =
            |word: &&str| OTHER_STEPS.iter().any(|other| word.eq_ignore_ascii_case(other));
        match field {
            Field::Step if previous.is_some_and(of_other) => Field::Other,
            Field::Epoch if previous.is_some_and(|word| is_one(word, &OTHER_EPOCHS)) => {
                Field::Other
            }
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
            | Field::Elapsed
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

    /// Takes two counters with one name, or a counter and its total: `epoch/iter: 0/199`,
    /// `step/steps: 5/90`. Returns whether they are.
    pub(super) fn two(&mut self, name: &str, pair: &Pair<'_>, now: &mut Now) -> bool {
        let Some((first, second)) = name.split_once('/') else { return false };
        // `it/s` is a rate.
        if matches!(self.keys.field(name), Field::BatchTime(_) | Field::BatchRate) {
            return false;
        }
        let is_total = ["total", "max"].iter().any(|word| second.eq_ignore_ascii_case(word));
        let (first, second) = (self.keys.field(first), self.keys.field(second));
        let is_total =
            is_total || first == second || matches!(second, Field::Steps | Field::Epochs);
        // `batch/gpu` is a setting.
        if !counts(first) || !(counts(second) || is_total) {
            return false;
        }
        if is_total {
            now.counters.take(pair, first);
            return true;
        }
        now.counters.take(&Pair { total: None, ..*pair }, first);
        let value = pair.total.and_then(|total| u32::try_from(total).ok()).map(f64::from);
        if let Some(value) = value {
            now.counters.take(&Pair { total: None, value, ..*pair }, second);
        }
        true
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
        // In `it took 5 seconds` no iteration is meant.
        if before.last().is_some_and(|word| word.eq_ignore_ascii_case("it")) && is_took(last) {
            return None;
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
}

fn is_took(word: &str) -> bool {
    ["took", "takes"].iter().any(|took| word.eq_ignore_ascii_case(took))
}

/// Whether it is a counter.
pub(super) fn counts(field: Field) -> bool {
    matches!(field, Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch)
}

/// Words after the name of a counter: what it counts is done.
const DONE: [&str; 4] = ["seen", "done", "completed", "processed"];

/// Words before "epoch" that make it one within a step of the training.
const OTHER_EPOCHS: [&str; 4] = ["inner", "local", "ppo", "sub"];

/// Words before "steps" that make them no steps of the training.
const OTHER_STEPS: [&str; 7] =
    ["accumulation", "episode", "eval", "logging", "rollout", "skipped", "warmup"];
