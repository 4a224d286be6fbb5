//! An observation in the making.

use crate::observation::{Loss, Observation, Phase, Span};

/// What a line says so far. It keeps the memory of the losses of earlier lines, so that most lines
/// need none.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) found: Observation,
    /// The epoch by how often a bar has begun anew, for when nothing says it.
    pub(super) counted_epoch: Option<u32>,
    spare: Vec<Loss>,
}

/// More losses than these are not kept for their memory.
const KEPT: usize = 16;

impl Draft {
    /// Makes it say nothing.
    pub(super) fn clear(&mut self) {
        if self.spare.is_empty() && self.found.losses.len() <= KEPT {
            std::mem::swap(&mut self.spare, &mut self.found.losses);
        }
        let mut losses = std::mem::take(&mut self.found.losses);
        while let Some(loss) = losses.pop() {
            self.put_away(loss);
        }
        self.counted_epoch = None;
        self.found = Observation { losses, ..Observation::default() };
    }

    /// Leaves only the losses that are to be kept.
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
        if self.spare.len() < KEPT {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_no_more_than_so_much() {
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
            assert_eq!((&draft.found, draft.spare.len()), (&Observation::default(), KEPT));
        }
    }
}
