//! The relative weights of jobs while a node is oversubscribed. They follow from the shares while
//! many threads compete for each CPU and no job is limited or has all that it can use.

use std::collections::BTreeMap;

use paceline_policy::JobId;
use paceline_policy::unit::count;

use super::model::{Fitted, Why};
use super::window::{MIN_SECONDS, Window};
use crate::scenario::{OVERSUBSCRIBED_THREADS, threads_for};

/// A job's weight is known only after so many seconds on an oversubscribed node.
const MIN_OVERSUBSCRIBED_SECONDS: f64 = 3.0;
/// A job that uses this part of what it can use does not compete.
const SATURATED: f64 = 0.9;
/// Rounds of the iteration towards the logarithms of least squares.
const ROUNDS: u32 = 32;

/// Each job's weight relative to the heaviest. `most` gives the largest share that a job can use on
/// a node of `cpus` CPUs.
pub(super) fn weights(
    windows: &[Window<'_>],
    cpus: f64,
    most: impl Fn(&JobId) -> f64,
) -> BTreeMap<JobId, Fitted<f64>> {
    let (mut crowded, mut seconds) = (Vec::new(), BTreeMap::<&JobId, f64>::new());
    for window in windows {
        let counts = is_oversubscribed(window, cpus, &most);
        for id in window.jobs.keys() {
            *seconds.entry(id).or_default() += if counts { window.seconds } else { 0.0 };
        }
        crowded.extend(counts.then_some(window));
    }
    let logarithms = logarithms(&crowded);
    let known =
        |id: &JobId| seconds.get(id).is_some_and(|seconds| *seconds >= MIN_OVERSUBSCRIBED_SECONDS);
    let heaviest = logarithms.iter().filter(|(id, _)| known(id)).map(|(_, weight)| *weight);
    let heaviest = heaviest.fold(f64::NEG_INFINITY, f64::max);
    let weight = |id: &JobId| {
        let own = logarithms.get(id).filter(|_| known(id));
        own.map(|own| (own - heaviest).exp()).ok_or(Why::NeverOversubscribed)
    };
    seconds.keys().map(|id| (JobId::clone(id), weight(id))).collect()
}

fn is_oversubscribed(window: &Window<'_>, cpus: f64, most: impl Fn(&JobId) -> f64) -> bool {
    let wants_more = window.jobs.iter().all(|(id, part)| {
        part.cap.is_all()
            && part.trains
            && !part.estimated
            && part.share > 0.0
            && part.share < SATURATED * most(id)
    });
    let all: f64 = window.jobs.keys().map(|id| threads_for(most(id), cpus)).sum();
    window.seconds >= MIN_SECONDS && wants_more && all >= OVERSUBSCRIBED_THREADS * cpus
}

/// The logarithms of the weights. With one constant for each window they approximate the logarithms
/// of the shares, by least squares over time.
fn logarithms<'a>(windows: &[&Window<'a>]) -> BTreeMap<&'a JobId, f64> {
    let mut weights: BTreeMap<&JobId, f64> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut sums: BTreeMap<&JobId, (f64, f64)> = BTreeMap::new();
        for window in windows {
            let over = |(id, share): (&&JobId, f64)| {
                share.ln() - weights.get(*id).copied().unwrap_or_default()
            };
            let shares = || window.jobs.iter().map(|(id, part)| (id, part.share));
            let level = shares().map(over).sum::<f64>() / count(window.jobs.len());
            for (id, share) in shares() {
                let (sum, seconds) = sums.entry(*id).or_default();
                *sum += window.seconds * (share.ln() - level);
                *seconds += window.seconds;
            }
        }
        weights = sums.into_iter().map(|(id, (sum, seconds))| (id, sum / seconds)).collect();
    }
    weights
}
