//! One training job in one run of the policy.

use super::settings::Settings;
use super::sharing::Participant;

/// The values that a run uses.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is seen or not, by itself")]
pub(super) struct Row {
    /// Its index among the members.
    pub(super) member: usize,
    pub(super) weight: f64,
    pub(super) cap: f64,
    /// The work left, where the size is known.
    pub(super) left: Option<f64>,
    pub(super) used: f64,
    pub(super) fair: f64,
    /// The part of `fair` by which a job of unknown size may be behind.
    pub(super) theta: f64,
    /// When it was first seen.
    pub(super) since: f64,
    pub(super) is_new: bool,
    /// Whether it states a total that is believed.
    pub(super) states: bool,
    pub(super) doubted: bool,
    /// Its value per work: see [`density`].
    pub(super) density: f64,
    /// The work until its best milestone.
    pub(super) aim: f64,
    /// Whether it was served first in the previous run.
    pub(super) was_first: bool,
    /// Whether its cap has been measured.
    pub(super) cap_is_known: bool,
    /// Whether its cap must be measured again before the rest is lent.
    pub(super) cap_is_due: bool,
    /// Its usage in the last window, if it had no limit.
    pub(super) open_use: f64,
}

/// A job that can use this part of the node never has to run early to meet its deadline.
pub(super) const FREE_CAP: f64 = 0.99;
/// A job that uses less than this without a limit is measured beside others. One thread uses half of two
/// CPUs.
const SMALL: f64 = 0.52;
/// The share that is kept free for it meanwhile, beyond its usage.
const KEPT: f64 = 0.15;
/// The least share that is kept free for a job that has not begun.
const MIN_KEPT: f64 = 0.4;

impl Row {
    /// Whether it must run at its cap from now on to meet its deadline.
    pub(super) fn must_run(&self, due: f64, least: f64) -> bool {
        self.cap < FREE_CAP && self.left.is_some_and(|left| due - left / self.cap <= least)
    }

    /// The share that is kept free for it while its cap is measured beside other jobs; `None` if it is not
    /// measured so. Only apparently small jobs are.
    pub(super) fn kept(&self) -> Option<f64> {
        let (uses, least) = if self.is_new && !self.cap_is_known {
            (self.open_use, MIN_KEPT)
        } else if self.cap_is_due && self.left.is_some() {
            (self.cap, 0.0)
        } else {
            return None;
        };
        (uses < SMALL).then(|| (uses + KEPT).max(least))
    }

    /// The work left. If it is unknown, the job counts as half done.
    pub(super) fn guess(&self, prior: f64) -> f64 {
        self.left.unwrap_or(self.used.max(prior))
    }

    /// The part of its fair service by which it may be behind if its size is unknown. It is relative to what an
    /// equal share, `equal` of the node, gives it in the time since it was first seen.
    pub(super) fn may_lag(&self, equal: f64, t: f64, settings: &Settings) -> f64 {
        // A job that will report its size soon may not fall behind.
        if self.states || self.fair <= 0.0 {
            return 0.0;
        }
        settings.theta * (equal * (t - self.since).max(0.0) / self.fair).min(1.0)
    }

    /// Its part in the virtual system until now.
    pub(super) fn participant(&self) -> Participant {
        let left = virtual_left(self.left, self.used, self.fair);
        Participant { weight: self.weight, cap: self.cap, left }
    }

    /// Its work left in the virtual system, with a guess for a size that is unknown.
    pub(super) fn virtual_left(&self, prior: f64) -> f64 {
        let used = if self.left.is_some() { self.used } else { self.used.max(self.fair) };
        crate::unit::saturate(used + self.guess(prior) - self.fair).max(0.0)
    }
}

/// The work of a job that is left in the virtual system; infinite if its size is unknown.
pub(super) fn virtual_left(left: Option<f64>, used: f64, fair: f64) -> f64 {
    left.map_or(f64::INFINITY, |left| (used + left - fair).max(0.0))
}

/// A milestone before a job's end: the work until it, and its weight relative to the end.
type Milestone = Option<(f64, f64)>;

/// The density of a job and the work until its best milestone. The density is the weight gained up to a
/// milestone divided by the work until it, for the best milestone. The end is the last one, of weight 1.
pub(super) fn density<const N: usize>(
    weight: f64,
    left: f64,
    mut milestones: [Milestone; N],
) -> (f64, f64) {
    let work = |milestone: &Milestone| milestone.map_or(f64::INFINITY, |(work, _)| work);
    if milestones.iter().flatten().nth(1).is_some() {
        milestones.sort_by(|a, b| work(a).total_cmp(&work(b)));
    }
    let (mut gained, mut best, mut aim) = (0.0, 0.0, 0.0);
    let mut reach = |work: f64, gain: f64| {
        gained += gain;
        let density = gained / work.max(f64::MIN_POSITIVE);
        if density > best {
            (best, aim) = (density, work);
        }
    };
    for (work, gain) in milestones.into_iter().flatten() {
        reach(work, gain);
    }
    reach(left, 1.0);
    (crate::unit::saturate(weight * best), aim)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A job of 10 node-seconds of work that can use the whole node and has received nothing.
    pub(in super::super) const ROW: Row = Row {
        member: 0,
        weight: 1.0,
        cap: 1.0,
        left: Some(10.0),
        used: 0.0,
        fair: 0.0,
        theta: 0.0,
        since: 0.0,
        is_new: false,
        states: true,
        doubted: false,
        density: 0.1,
        aim: 10.0,
        was_first: false,
        cap_is_known: true,
        cap_is_due: false,
        open_use: 0.0,
    };

    #[test]
    fn job_that_uses_little_is_measured_beside_others() {
        let newcomer = Row { is_new: true, cap_is_known: false, left: None, ..ROW };
        let due = Row { cap_is_due: true, cap: 0.3, ..ROW };
        for (row, kept) in [
            (ROW, None),
            (newcomer, Some(0.4)),
            (Row { open_use: 0.5, ..newcomer }, Some(0.65)),
            (Row { open_use: 0.6, ..newcomer }, None),
            (Row { cap_is_known: true, ..newcomer }, None),
            (due, Some(0.45)),
            (Row { left: None, ..due }, None),
            (Row { cap: 0.9, ..due }, None),
        ] {
            let hundredths = |part: f64| (100.0 * part).round();
            assert_eq!(row.kept().map(hundredths), kept.map(hundredths), "{row:?}");
        }
    }

    #[test]
    fn density_is_that_of_the_best_milestone() {
        let is = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let none = [None; 5];
        is(density(1.0, 10.0, none).0, 0.1);
        is(density(2.0, 10.0, [None, Some((2.0, 1.0)), None, None, None]).0, 1.0);
        is(density(1.0, 10.0, [Some((9.0, 1.0)), None, Some((8.0, 1.0)), None, None]).0, 0.3);
        assert!(density(1.0, 0.0, none).0.is_finite());
    }
}
