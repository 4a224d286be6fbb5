//! Any line with `key: value`, `key = value` or `key value` in it: what is tried last, and only on
//! lines that may speak of a loss.
//!
//! A key is a few words with nothing unknown among them, so that `best loss 0.5`, `saved with loss
//! 0.5` and `val_loss improved from 0.5` are left alone.

mod pairs;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first, put};
use super::{Grammar, Reading};
use crate::observation::{Loss, Observation, Phase, Span};
use crate::terminal::End;
use pairs::{Pair, Pairs};

/// What has been learnt of the program's lines.
#[derive(Debug, Default)]
pub(super) struct KeyValue {
    keys: Keys,
    /// The last epoch and step of the training.
    last: Option<(f64, u64)>,
    /// Whether steps have been seen to begin anew with an epoch, or not to.
    in_epoch: Option<bool>,
}

/// Words that may stand before "loss" without making it something else.
const BEFORE: [&str; 44] = [
    "train",
    "training",
    "trn",
    "val",
    "valid",
    "validation",
    "eval",
    "evaluation",
    "dev",
    "test",
    "testing",
    "average",
    "avg",
    "avg.",
    "mean",
    "running",
    "smoothed",
    "smooth",
    "moving",
    "ema",
    "total",
    "overall",
    "epoch",
    "step",
    "batch",
    "iter",
    "iteration",
    "minibatch",
    "mini-batch",
    "current",
    "global",
    "local",
    "final",
    "lm",
    "mlm",
    "nll",
    "ce",
    "cross-entropy",
    "mse",
    "bce",
    "kl",
    "reconstruction",
    "the",
    "set",
];
/// Words that may stand behind it.
const AFTER: [&str; 14] = [
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "eval",
    "test",
    "avg",
    "mean",
    "step",
    "epoch",
    "batch",
    "value",
    "is",
];
/// A line with one of these repeats a loss that was said before.
const REPEATS: [&str; 10] = [
    "best",
    "lowest",
    "saved",
    "saving",
    "checkpoint",
    "improved",
    "restored",
    "restoring",
    "early",
    "stopping",
];
const HELD_OUT: [&str; 9] = [
    "val",
    "valid",
    "validation",
    "validating",
    "eval",
    "evaluation",
    "evaluating",
    "dev",
    "held-out",
];
const TEST: [&str; 2] = ["test", "testing"];

impl Grammar for KeyValue {
    fn name(&self) -> &'static str {
        "key value"
    }

    fn read(&mut self, line: &str, _: End, draft: &mut Draft) -> Reading {
        Reading::of(self.line(line), draft, Reading::Foreign)
    }
}

impl KeyValue {
    /// The losses in a piece of text.
    pub(super) fn losses(&mut self, text: &str) -> Vec<Loss> {
        let may_speak = text.contains(['l', 'L']);
        let found = if may_speak { self.line(text) } else { None };
        found.map_or_else(Vec::new, |found| found.losses)
    }

    fn line(&mut self, line: &str) -> Option<Observation> {
        let mut draft = Draft::default();
        let mut batch_total = None;
        for pair in Pairs::of(line) {
            if pair.is_any(&REPEATS) {
                return None;
            }
            if let Some(seconds) = pair.seconds {
                draft.found.batch_seconds = Some(seconds);
            } else if let Some(loss) = self.loss(&pair) {
                draft.found.losses.push(loss);
            } else if let Some(key) = pair.words.last() {
                let field = self.keys.field(key);
                if pair.unit.is_empty() && !matches!(field, Field::Loss { .. }) {
                    put(field, key, pair.value, &mut draft);
                } else if matches!(field, Field::BatchTime(_)) {
                    draft.found.batch_seconds = pair.in_seconds();
                }
                if field == Field::Epoch {
                    draft.found.total_epochs = pair.total;
                } else if matches!(field, Field::Step | Field::Batch) {
                    batch_total = pair.total;
                }
            }
        }
        let mut found = draft.found;
        if found.losses.is_empty() {
            return None;
        }
        found.total_steps = batch_total.or(found.total_steps);
        if found.step.is_none() && found.epoch.is_some() {
            self.keys.widen(&mut found.losses, Span::Epoch);
        }
        self.place(&mut found);
        main_loss_first(&mut found.losses);
        Some(found)
    }

    /// The loss of a pair.
    fn loss(&mut self, pair: &Pair<'_>) -> Option<Loss> {
        if !pair.unit.is_empty() {
            return None;
        }
        let is_loss = |keys: &mut Keys, word: &str| matches!(keys.field(word), Field::Loss { .. });
        let at = pair.words.iter().rposition(|word| is_loss(&mut self.keys, word))?;
        let (before, rest) = pair.words.split_at_checked(at)?;
        let after = rest.get(1..)?;
        let known = |words: &[&str], list: &[&str]| words.iter().all(|word| is_in(word, list));
        if !known(before, &BEFORE) || !known(after, &AFTER) {
            return None;
        }
        let name = pair.words.join(" ");
        let Field::Loss { mut phase, span } = self.keys.field(&name) else { return None };
        if phase == Phase::Train
            && pair.words.iter().all(|word| !is_in(word, &["train", "training"]))
        {
            phase = phase_of(&pair.context).unwrap_or(phase);
        }
        let held_out = phase != Phase::Train;
        let usual = if held_out { Span::Epoch } else { Span::Step };
        Some(Loss { name, phase, span: span.unwrap_or(usual), value: pair.value })
    }

    /// Finds out whether steps count from the start of the epoch.
    fn place(&mut self, found: &mut Observation) {
        let (Some(step), Some(epoch)) = (found.step, found.epoch) else { return };
        if found.step_in_epoch || found.losses.iter().all(|loss| loss.phase != Phase::Train) {
            return;
        }
        if let Some((last_epoch, last_step)) = self.last
            && last_epoch < epoch
        {
            self.in_epoch = Some(step <= last_step);
        }
        self.last = Some((epoch, step));
        let both_totals = found.total_steps.is_some() && found.total_epochs.is_some();
        found.step_in_epoch = self.in_epoch.unwrap_or(both_totals);
    }
}

fn phase_of(context: &[&str]) -> Option<Phase> {
    if context.iter().any(|word| is_in(word, &HELD_OUT)) {
        Some(Phase::Validation)
    } else {
        context.iter().any(|word| is_in(word, &TEST)).then_some(Phase::Test)
    }
}

fn is_in(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
