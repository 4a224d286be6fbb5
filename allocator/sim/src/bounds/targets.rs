use paceline_policy::unit::count;

use crate::scenario::Job;

/// How far a batch may be over its target and still meet it: the papers' α.
const TOLERANCE: f64 = 0.1;

/// The most jobs that can keep the targets of their batches at once; `None` if nobody has one.
///
/// Each needs some least share for that, and all shares together fit the nodes: a knapsack in which
/// everything is worth the same, which is filled best by what needs least. On one node it is exact;
/// on several a job's share may be cut in two by their borders, so it is a bound.
pub fn targets_met(jobs: &[Job], machines: f64) -> Option<f64> {
    let with = jobs.iter().filter_map(|job| Some((job, job.targets.batch_latency?)));
    let needs = with.map(|(job, target)| job.share_for((1.0 + TOLERANCE) * target));
    let all: Vec<Option<f64>> = needs.collect();
    let mut needs: Vec<f64> = all.iter().flatten().copied().collect();
    needs.sort_by(f64::total_cmp);
    let mut sum = 0.0;
    let fits = needs.iter().take_while(|need| {
        sum += **need;
        sum <= machines + 1e-9
    });
    let met = count(fits.count());
    (!all.is_empty()).then_some(met)
}
