//! What jobs weigh beside each other in a crowd: their shares while so many threads want each CPU, and
//! nobody is limited or has all that it can use.

use std::collections::BTreeMap;

use paceline_policy::JobId;
use paceline_policy::unit::count;

use super::model::{Fitted, Why};
use super::window::{LEAST_SECONDS, Window};
use crate::scenario::{CROWD, threads_for};

/// A job that was in a crowd for less time has not shown what it weighs.
const LEAST_CROWDED: f64 = 3.0;
/// Who uses this part of what it can use wants no more.
const CONTENT: f64 = 0.9;
/// Each round brings the logarithms nearer to those of least squares.
const ROUNDS: u32 = 32;

/// Each job's weight beside that of the heaviest. `most` says what a job can use, in shares of a node
/// of `cpus` CPUs.
pub(super) fn weights(
    windows: &[Window<'_>],
    cpus: f64,
    most: impl Fn(&JobId) -> f64,
) -> BTreeMap<JobId, Fitted<f64>> {
    let (mut crowded, mut seconds) = (Vec::new(), BTreeMap::<&JobId, f64>::new());
    for window in windows {
        let counts = is_crowded(window, cpus, &most);
        for id in window.jobs.keys() {
            *seconds.entry(id).or_default() += if counts { window.seconds } else { 0.0 };
        }
        crowded.extend(counts.then_some(window));
    }
    let logarithms = logarithms(&crowded);
    let known = |id: &JobId| seconds.get(id).is_some_and(|seconds| *seconds >= LEAST_CROWDED);
    let heaviest = logarithms.iter().filter(|(id, _)| known(id)).map(|(_, weight)| *weight);
    let heaviest = heaviest.fold(f64::NEG_INFINITY, f64::max);
    let weight = |id: &JobId| {
        let own = logarithms.get(id).filter(|_| known(id));
        own.map(|own| (own - heaviest).exp()).ok_or(Why::NoCrowd)
    };
    seconds.keys().map(|id| (JobId::clone(id), weight(id))).collect()
}

fn is_crowded(window: &Window<'_>, cpus: f64, most: impl Fn(&JobId) -> f64) -> bool {
    let wants_more = window.jobs.iter().all(|(id, part)| {
        part.cap.is_all()
            && part.trains
            && !part.guessed
            && part.share > 0.0
            && part.share < CONTENT * most(id)
    });
    let all: f64 = window.jobs.keys().map(|id| threads_for(most(id), cpus)).sum();
    window.seconds >= LEAST_SECONDS && wants_more && all >= CROWD * cpus
}

/// Logarithms of weights such that those of the shares are these and a number for each window, with
/// the least squares over time.
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
