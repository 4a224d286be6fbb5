//! Algorithm 3: even numbers of jobs, by moving those that converged last.
//!
//! In print, idle nodes are searched where they cannot be found (R4), a balance factor rounded down
//! leaves them idle (R6, R12), and one job goes to several nodes (R14). The paper's text is simpler:
//! while one node has at least two jobs fewer than another, a job of the other moves there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use super::placement::{Cluster, Real};
use crate::decision::{Cause, Migration};
use crate::reason::specon::{Class, MoveDecision};

/// Moves jobs until the nodes are even, or no movable job is left.
pub(super) fn rebalance<'a>(cluster: &Cluster<'a>, entries: &mut [Entry<'a>]) -> Vec<Migration> {
    // The nodes that may receive a job, the emptiest first, and those that may give one, the fullest
    // first; ties are broken by name.
    let mut takers: BTreeSet<(usize, &str)> =
        cluster.listed().map(|node| (cluster.jobs(node), node)).collect();
    let Some(&(least, _)) = takers.first() else { return Vec::new() };
    let mut givers: BTreeSet<(Reverse<usize>, &str)> = cluster
        .all()
        .map(|node| (Reverse(cluster.jobs(node)), node))
        .filter(|(Reverse(jobs), _)| *jobs > least.saturating_add(1))
        .collect();
    if givers.is_empty() {
        return Vec::new();
    }
    let mut candidates = candidates(entries);

    let mut moves = Vec::new();
    while let (Some(&(there, to)), Some(&(Reverse(jobs), from))) = (takers.first(), givers.first())
        && jobs > there.saturating_add(1)
    {
        givers.remove(&(Reverse(jobs), from));
        let Some(entry) = candidates.get_mut(from).and_then(Vec::pop) else { continue };
        givers.insert((Reverse(jobs - 1), from));
        if givers.remove(&(Reverse(there), to)) {
            givers.insert((Reverse(there + 1), to));
        }
        takers.remove(&(there, to));
        takers.insert((there + 1, to));
        if takers.remove(&(jobs, from)) {
            takers.insert((jobs - 1, from));
        }
        entry.member.rebalanced = true;
        entry.outcome = Some(MoveDecision::Rebalanced { jobs, to: to.to_owned(), there });
        moves.push(entry.migration(from, to, Cause::Rebalance));
    }
    moves
}

/// The movable jobs by node, with the first one to move at the end of each list. That is the job that
/// entered CC last (R2, R8), ties by id. No job is moved twice (R9, R10).
fn candidates<'a, 'b>(entries: &'b mut [Entry<'a>]) -> BTreeMap<&'a str, Vec<&'b mut Entry<'a>>> {
    let mut by_node: BTreeMap<&str, Vec<&mut Entry<'_>>> = BTreeMap::new();
    for entry in entries {
        let movable = entry.member.class == Class::Converged && !entry.member.rebalanced;
        if let Some(node) = entry.node().filter(|_| movable) {
            by_node.entry(node).or_default().push(entry);
        }
    }
    for entries in by_node.values_mut() {
        entries.sort_by_key(|entry| (Real::new(entry.member.converged_at), Reverse(&entry.job.id)));
    }
    by_node
}
