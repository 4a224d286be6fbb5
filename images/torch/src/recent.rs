//! The last losses.

use std::collections::VecDeque;

/// The number of losses of which the published loss is the mean.
const COUNT: usize = 5;

/// The last finite losses of a run.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<f64>);

impl Recent {
    pub(crate) fn add(&mut self, loss: f64) {
        if !loss.is_finite() {
            return;
        }
        if self.0.len() == COUNT {
            self.0.pop_front();
        }
        self.0.push_back(loss);
    }

    /// The mean of the losses; `None` without any.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = u32::try_from(self.0.len()).ok().filter(|count| *count > 0)?;
        Some(self.0.iter().sum::<f64>() / f64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_last_finite_losses_count() {
        let mut recent = Recent::default();
        assert_eq!(recent.mean(), None);
        recent.add(100.0);
        for loss in [1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0] {
            recent.add(loss);
        }
        assert_eq!(recent.mean(), Some(3.0));
    }
}
