//! Targets of batches: how many can be kept at once, and how far from them jobs must stay.

use paceline_policy::unit::count;

use crate::satisfaction::TOLERANCE;
use crate::scenario::Job;

/// Steps in which the price of CPU is narrowed down.
const STEPS: usize = 100;

/// The jobs that have a target of their batches and run side by side at `until`: `None` if there are
/// none, or if some end, for then their last batches are not at one time.
fn side_by_side(jobs: &[Job], until: f64) -> Option<Vec<(&Job, f64)>> {
    let with = jobs.iter().filter(|job| job.arrive + job.start_seconds() < until);
    let with: Vec<(&Job, f64)> =
        with.filter_map(|job| Some((job, job.targets.batch_latency?))).collect();
    let endless = with.iter().all(|(job, _)| job.work.is_infinite());
    (endless && !with.is_empty()).then_some(with)
}

/// The most jobs that can keep the targets of their batches at once; `None` if nobody has one.
///
/// Each needs some least share for that, and all shares together fit the nodes: a knapsack in which
/// everything is worth the same, which is filled best by what needs least. On one node it is exact;
/// on several a job's share may be cut in two by their borders, so it is a bound. It is one for those
/// who must not be too quick either: a smaller share is always to be had.
pub fn targets_met(jobs: &[Job], machines: f64, until: f64) -> Option<f64> {
    let needs = side_by_side(jobs, until)?.into_iter();
    let mut needs: Vec<f64> =
        needs.filter_map(|(job, target)| job.share_for((1.0 + TOLERANCE) * target)).collect();
    needs.sort_by(f64::total_cmp);
    let mut sum = 0.0;
    let fits = needs.iter().take_while(|need| {
        sum += **need;
        sum <= machines + 1e-9
    });
    Some(count(fits.count()))
}

/// The least sum of what batches differ by from their targets, but for those that keep them.
///
/// Nobody need be too quick, so a job's distance falls with its share, along `fixed + work/x −
/// target`, and is 0 from the share on at which it keeps its target. CPU is sold at some price: each
/// job takes the share at which its distance and what it pays are least, and what all pay together,
/// less what all nodes cost, is no more than the least sum whatever the price (weak duality). The best
/// price is sought. Where no job's distance jumps to 0 at the best shares it is exact; else it is too
/// small by less than one job's jump.
pub fn least_distance(jobs: &[Job], machines: f64, until: f64) -> Option<f64> {
    let with = side_by_side(jobs, until)?;
    let value = |price: f64| {
        let paid = with.iter().map(|(job, target)| least_paid(job, *target, price));
        paid.sum::<f64>() - price * machines
    };
    // At a price this high nobody takes more than an equal part.
    let parts = count(with.len()) / machines;
    let dear = with.iter().map(|(job, _)| 4.0 * job.batch * parts * parts).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, dear);
    let mut best = value(0.0);
    for _ in 0..STEPS {
        // The value is concave in the price.
        let third = (high - low) / 3.0;
        let (left, right) = (value(low + third), value(high - third));
        best = best.max(left).max(right);
        if left < right { low += third } else { high -= third }
    }
    Some(best.max(0.0))
}

/// The least that a job's distance and its share cost together.
fn least_paid(job: &Job, target: f64, price: f64) -> f64 {
    let kept = job.share_for((1.0 + TOLERANCE) * target);
    let most = kept.unwrap_or(job.most());
    let share = if price > 0.0 { (job.batch / price).sqrt().min(most) } else { most };
    let away = job.batch_seconds(share) - target + price * share;
    kept.map_or(away, |kept| away.min(price * kept))
}
