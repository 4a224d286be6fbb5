//! Jobs that have gone before their virtual end.
//!
//! In the virtual system they go on until then: so no deadline of others moves when one ends early.

use super::member::Member;

/// A job that said it had more left is taken at its word up to what it has used, and so much at least.
const LEAST: f64 = 1.0;

/// What is left of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ghost {
    pub(super) weight: f64,
    pub(super) cap: f64,
    /// Its virtual work left.
    pub(super) left: f64,
}

impl Ghost {
    /// Of a job that has gone; `None` if nothing is left of it.
    pub(super) fn of(member: &Member) -> Option<Self> {
        if member.service.is_some() || member.is_over {
            return None;
        }
        let used = member.used();
        let more = member.left.map_or(0.0, |left| left.min(used.max(LEAST)));
        let left = used + more - member.fair;
        (left > 0.0).then(|| Self { weight: member.weight, cap: member.can_use(), left })
    }
}
