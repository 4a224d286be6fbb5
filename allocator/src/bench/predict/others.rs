//! What others took of each node in each run.
//!
//! On a shared machine they come and go from run to run, as its speed does. A run's figures have their
//! mean share of the machine; frames have that of each node, while no job starts or ends there. By how much
//! one is above the other is taken to be the same in every run: what the runs that were fitted have in the
//! middle.

use std::collections::BTreeMap;

use paceline_sim::fit::{Fit, lifetimes, unseen};

use super::super::outcome::Observed;

/// A machine that leaves its jobs less than a twentieth is no machine for them.
const AT_MOST: f64 = 0.95;

/// What is known of it.
#[derive(Debug)]
pub(super) struct Others {
    /// By the names of nodes, how much more of it is used than what others take of the machine.
    beyond: BTreeMap<String, f64>,
    /// What they mostly took of the machine in the runs that were fitted.
    usual: Option<f64>,
}

impl Others {
    /// Of the runs that were fitted.
    pub(super) fn of(fitted: &[&Observed<'_>], fit: &Fit) -> Self {
        let others = |run: &Observed<'_>| run.recorded.run.host.others;
        let of_node = |node: &str| {
            let beyond = |run: &&Observed<'_>| Some(on_node(run, node)? - others(run)?);
            Some((node.to_owned(), middle(fitted.iter().filter_map(beyond))?))
        };
        Self {
            beyond: fit.nodes.iter().filter_map(|node| of_node(&node.name)).collect(),
            usual: middle(fitted.iter().filter_map(|run| others(run))),
        }
    }

    /// The share of each node that is used by whatever is no job, where others take this share of the
    /// machine, or as much as usual where that is not known.
    pub(super) fn on_nodes(&self, others: Option<f64>) -> BTreeMap<String, f64> {
        let others = others.or(self.usual).unwrap_or(0.0);
        let of =
            |(node, beyond): (&String, &f64)| (node.clone(), (others + beyond).clamp(0.0, AT_MOST));
        self.beyond.iter().map(of).collect()
    }
}

/// The mean share of a node that no job used, over the frames between which none started there or ended.
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

/// The lower one of two.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_one_of_the_values() {
        assert_eq!(middle([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(middle([3.0, 1.0].into_iter()), Some(1.0));
        assert_eq!(middle(std::iter::empty()), None);
    }
}
