//! Algorithm 2: the target node of a converged job.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, SpeCon};
use crate::decision::{Cause, Migration};
use crate::frame::Frame;
use crate::reason::specon::{Class, MoveDecision};
use crate::unit::{count, saturate};
use crate::variant::Variant;

/// Scores that differ by at most this are equal (P3).
const EPSILON: f64 = 1e-9;

/// The amount that one job of each category adds to its node's score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) progressing: f64,
    pub(super) watching: f64,
    pub(super) converged: f64,
}

/// The jobs on one node, by category.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    progressing: usize,
    watching: usize,
    converged: usize,
}

impl Load {
    /// Lines 2 and 3.
    fn score(self, weights: Weights) -> Real {
        Real::new(
            weights.progressing * count(self.progressing)
                + weights.watching * count(self.watching)
                + weights.converged * count(self.converged),
        )
    }
}

/// The order in which listed nodes are chosen as targets: score, CPU in use, name.
type Rank<'a> = (Real, Real, &'a str);

/// The nodes in one frame.
pub(super) struct Cluster<'a> {
    weights: Weights,
    /// Every node that is listed or has a job.
    loads: BTreeMap<&'a str, Load>,
    /// R of the listed nodes (P8).
    usage: BTreeMap<&'a str, Real>,
    ranking: BTreeSet<Rank<'a>>,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(frame: &'a Frame, entries: &[Entry<'a>], weights: Weights) -> Self {
        let usage: BTreeMap<&str, Real> = frame
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), Real::known(node.usage.cpu)))
            .collect();
        let mut loads: BTreeMap<&str, Load> =
            usage.keys().map(|name| (*name, Load::default())).collect();
        for entry in entries {
            let Some(node) = entry.node() else { continue };
            let load = loads.entry(node).or_default();
            match entry.member.class {
                Class::Progressing => load.progressing += 1,
                Class::Watching => load.watching += 1,
                Class::Converged => load.converged += 1,
            }
        }
        let mut cluster = Self { weights, loads, usage, ranking: BTreeSet::new() };
        cluster.ranking = cluster.usage.keys().filter_map(|name| cluster.rank(name)).collect();
        cluster
    }

    fn load(&self, node: &str) -> Load {
        self.loads.get(node).copied().unwrap_or_default()
    }

    /// All nodes, listed or not.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a str> {
        self.loads.keys().copied()
    }

    /// The listed nodes.
    pub(super) fn listed(&self) -> impl Iterator<Item = &'a str> {
        self.usage.keys().copied()
    }

    /// The number of jobs on a node.
    pub(super) fn jobs(&self, node: &str) -> usize {
        let load = self.load(node);
        load.progressing + load.watching + load.converged
    }

    fn score(&self, node: &str) -> f64 {
        self.load(node).score(self.weights).0
    }

    fn rank(&self, node: &str) -> Option<Rank<'a>> {
        let (name, usage) = self.usage.get_key_value(node)?;
        Some((self.load(name).score(self.weights), *usage, name))
    }

    /// The number of jobs on a node that would gain if another one left.
    fn active(&self, node: &str) -> usize {
        let load = self.load(node);
        load.progressing + load.watching
    }

    /// The listed node with the lowest score, except `source`.
    fn lowest_other(&self, source: &str) -> Option<Rank<'a>> {
        self.ranking.iter().find(|(_, _, name)| *name != source).copied()
    }

    /// The lowest score of the listed nodes.
    fn lowest(&self) -> Option<f64> {
        self.ranking.first().map(|(score, ..)| score.0)
    }

    /// The least used of the listed nodes whose score is the lowest within ε.
    fn least_used_of_lowest(&self) -> Option<Rank<'a>> {
        let bound = self.lowest()? + EPSILON;
        let lowest = self.ranking.iter().take_while(|(score, ..)| score.0 <= bound);
        lowest.min_by_key(|(_, usage, name)| (*usage, *name)).copied()
    }

    /// Counts a CC job on `to` and no longer on `from` (P10).
    fn shift(&mut self, from: &'a str, to: &'a str) {
        for (node, change) in [(from, -1), (to, 1)] {
            let before = self.rank(node);
            if let Some(load) = self.loads.get_mut(node) {
                load.converged = load.converged.saturating_add_signed(change);
            }
            if let (Some(before), Some(after)) = (before, self.rank(node)) {
                self.ranking.remove(&before);
                self.ranking.insert(after);
            }
        }
    }
}

impl SpeCon {
    /// Answers the requests of one frame, one after the other (P10).
    pub(super) fn place<'a>(
        &self,
        t: f64,
        cluster: &mut Cluster<'a>,
        entries: &mut [Entry<'a>],
    ) -> Vec<Migration> {
        let mut moves = Vec::new();
        for entry in entries.iter_mut().filter(|entry| entry.trend.has_converged()) {
            let outcome = self.answer(t, cluster, entry);
            if let (MoveDecision::Moves { to, .. }, Some(from)) = (&outcome, entry.node()) {
                moves.push(entry.migration(from, to, Cause::Converged));
            }
            entry.outcome = Some(outcome);
        }
        moves
    }

    /// Whether one converged job asks to move (S11), and the decision.
    fn answer<'a>(&self, t: f64, cluster: &mut Cluster<'a>, entry: &mut Entry<'a>) -> MoveDecision {
        if entry.member.migrated {
            return MoveDecision::Settled;
        }
        let Some(source) = entry.node() else { return MoveDecision::NoNode };
        let needed = match self.rule.variant {
            Variant::Resolved => 1,
            Variant::Published => 2,
        };
        let active = cluster.active(source);
        if active < needed {
            return MoveDecision::Alone { active, needed };
        }
        if let Some(until) = entry.member.ask_from.filter(|until| t < *until) {
            return MoveDecision::Refused { until };
        }
        let outcome = self.choose(cluster, source);
        match (&outcome, self.rule.variant) {
            (MoveDecision::Moves { .. }, _) | (_, Variant::Published) => {
                entry.member.migrated = true;
            }
            // P6: a decision made when all nodes were equal is not final.
            (_, Variant::Resolved) => {
                entry.member.ask_from = Some(saturate(t + 2.0 * self.interval));
            }
        }
        outcome
    }

    /// Lines 4 to 21: the target of a move from `source`, if it is worth one.
    fn choose<'a>(&self, cluster: &mut Cluster<'a>, source: &'a str) -> MoveDecision {
        let score = cluster.score(source);
        let (lowest, margin, better) = match self.rule.variant {
            // P1, P2: the job's own weight is added to its target.
            Variant::Resolved => {
                let (lowest, margin) = (cluster.lowest_other(source), self.weights.converged);
                let better = lowest.is_some_and(|(Real(at), ..)| at + margin < score - EPSILON);
                (lowest, Some(margin), better)
            }
            Variant::Published => {
                let better = cluster.lowest().is_some_and(|lowest| score > lowest + EPSILON);
                (cluster.least_used_of_lowest(), None, better)
            }
        };
        match lowest {
            Some((Real(target), _, to)) if better => {
                cluster.shift(source, to);
                MoveDecision::Moves { source: score, to: to.to_owned(), target, margin }
            }
            _ => MoveDecision::Stays { source: score, target: lowest.map(|(at, ..)| at.0), margin },
        }
    }
}

/// A finite number with a total order and a single zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Real(f64);

impl Real {
    pub(super) fn new(x: f64) -> Self {
        Self(saturate(x) + 0.0)
    }

    /// Unknown values count as 0.
    fn known(x: Option<f64>) -> Self {
        Self::new(x.filter(|x| x.is_finite()).unwrap_or(0.0))
    }
}

impl Eq for Real {}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
