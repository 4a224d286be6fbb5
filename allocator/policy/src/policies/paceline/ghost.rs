//! Jobs that are gone before their virtual end.
//!
//! They continue in the virtual system until then. So an early end does not move the deadlines of others.

use super::member::Member;
use super::sharing::Participant;

/// A job that reported remaining work is believed up to its usage, but for at least this many
/// node-seconds.
const MIN_WORK: f64 = 1.0;

/// The rest of such a job in the virtual system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ghost {
    pub(super) weight: f64,
    pub(super) cap: f64,
    /// Its virtual work left.
    pub(super) left: f64,
}

impl Ghost {
    /// The ghost of a job that ended at most `seconds` after its last frame; `None` if it has no virtual work
    /// left.
    pub(super) fn from_member(member: &Member, seconds: f64) -> Option<Self> {
        if member.service.is_some() || member.is_over {
            return None;
        }
        let used = Self::used(member, seconds);
        let more = member
            .left
            .map_or(0.0, |left| (left - (used - member.used())).clamp(0.0, used.max(MIN_WORK)));
        let left = used + more - member.fair;
        (left > 0.0).then(|| Self { weight: member.weight, cap: member.can_use(), left })
    }

    /// Its part in the virtual system.
    pub(super) fn participant(&self) -> Participant {
        Participant { weight: self.weight, cap: self.cap, left: self.left }
    }

    /// The virtual service of a job beyond its whole work, which the others could have had. It arises because
    /// the virtual system does not know where a job of unknown size ends.
    pub(super) fn excess(member: &Member, seconds: f64) -> f64 {
        if member.service.is_some() || member.is_over || member.left.is_some() {
            return 0.0;
        }
        (member.fair - Self::used(member, seconds)).max(0.0)
    }

    /// The service received by its end, `seconds` after its last frame. The time after it is estimated.
    fn used(member: &Member, seconds: f64) -> f64 {
        let since = member.share.min(member.can_use()) * seconds;
        member.used() + member.left.map_or(since, |left| left.min(since))
    }
}
