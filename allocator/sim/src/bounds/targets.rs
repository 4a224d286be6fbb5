//! Batch targets: how many can be kept at once, and the least distance from them.

use paceline_policy::unit::count;

use crate::satisfaction::TOLERANCE;
use crate::scenario::Job;

/// Steps of the search for the best price of CPU.
const STEPS: usize = 100;

/// The jobs with a batch target that run together at `until`; `None` if there are none, or if some
/// of them end, since their last batches are then not simultaneous.
fn side_by_side(jobs: &[Job], until: f64) -> Option<Vec<(&Job, f64)>> {
    let with = jobs.iter().filter(|job| job.arrive + job.start_seconds() < until);
    let with: Vec<(&Job, f64)> =
        with.filter_map(|job| Some((job, job.targets.batch_latency?))).collect();
    let endless = with.iter().all(|(job, _)| job.work.is_infinite());
    (endless && !with.is_empty()).then_some(with)
}

/// The most jobs that can keep their batch targets at once; `None` if no job has one.
///
/// Each needs some least share, and all shares together must fit the nodes. That is a knapsack of
/// items of equal value, which is best filled by the smallest. It is exact on one node. On several
/// nodes a job's share may be split between two of them, so it is a bound. It is also one for
/// targets that forbid faster batches, since a smaller share is always possible.
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

/// The least sum, in seconds, of the distances of batches from their targets; batches that keep
/// them count 0.
///
/// No job needs to be faster than its target. So the distance of a job falls with its share along
/// `fixed + work/x − target`, and is 0 from the share that keeps the target. CPU is sold at a
/// price. Each job takes the share at which its distance and its cost together are least. The sum
/// of these, less the cost of all nodes, is at most the least sum for any price (weak duality). The
/// best price is searched for. The bound is exact if no job's distance jumps to 0 at the best
/// shares. Otherwise it is too small by less than one job's jump.
pub fn least_distance(jobs: &[Job], machines: f64, until: f64) -> Option<f64> {
    let with = side_by_side(jobs, until)?;
    let value = |price: f64| {
        let paid = with.iter().map(|(job, target)| least_paid(job, *target, price));
        paid.sum::<f64>() - price * machines
    };
    // At a price this high no job takes more than an equal part.
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

/// The least sum of a job's distance and the cost of its share.
fn least_paid(job: &Job, target: f64, price: f64) -> f64 {
    let kept = job.share_for((1.0 + TOLERANCE) * target);
    let most = kept.unwrap_or(job.most());
    let share = if price > 0.0 { (job.batch / price).sqrt().min(most) } else { most };
    let away = job.batch_seconds(share) - target + price * share;
    kept.map_or(away, |kept| away.min(price * kept))
}
