//! The step of the last training loss. Some programs print each part of a loss on a line of its own,
//! with the same step; they are one loss.

use paceline_lines::names::rank;
use paceline_lines::observation::{Loss, Observation, Phase};

/// The last line with a training loss and its step.
#[derive(Debug, Default)]
pub(super) struct Said {
    step: Option<u64>,
    epoch: Option<f64>,
    /// The name of its loss.
    name: String,
    /// Names of which another line of the same step had a main loss.
    parts: Vec<String>,
    /// The step and the epoch of parts that came before their main loss.
    ahead: Option<(Option<u64>, Option<f64>)>,
}

/// Maximum number of remembered parts.
const MAX_PARTS: usize = 8;

impl Said {
    /// Takes a line with a training loss and a step. Returns whether it has only another part of the
    /// loss of that step.
    pub(super) fn repeats(&mut self, found: &Observation) -> bool {
        let is_training = |loss: &&Loss| loss.phase == Phase::Train;
        let Some(loss) = found.losses.iter().find(is_training) else { return false };
        if found.losses.len() > 1 || found.step.is_none() {
            self.step = None;
            return false;
        }
        let same_step = self.step == found.step && self.epoch == found.epoch;
        if !self.parts.is_empty() && self.is_ahead(loss, found) {
            return true;
        }
        (self.step, self.epoch) = (found.step, found.epoch);
        if self.name == loss.name {
            return false;
        }
        self.is_beside(loss, same_step)
    }

    /// Whether a part of a loss comes before its main loss.
    fn is_ahead(&mut self, loss: &Loss, found: &Observation) -> bool {
        let ahead = self.parts.contains(&loss.name).then_some((found.step, found.epoch));
        let before = std::mem::replace(&mut self.ahead, ahead);
        if ahead.is_none() {
            return false;
        }
        if before.is_none() || before == ahead {
            return true;
        }
        // No main loss came for the step before: it is a rarer one.
        self.parts.clear();
        self.ahead = None;
        false
    }

    /// Takes a loss with another name. Returns whether it is a part of the one with the same step.
    #[inline(never)]
    fn is_beside(&mut self, loss: &Loss, same_step: bool) -> bool {
        if same_step && rank(&self.name) <= rank(&loss.name) {
            return true;
        }
        let before = std::mem::replace(&mut self.name, loss.name.clone());
        if same_step && self.parts.len() < MAX_PARTS {
            self.parts.push(before);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::line;
    use super::*;

    #[test]
    fn lines_of_one_step_are_one_loss() {
        let mut said = Said::default();
        let mut repeats = |step, name| said.repeats(&line(step, name));
        assert!(!repeats(1, "mel_loss") && repeats(1, "stop_loss"));
        assert!(!repeats(2, "mel_loss") && repeats(2, "stop_loss"));
        // The same name again is another report, as after a restart.
        assert!(!repeats(2, "mel_loss"));
        // A main loss after its parts is used from then on.
        assert!(!repeats(2, "total_loss"));
        assert!(repeats(3, "mel_loss") && !repeats(3, "total_loss"));
    }

    #[test]
    fn parts_go_on_without_a_rarer_main_loss() {
        let mut said = Said::default();
        let mut repeats = |step, name| said.repeats(&line(step, name));
        assert!(!repeats(1, "mel_loss") && repeats(1, "stop_loss") && !repeats(1, "total_loss"));
        assert!(repeats(2, "mel_loss") && !repeats(2, "stop_loss") && repeats(3, "mel_loss"));
        assert!(!repeats(4, "mel_loss") && !repeats(5, "mel_loss"));
    }
}
