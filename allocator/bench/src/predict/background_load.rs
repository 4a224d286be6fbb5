//! The background load of each node in each run: CPU that other work than jobs used.
//!
//! On a shared machine it varies from run to run. A run's record has its mean over the machine. Frames show
//! it for each node, but only while no job starts or ends there. The difference of the two is assumed to be
//! the same in every run: the median of the fitted runs.

use std::collections::BTreeMap;

use paceline_sim::fit::{Fit, lifetimes, unseen};

use super::super::outcome::Observed;

/// The largest background load that is assumed: jobs keep at least 5 % of the machine.
const MAX_LOAD: f64 = 0.95;

/// The background load in the fitted runs, as shares.
#[derive(Debug)]
pub(super) struct BackgroundLoad {
    /// For each node, how much its load exceeds that of the whole machine.
    excess: BTreeMap<String, f64>,
    /// The median load of the machine.
    usual: Option<f64>,
}

impl BackgroundLoad {
    /// The load in the runs that were `fitted`.
    pub(super) fn from_runs(fitted: &[&Observed<'_>], fit: &Fit) -> Self {
        let load = |run: &Observed<'_>| run.recorded.run.host.others;
        let of_node = |node: &str| {
            let excess = |run: &&Observed<'_>| Some(on_node(run, node)? - load(run)?);
            Some((node.to_owned(), lower_median(fitted.iter().filter_map(excess))?))
        };
        Self {
            excess: fit.nodes.iter().filter_map(|node| of_node(&node.name)).collect(),
            usual: lower_median(fitted.iter().filter_map(|run| load(run))),
        }
    }

    /// The load of each node, given that of the `machine`; `None` stands for its usual load.
    pub(super) fn on_nodes(&self, machine: Option<f64>) -> BTreeMap<String, f64> {
        let machine = machine.or(self.usual).unwrap_or(0.0);
        let of = |(node, excess): (&String, &f64)| {
            (node.clone(), (machine + excess).clamp(0.0, MAX_LOAD))
        };
        self.excess.iter().map(of).collect()
    }
}

/// The mean share of a node that no job used, over frames between which no job started or ended there.
fn on_node(run: &Observed<'_>, node: &str) -> Option<f64> {
    let (frames, offset) = (run.frames.as_ref().ok()?.on(node)?, run.offset()?);
    let lives = lifetimes(&frames);
    let starts: Vec<(f64, f64)> = (run.recorded.run.jobs.iter())
        .filter_map(|job| {
            let life = lives.iter().find(|life| life.id.as_str() == job.job)?;
            Some((job.arrived - offset, life.arrived))
        })
        .collect();
    let (mut used, mut seconds) = (0.0, 0.0);
    for window in unseen(&frames) {
        if starts.iter().all(|(from, to)| *to <= window.from || window.to <= *from) {
            used += window.share * (window.to - window.from);
            seconds += window.to - window.from;
        }
    }
    (seconds > 0.0).then(|| used / seconds)
}

/// The median; of an even number of values, the lower of the two in the middle.
fn lower_median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_median_is_one_of_the_values() {
        assert_eq!(lower_median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(lower_median([3.0, 1.0].into_iter()), Some(1.0));
        assert_eq!(lower_median(std::iter::empty()), None);
    }
}
