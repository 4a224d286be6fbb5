//! Services: jobs with a target for their batch latency, and the share that each needs to meet it.
//!
//! A batch takes a fixed time plus a time inverse to the share: L = f + g / share. Both follow from two
//! measurements at different shares. With only one, f is assumed to be 0.

use std::collections::VecDeque;

/// The number of measurements that are kept.
const MAX_PAIRS: usize = 8;
/// Shares are different if one is at least this many times the other.
const APART: f64 = 1.1;
/// The factor by which a need is increased for safety.
const MARGIN: f64 = 1.02;
/// If not all needs can be met, a latency of this many times the target is enough. The target counts as met
/// within a tenth above it.
const LATE: f64 = 1.08;
/// The factor on the need of a service that was admitted before, so that it tends to stay admitted.
const KEPT: f64 = 0.85;
/// The share that is left for each service that is not admitted, as a part of an equal share.
const LEFT: f64 = 0.5;

/// Differences of shares below this are rounding.
const ROUNDING: f64 = 1e-9;

/// One service over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Service {
    /// Share used and latency, the latest at the back.
    pairs: VecDeque<(f64, f64)>,
    admitted: bool,
}

/// The need of a service, and the share that it gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Claim {
    /// The target latency and the last one measured, in seconds.
    pub(super) target: f64,
    pub(super) latency: Option<f64>,
    /// The share that meets the target, and one that just about meets it; infinite if none does.
    pub(super) need: f64,
    late_need: f64,
    /// The largest share that its owner allows.
    pub(super) most: f64,
    pub(super) weight: f64,
    pub(super) share: f64,
    pub(super) admitted: bool,
}

impl Service {
    /// Records the measurements of a window.
    pub(super) fn take(&mut self, usage: Option<f64>, latency: Option<f64>) {
        let usable = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
        let Some(pair) = usable(usage).zip(usable(latency)) else { return };
        if self.pairs.len() >= MAX_PAIRS {
            self.pairs.pop_front();
        }
        self.pairs.push_back(pair);
    }

    /// Its claim; `equal` is an equal share, which it gets while nothing is measured.
    pub(super) fn claim(&self, target: f64, equal: f64, most: f64, weight: f64) -> Claim {
        let need = |target| self.need(target).unwrap_or(equal / MARGIN);
        let latency = self.pairs.back().map(|(_, latency)| *latency);
        let (late_need, admitted) = (need(LATE * target), self.admitted);
        let need = need(target);
        Claim { target, latency, need, late_need, most, weight, share: 0.0, admitted }
    }

    pub(super) fn remember(&mut self, claim: &Claim) {
        self.admitted = claim.admitted;
    }

    /// The share at which a batch takes `target` seconds.
    fn need(&self, target: f64) -> Option<f64> {
        let (usage, latency) = *self.pairs.back()?;
        let least = self.pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let most = self.pairs.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        if most.0 > APART * least.0 {
            let slope = (least.1 - most.1) / (1.0 / least.0 - 1.0 / most.0);
            let fixed = latency - slope / usage;
            if slope > 0.0 && fixed > 0.0 {
                return Some(if target > fixed { slope / (target - fixed) } else { f64::INFINITY });
            }
        }
        Some(usage * latency / target)
    }
}

/// Gives out `room` of the node to services; returns the sum of their shares.
pub(super) fn admit(claims: &mut [Claim], room: f64) -> f64 {
    let wants = |claim: &Claim| (MARGIN * claim.need).min(claim.most);
    let reachable = |claim: &Claim| claim.need * MARGIN <= claim.most;
    let all: f64 = claims.iter().map(wants).sum();
    if all <= room + ROUNDING && claims.iter().all(reachable) {
        for claim in &mut *claims {
            (claim.share, claim.admitted) = (wants(claim), true);
        }
        return all;
    }
    share_out(claims, room);
    claims.iter().map(|claim| claim.share).sum()
}

/// Admits services in the order of their needs, while enough is left for the others.
fn share_out(claims: &mut [Claim], room: f64) {
    let number = crate::unit::count(claims.len());
    let mut order: Vec<&mut Claim> = claims.iter_mut().collect();
    let rank = |claim: &Claim| claim.late_need * if claim.admitted { KEPT } else { 1.0 };
    order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let (mut left, mut waiting) = (room, number);
    let mut rest = Vec::new();
    let mut admitted = Vec::new();
    for claim in order {
        let share = MARGIN * claim.late_need;
        let others = LEFT / number * (waiting - 1.0);
        claim.admitted = rest.is_empty() && share <= claim.most && share + others <= left;
        if claim.admitted {
            claim.share = share;
            left -= share;
            waiting -= 1.0;
            admitted.push(claim);
        } else {
            rest.push(claim);
        }
    }
    // The durations of batches vary. So a rest beyond the part of the others brings the admitted services
    // nearer to their targets.
    let more = |claim: &Claim| ((MARGIN * claim.need).min(claim.most) - claim.share).max(0.0);
    let wanted: f64 = admitted.iter().map(|claim| more(claim)).sum();
    let spare = (left - LEFT / number * waiting).clamp(0.0, wanted);
    for claim in admitted {
        claim.share += more(claim) * if wanted > 0.0 { spare / wanted } else { 0.0 };
    }
    left -= spare;
    let weights: f64 = rest.iter().map(|claim| claim.weight).sum();
    for claim in rest {
        claim.share = (left.max(0.0) * claim.weight / weights).min(claim.most).min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(shares: &[f64]) -> Service {
        let mut service = Service::default();
        for share in shares {
            service.take(Some(*share), Some(0.34 + 0.282 / share));
        }
        service
    }

    fn claim(target: f64) -> Claim {
        measured(&[0.1, 0.2]).claim(target, 0.1, 1.0, 1.0)
    }

    #[test]
    fn spare_room_brings_admitted_services_nearer_to_their_targets() {
        // A service whose target is unreachable leaves the other more than the minimum.
        let mut claims = [claim(2.0), claim(0.3)];
        let given = admit(&mut claims, 0.9);
        let [kept, never] = claims;
        assert!(kept.admitted && !never.admitted && given <= 0.9 + 1e-9);
        assert!((kept.share - MARGIN * kept.need).abs() < 1e-9, "{kept:?}");
        assert!(kept.share > MARGIN * kept.late_need);
    }

    #[test]
    fn need_follows_from_two_shares_that_differ() {
        let exact = 0.282 / (2.0 - 0.34);
        assert!((claim(2.0).need - exact).abs() < 1e-9);
        assert!(claim(0.3).need.is_infinite(), "below what a batch takes at any share");
        let one = measured(&[0.1, 0.101]).claim(2.0, 0.1, 1.0, 1.0).need;
        assert!((one - 0.101 * (0.34 + 0.282 / 0.101) / 2.0).abs() < 1e-9, "{one}");
        let unknown = Service::default().claim(2.0, 0.1, 1.0, 1.0).need;
        assert!((MARGIN * unknown - 0.1).abs() < 1e-12);
    }

    #[test]
    fn services_that_all_fit_are_given_their_needs() {
        let mut claims = vec![claim(4.0), claim(5.0)];
        let given = admit(&mut claims, 1.0);
        for claim in &claims {
            assert!(claim.admitted && (claim.share - 1.02 * claim.need).abs() < 1e-12);
        }
        assert!((given - claims.iter().map(|claim| claim.share).sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn where_not_all_fit_the_least_needs_are_admitted() {
        let mut claims: Vec<Claim> = (0..10).map(|_| claim(2.0)).collect();
        let given = admit(&mut claims, 1.0);
        let admitted = claims.iter().filter(|claim| claim.admitted).count();
        assert_eq!(admitted, 4);
        assert!((given - 1.0).abs() < 1e-9);
        assert!(claims.iter().all(|claim| claim.share > 0.04));
    }
}
