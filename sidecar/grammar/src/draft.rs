//! An observation that is being built.

use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// The observation of the current line. It reuses the memory of earlier losses, so that most lines
/// allocate nothing.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) found: Observation,
    /// The epoch counted by the restarts of a bar, for lines without an epoch.
    pub(super) counted_epoch: Option<u32>,
    /// The step is that of the whole run, whatever other counters there are.
    pub(super) global: bool,
    /// The total that came with the step in one text: `5/90`.
    pub(super) with_step: Option<u64>,
    /// The number of batches of an epoch.
    pub(super) length: Option<u64>,
    /// A time that is that of a batch if another one stands beside it.
    pub(super) time: Option<f64>,
    pub(super) beside_time: bool,
    /// The counters are those of held-out data.
    pub(super) held_out: bool,
    /// The held-out data that all values of the line are of, by a field that names it.
    pub(super) data: Option<Phase>,
    pub(super) steps: Steps,
    /// The epoch of the last heading. It stays from line to line.
    pub(super) below: Option<f64>,
    spare: Vec<Loss>,
}

/// What is known of the steps of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// A step or a batch has a name.
    pub(super) named: bool,
    /// It is certain whether they restart with each epoch.
    pub(super) fixed: bool,
    /// They are those of an epoch if a heading has named one.
    pub(super) below_heading: bool,
}

/// Maximum number of losses whose memory is kept.
const MAX_SPARE: usize = 16;

impl Draft {
    /// Empties the draft.
    pub(super) fn clear(&mut self) {
        if self.spare.is_empty() && self.found.losses.len() <= MAX_SPARE {
            std::mem::swap(&mut self.spare, &mut self.found.losses);
        }
        let mut losses = std::mem::take(&mut self.found.losses);
        while let Some(loss) = losses.pop() {
            self.put_away(loss);
        }
        self.counted_epoch = None;
        (self.global, self.time, self.beside_time) = (false, None, false);
        (self.with_step, self.length) = (None, None);
        (self.held_out, self.data, self.steps) = (false, None, Steps::default());
        self.found = Observation { losses, ..Observation::default() };
    }

    /// Uses the time beside that of the data as the time of a batch.
    #[inline]
    pub(super) fn settle_time(&mut self) {
        let time = self.time.filter(|_| self.beside_time && self.found.step.is_some());
        self.found.batch_seconds = self.found.batch_seconds.or(time);
    }

    /// Decides what the counters of a dict count, once all of its keys are known. Beside an epoch, a step with
    /// its total is one of the epoch, and so is a batch with their number.
    #[inline]
    pub(super) fn settle_counters(&mut self) {
        let found = &mut self.found;
        found.step_in_epoch |= self.with_step.is_some() && found.epoch.is_some() && !self.global;
        if found.step_in_epoch && found.total_steps.is_none() {
            found.total_steps = self.length.filter(|length| *length > 0);
        }
    }

    /// Makes the losses those of held-out data, if a field of the line names it. A loss whose name
    /// contains its own data keeps them.
    #[inline]
    pub(super) fn settle_data(&mut self) {
        let Some(phase) = self.data else { return };
        let is_open = |loss: &Loss| loss.phase == Phase::Train && !says_train(loss);
        for loss in self.found.losses.iter_mut().filter(|loss| is_open(loss)) {
            (loss.phase, loss.span) = (phase, Span::Epoch);
        }
    }

    /// Whether the name of a loss is that of the training.
    pub(super) fn says_train(&self) -> bool {
        self.found.losses.iter().any(says_train)
    }

    /// Removes the losses for which `keep` is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Loss) -> bool) {
        let mut at = 0;
        while let Some(loss) = self.found.losses.get(at) {
            if keep(loss) {
                at += 1;
            } else {
                let loss = self.found.losses.remove(at);
                self.put_away(loss);
            }
        }
    }

    fn put_away(&mut self, loss: Loss) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(loss);
        }
    }

    /// Adds a loss.
    pub(super) fn push(&mut self, name: &str, phase: Phase, span: Span, value: f64) {
        let mut loss =
            self.spare.pop().unwrap_or_else(|| Loss { name: String::new(), phase, span, value });
        if loss.name != name {
            loss.name.clear();
            loss.name.push_str(name);
        }
        loss.phase = phase;
        loss.span = span;
        loss.value = value;
        self.found.losses.push(loss);
    }
}

/// Whether the name of a loss is that of the training.
fn says_train(loss: &Loss) -> bool {
    loss.name.to_ascii_lowercase().contains("train")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_up_to_a_limit() {
        let mut draft = Draft::default();
        for round in 0..3 {
            for index in 0..100 {
                draft.push(&format!("loss {round} {index}"), Phase::Train, Span::Step, 0.5);
            }
            assert_eq!(draft.found.losses.len(), 100);
            assert_eq!(draft.found.losses[7].name, format!("loss {round} 7"));
            draft.retain(|loss| loss.name.ends_with('5'));
            assert_eq!(draft.found.losses.len(), 10);
            draft.clear();
            assert_eq!((&draft.found, draft.spare.len()), (&Observation::default(), MAX_SPARE));
        }
    }
}
