//! Lines at the end of a run that have the result of the model: `LogLoss: 0.5` below lines with a counter and another
//! loss, and `Final model: val_loss 0.5` with the last loss again.

use paceline_lines::observation::{Loss, Observation, Phase};

/// How many lines in a row with the same loss and a counter show that losses have one.
const MIN_COUNTED: u32 = 6;
/// Maximum number of names that are remembered.
const MAX_NAMES: usize = 16;

/// The losses so far.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    /// The first name of the last line, and how many lines in a row have had it beside a counter.
    name: String,
    counted: u32,
    /// Names of losses.
    names: Vec<String>,
    /// The first loss of the last line with a counter and losses of the training only, and whether the line before
    /// it had the same one.
    alone: String,
    is_usual: bool,
    /// The last losses of the training and on held-out data.
    train: Option<f64>,
    held_out: Option<f64>,
}

impl Summaries {
    /// Takes the losses of a line. `is_counted`: a step or an epoch is beside them.
    pub(super) fn see(&mut self, found: &Observation, is_counted: bool) {
        let mut losses = found.losses.iter();
        let Some(first) = losses.clone().next() else { return };
        if self.name != first.name {
            self.name.clone_from(&first.name);
            self.counted = 0;
            losses.clone().for_each(|loss| self.learn(&loss.name));
        }
        self.counted = if is_counted { self.counted.saturating_add(1) } else { 0 };
        if is_counted && found.losses.iter().all(|loss| loss.phase == Phase::Train) {
            self.is_usual = self.alone == first.name;
            self.alone.clone_from(&first.name);
        }
        let train = losses.clone().find(|loss| loss.phase == Phase::Train);
        let held_out = losses.find(|loss| loss.phase != Phase::Train);
        self.train = train.map(|loss| loss.value).or(self.train);
        self.held_out = held_out.map(|loss| loss.value).or(self.held_out);
    }

    /// Whether a line with a step has means over the training and the held-out data, between lines with the loss of
    /// one step: `step 500 loss 0.5`, and then `step 500: train loss 0.4, val loss 0.6`.
    pub(super) fn estimates(&self, found: &Observation) -> bool {
        let train = found.losses.iter().find(|loss| loss.phase == Phase::Train);
        let is_mean = train.is_some_and(|loss| {
            loss.name != self.alone && loss.name.to_ascii_lowercase().contains("train")
        });
        let has_both = found.losses.iter().any(|loss| loss.phase != Phase::Train);
        self.is_usual && is_mean && has_both && found.step.is_some() && found.epoch.is_none()
    }

    fn learn(&mut self, name: &str) {
        if !self.knows(name) && self.names.len() < MAX_NAMES {
            self.names.push(name.to_owned());
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether a line has the last losses again, as those of the final model.
    pub(super) fn is_final(&self, text: &str, found: &Observation) -> bool {
        begins_with_final(text) && found.losses.iter().all(|loss| self.repeats(loss))
    }

    /// Whether a line without a counter is a summary: its losses have new names, where losses have counters. If the
    /// names come once more, they are those of a loss.
    pub(super) fn is_new(&mut self, found: &Observation) -> bool {
        if self.counted < MIN_COUNTED || self.names.len() >= MAX_NAMES {
            return false;
        }
        let is_new = |loss: &Loss| loss.phase == Phase::Train && !self.knows(&loss.name);
        let is_one = found.losses.iter().all(is_new);
        if is_one {
            found.losses.iter().for_each(|loss| self.learn(&loss.name));
        }
        is_one
    }

    fn repeats(&self, loss: &Loss) -> bool {
        let last = if loss.phase == Phase::Train { self.train } else { self.held_out };
        last.is_some_and(|last| last.total_cmp(&loss.value).is_eq())
    }
}

/// Whether a line begins with "final".
fn begins_with_final(text: &str) -> bool {
    text.split_at_checked(5).is_some_and(|(word, rest)| {
        word.eq_ignore_ascii_case("final") && rest.starts_with([' ', ':'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    #[test]
    fn new_name_without_a_counter_is_a_summary_once() {
        let mut summaries = Summaries::default();
        let other = line(0, "LogLoss");
        assert!(!summaries.is_new(&other), "no loss had a counter");
        for step in 1..=6 {
            summaries.see(&line(step, "cost"), true);
        }
        assert!(!summaries.is_new(&line(0, "COST")));
        assert!(summaries.is_new(&other));
        assert!(!summaries.is_new(&other), "it goes on");
    }

    #[test]
    fn final_line_with_the_last_loss_repeats_it() {
        let mut summaries = Summaries::default();
        let mut found = line(5, "loss");
        assert!(!summaries.is_final("Final model: loss 1", &found));
        summaries.see(&found, false);
        assert!(summaries.is_final("Final model: loss 1", &found));
        assert!(!summaries.is_final("Model: loss 1", &found));
        found.losses.iter_mut().for_each(|loss| loss.value += 1.0);
        assert!(!summaries.is_final("Final model: loss 2", &found));
    }
}
