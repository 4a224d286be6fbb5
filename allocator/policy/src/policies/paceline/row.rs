//! One training job in one run of the policy.

use super::order::SMALL;

/// What a run goes by.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is seen or not, by itself")]
pub(super) struct Row {
    /// Its place among the members.
    pub(super) member: usize,
    pub(super) weight: f64,
    pub(super) cap: f64,
    /// The work left, where the size is known.
    pub(super) left: Option<f64>,
    pub(super) used: f64,
    pub(super) fair: f64,
    /// The part of that by which it may be behind, of a job of unknown size.
    pub(super) theta: f64,
    /// When it was first seen.
    pub(super) since: f64,
    pub(super) is_new: bool,
    /// Whether it states a total that is believed.
    pub(super) states: bool,
    pub(super) doubted: bool,
    /// How soon what comes of it, by its weight.
    pub(super) density: f64,
    /// The work until then.
    pub(super) aim: f64,
    /// Whether it was served first until now.
    pub(super) was_first: bool,
    /// Whether it has shown how much of the node it can use.
    pub(super) cap_is_known: bool,
    /// Whether its cap is to be measured again before anything is lent.
    pub(super) cap_is_due: bool,
    /// Whether it used much of the node in the last window, in which nothing limited it.
    pub(super) used_much: bool,
}

/// A job that can use this part of the node can catch up with any deadline.
pub(super) const FREE_CAP: f64 = 0.99;

impl Row {
    /// Whether it has to run at its cap from now on to meet its deadline.
    pub(super) fn must_run(&self, due: f64, least: f64) -> bool {
        self.cap < FREE_CAP && self.left.is_some_and(|left| due - left / self.cap <= least)
    }

    /// Whether its cap is to be measured beside another job: it is small as far as one can see.
    pub(super) fn shows_a_small_cap(&self) -> bool {
        let shows = self.is_new && !self.cap_is_known && !self.used_much;
        shows || self.cap_is_due && self.left.is_some() && self.cap < SMALL
    }

    /// The work left, or a guess for the order: it is half done.
    pub(super) fn guess(&self, prior: f64) -> f64 {
        self.left.unwrap_or(self.used.max(prior))
    }

    /// Its work left in the virtual system, with a guess for a size that is unknown.
    pub(super) fn virtual_left(&self, prior: f64) -> f64 {
        let used = if self.left.is_some() { self.used } else { self.used.max(self.fair) };
        crate::unit::saturate(used + self.guess(prior) - self.fair).max(0.0)
    }
}

/// What a job's work leads to before its end, as work from here on and weight beside the end.
pub(super) type Milestones = [Option<(f64, f64)>; 5];

/// How much comes how soon: the weight of what its work leads to over the work until then, by the best
/// of the milestones, and that work. The end is the last of them, of weight 1.
pub(super) fn density(weight: f64, left: f64, mut milestones: Milestones) -> (f64, f64) {
    let work = |milestone: &Option<(f64, f64)>| milestone.map_or(f64::INFINITY, |(work, _)| work);
    milestones.sort_by(|a, b| work(a).total_cmp(&work(b)));
    let mut gained = 0.0;
    let best = milestones.into_iter().flatten().chain([(left, 1.0)]).map(|(work, gain)| {
        gained += gain;
        (gained / work.max(f64::MIN_POSITIVE), work)
    });
    let (best, aim) = best.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    (crate::unit::saturate(weight * best), aim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_is_that_of_the_best_milestone() {
        let is = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let none = Milestones::default();
        is(density(1.0, 10.0, none).0, 0.1);
        is(density(2.0, 10.0, [None, Some((2.0, 1.0)), None, None, None]).0, 1.0);
        is(density(1.0, 10.0, [Some((9.0, 1.0)), None, Some((8.0, 1.0)), None, None]).0, 0.3);
        assert!(density(1.0, 0.0, none).0.is_finite());
    }
}
