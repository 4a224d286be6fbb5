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
    /// Of a job that has gone, `seconds` after its last frame at the most; `None` if nothing is left of it.
    pub(super) fn of(member: &Member, seconds: f64) -> Option<Self> {
        if member.service.is_some() || member.is_over {
            return None;
        }
        let used = Self::used(member, seconds);
        let more = member
            .left
            .map_or(0.0, |left| (left - (used - member.used())).clamp(0.0, used.max(LEAST)));
        let left = used + more - member.fair;
        (left > 0.0).then(|| Self { weight: member.weight, cap: member.can_use(), left })
    }

    /// What a job that has gone had in the virtual system beyond its whole work: so much the others could have
    /// had. The virtual system does not know where a job of unknown size ends.
    pub(super) fn excess(member: &Member, seconds: f64) -> f64 {
        if member.service.is_some() || member.is_over || member.left.is_some() {
            return 0.0;
        }
        (member.fair - Self::used(member, seconds)).max(0.0)
    }

    /// What it received by its end, `seconds` after its last frame: no frame covers that time.
    fn used(member: &Member, seconds: f64) -> f64 {
        let since = member.share.min(member.can_use()) * seconds;
        member.used() + member.left.map_or(since, |left| left.min(since))
    }
}
