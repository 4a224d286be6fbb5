//! What the jobs add up to, read in the one pass over them that follows a frame.

use super::member::Member;

/// Sums over the members of a frame.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Their usage, and that of the ones that are not services; `unmeasured` if it is not known of all.
    pub(super) used: f64,
    pub(super) trained: f64,
    pub(super) unmeasured: bool,
    /// The weights of the members that have not ended, and of those of them that train.
    pub(super) weights: f64,
    pub(super) training: f64,
    /// The indices of the services that have not ended.
    pub(super) services: Vec<usize>,
    /// Whether the next loss of some job decides about its end.
    pub(super) confirms: bool,
}

impl Tally {
    /// Adds the member at the index `at`.
    pub(super) fn add(&mut self, at: usize, member: &Member) {
        let used = member.usage.unwrap_or(0.0);
        self.used += used;
        self.unmeasured |= member.usage.is_none();
        self.confirms |= member.ending.is_being_confirmed();
        let runs = member.ending.ended().is_none();
        if runs {
            self.weights += member.weight;
        }
        if member.service.is_none() {
            self.trained += used;
            if runs {
                self.training += member.weight;
            }
        } else if runs {
            self.services.push(at);
        }
    }
}
