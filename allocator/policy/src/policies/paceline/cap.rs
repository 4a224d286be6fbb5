//! The largest share of the node that a job can use.
//!
//! It is measured only while the job could have had more. Otherwise two competing jobs would look as if
//! neither could use more than half. A job at its owner's maximum could not have had more from anyone, so this
//! counts as no limit.

use super::speed::MIN_WINDOW;

/// A job that uses less than this part of the free share is limited by itself, not by others.
const FILLS: f64 = 0.9;
/// The free share of the node that a measurement requires.
const MIN_FREE: f64 = 0.3;
/// With less than this part of the node idle, others may have kept a job from using more.
const MIN_IDLE: f64 = 0.15;
/// A job that uses less than this part of its limit is not held back by the limit.
pub(super) const USES_UP: f64 = 0.85;
/// A limit this far below the owner's maximum counts as no limit: the limiter writes no smaller change.
const SLIGHT: f64 = 0.01;
/// Seconds after which a cap is measured again: at first, and at most.
const FIRST_GAP: f64 = 30.0;
const MAX_GAP: f64 = 240.0;
/// A measurement that fails in this many windows is postponed.
const MAX_TRIES: u8 = 4;
/// A cap that has changed by less than this part counts as unchanged.
const SAME: f64 = 0.1;
/// The smallest cap.
const MIN_CAP: f64 = 0.001;

/// One window in which a job was served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) t: f64,
    pub(super) seconds: f64,
    /// Its limit in force.
    pub(super) limit: f64,
    /// The largest share that its owner allows.
    pub(super) most: f64,
    /// The share that the limits of all other jobs, and other processes, leave.
    pub(super) free: f64,
    /// The unused part of the node.
    pub(super) idle: f64,
    /// Whether it had reported a step before the window began.
    pub(super) stepped: bool,
}

impl Served {
    /// Whether only the job itself kept it from using more. Either it had no limit and enough room, or it did
    /// not use up its limit while a part of the node was idle.
    pub(super) fn could_use_more(&self, usage: f64) -> bool {
        let has_room = self.is_unlimited() && self.free > MIN_FREE;
        has_room && self.stepped || self.leaves_idle(usage)
    }

    /// Whether it used less than its limit while a part of the node was idle.
    fn leaves_idle(&self, usage: f64) -> bool {
        self.lasted() && self.stepped && self.idle > MIN_IDLE && usage < USES_UP * self.limit
    }

    /// Whether it had no limit, for long enough to measure.
    pub(super) fn is_unlimited(&self) -> bool {
        self.has_most() && self.lasted()
    }

    /// Whether its limit is all that its owner allows.
    fn has_most(&self) -> bool {
        self.limit >= self.most - SLIGHT
    }

    fn lasted(&self) -> bool {
        self.seconds >= MIN_WINDOW
    }
}

/// A job's cap, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    most: f64,
    /// Whether it has been seen to use most of the node.
    uses_all: bool,
    /// The usage in the first of two windows.
    before: Option<f64>,
    measured: Option<f64>,
    gap: f64,
    tries: u8,
}

impl Cap {
    pub(super) const fn new() -> Self {
        Self { most: 1.0, uses_all: false, before: None, measured: None, gap: FIRST_GAP, tries: 0 }
    }

    /// The cap as a fraction of the node, at most `limit`.
    pub(super) fn within(&self, limit: f64) -> f64 {
        self.most.min(limit).clamp(MIN_CAP, 1.0)
    }

    /// Whether the cap has been measured.
    pub(super) fn is_known(&self) -> bool {
        self.uses_all || self.measured.is_some()
    }

    /// Whether it must be measured again before the rest of the node is lent.
    pub(super) fn is_due(&self, t: f64) -> bool {
        self.most < 1.0 && self.measured.is_none_or(|at| t - at >= self.gap)
    }

    /// Makes it measured again soon, since its owner has changed the maximum. What it used under the old one
    /// may have been held back by that.
    pub(super) fn measure_again(&mut self) {
        (self.uses_all, self.before, self.gap) = (false, None, FIRST_GAP);
        if self.most >= 1.0 {
            self.measured = None;
        }
    }

    /// Records the usage in a window; `served` is `None` if the job was not served in it. A cap above
    /// `whole` counts as the whole node.
    pub(super) fn take(&mut self, usage: Option<f64>, served: Option<Served>, whole: f64) {
        if let Some(served) = served.filter(|served| self.is_due(served.t) && served.has_most()) {
            self.tries += 1;
            if self.tries >= MAX_TRIES {
                (self.measured, self.tries) = (Some(served.t), 0);
            }
        }
        let Some(usage) = usage.filter(|usage| usage.is_finite()) else { return };
        self.uses_all |= usage > whole;
        if let Some(served) = served.filter(|served| served.could_use_more(usage)) {
            self.measure(usage, served, whole);
        }
        if usage > self.most {
            self.set(usage, whole);
        }
    }

    fn measure(&mut self, usage: f64, served: Served, whole: f64) {
        let fills = usage >= FILLS * served.free && served.free <= FILLS;
        if fills && !served.leaves_idle(usage) {
            return;
        }
        let Some(before) = self.before.take() else {
            self.before = Some(usage);
            return;
        };
        let old = self.most;
        self.set(before.max(usage), whole);
        let same = (self.most - old).abs() <= SAME * old;
        self.gap = match self.measured {
            Some(_) if same => (2.0 * self.gap).min(MAX_GAP),
            Some(_) | None => FIRST_GAP,
        };
        (self.measured, self.tries) = (Some(served.t), 0);
    }

    fn set(&mut self, most: f64, whole: f64) {
        self.most = if most > whole { 1.0 } else { most.clamp(MIN_CAP, 1.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Served = Served {
        t: 10.0,
        seconds: 1.0,
        limit: 1.0,
        most: 1.0,
        free: 0.95,
        idle: 0.0,
        stepped: true,
    };

    #[expect(clippy::unnecessary_wraps, reason = "a window may be one in which it was not served")]
    fn first(free: f64) -> Option<Served> {
        Some(Served { free, ..WINDOW })
    }

    fn after(windows: &[(f64, Option<Served>)]) -> f64 {
        let mut cap = Cap::new();
        for (usage, first) in windows {
            cap.take(Some(*usage), *first, 0.6);
        }
        cap.within(1.0)
    }

    fn is(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn cap_is_the_larger_use_of_two_windows_with_room() {
        assert!(is(after(&[(0.2, first(0.95)), (0.19, first(0.95))]), 0.2));
        assert!(is(after(&[(0.2, first(0.95))]), 1.0), "one window is not enough");
        assert!(is(after(&[(0.7, first(0.95)), (0.7, first(0.95))]), 1.0), "more than 0.6 is all");
    }

    #[test]
    fn use_beside_others_lowers_no_cap() {
        for window in [None, first(0.2), first(0.5)] {
            assert!(
                is(after(&[(0.48, window), (0.48, window), (0.48, window)]), 1.0),
                "{window:?}"
            );
        }
        let limited = first(0.95).map(|first| Served { limit: 0.5, ..first });
        let loading = first(0.95).map(|first| Served { stepped: false, ..first });
        for window in [limited, loading] {
            assert!(is(after(&[(0.1, window), (0.1, window)]), 1.0), "{window:?}");
        }
    }

    #[test]
    fn cap_is_the_usage_below_the_limit_while_the_node_is_idle() {
        let window = |idle| first(0.2).map(|first| Served { limit: 0.7, idle, ..first });
        assert!(is(after(&[(0.4, window(0.3)), (0.42, window(0.3))]), 0.42));
        assert!(
            is(after(&[(0.4, window(0.05)), (0.42, window(0.05))]), 1.0),
            "others use the rest"
        );
        assert!(is(after(&[(0.65, window(0.3)), (0.65, window(0.3))]), 1.0), "its limit holds it");
    }

    #[test]
    fn use_above_the_cap_raises_it() {
        let low = [(0.2, first(0.95)), (0.2, first(0.95))];
        assert!(is(after(&[low[0], low[1], (0.3, None)]), 0.3));
        assert!(is(after(&[low[0], low[1], (0.7, None)]), 1.0));
    }

    #[test]
    fn cap_is_measured_again_later_each_time() {
        let mut cap = Cap::new();
        assert!(!cap.is_due(0.0), "nothing is lent of the whole node");
        for (t, due, later) in [(10.0, 40.0, 39.0), (40.0, 100.0, 99.0), (100.0, 220.0, 219.0)] {
            for _ in 0..2 {
                cap.take(Some(0.2), Some(Served { t, ..WINDOW }), 0.6);
            }
            assert!(cap.is_due(due) && !cap.is_due(later), "{t}");
        }
        cap.measure_again();
        assert!(cap.is_due(130.0) && !cap.is_due(129.0), "its owner has changed the maximum");
    }

    #[test]
    fn limit_at_the_owners_maximum_counts_as_none() {
        let window = |limit| Some(Served { limit, most: 0.5, free: 0.35, ..WINDOW });
        for (limit, cap) in [(0.5, 0.2), (0.495, 0.2), (0.4, 1.0)] {
            let pair = [(0.2, window(limit)), (0.2, window(limit))];
            assert!(is(after(&pair), cap), "{limit}");
        }
    }

    #[test]
    fn job_that_uses_up_its_owners_maximum_is_never_due() {
        let mut cap = Cap::new();
        for second in 0..200_u32 {
            let usage = if second < 2 { 0.3 } else { 0.48 };
            let (t, idle) = (f64::from(second), 1.0 - usage);
            let window = Served { t, limit: 0.5, most: 0.5, idle, ..WINDOW };
            cap.take(Some(usage), Some(window), USES_UP * 0.5);
            assert!(second != 1 || is(cap.within(0.5), 0.3), "two windows of low use");
        }
        assert!(!cap.is_due(200.0) && is(cap.within(0.5), 0.5));
        cap.measure_again();
        assert!(!cap.is_known(), "a higher maximum may show more");
    }

    #[test]
    fn measurement_at_the_owners_maximum_that_fails_is_postponed() {
        let mut cap = Cap::new();
        let mut take = |t, usage, idle| {
            let window = Served { t, limit: 0.65, most: 0.65, free: 0.5, idle, ..WINDOW };
            cap.take(Some(usage), Some(window), USES_UP * 0.65);
            cap.is_due(t)
        };
        take(1.0, 0.3, 0.5);
        take(2.0, 0.3, 0.5);
        // It fills what the others leave.
        let due = [50.0, 51.0, 52.0, 53.0, 54.0].map(|t| take(t, 0.48, 0.0));
        assert_eq!(due, [true, true, true, false, false]);
    }
}
