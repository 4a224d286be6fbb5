//! The maximum flow through a small network, and the minimum cut that proves it.
//!
//! Amounts are seconds, so they are not integers: less than [`ROUNDING`] of an edge's capacity
//! counts as zero. The cut is a proof that holds whatever rounding did.

use std::collections::VecDeque;

/// An edge with less than this part of its capacity left is full.
const ROUNDING: f64 = 1e-12;

/// A network. Its nodes are numbers; each edge is stored next to its reverse.
#[derive(Clone, Debug)]
pub(super) struct Network {
    edges: Vec<Edge>,
    /// The edges that leave each node.
    leaving: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: usize,
    left: f64,
    /// Less than this counts as zero.
    least: f64,
}

/// The state of the search for paths of one length.
struct Phase {
    /// How many edges with room each node is away from the source.
    levels: Vec<Option<usize>>,
    /// For each node, how many of its edges were found to be dead ends.
    next: Vec<usize>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        Self { edges: Vec::new(), leaving: vec![Vec::new(); nodes] }
    }

    pub(super) fn edge(&mut self, from: usize, to: usize, capacity: f64) {
        let least = capacity * ROUNDING;
        for (from, to, left) in [(from, to, capacity), (to, from, 0.0)] {
            if let Some(leaving) = self.leaving.get_mut(from) {
                leaving.push(self.edges.len());
            }
            self.edges.push(Edge { to, left, least });
        }
    }

    /// Sends as much as possible from `source` to `sink`. Returns for each node whether it is on
    /// the source's side of a minimum cut.
    ///
    /// Source: Dinic, "Algorithm for solution of a problem of maximum flow in a network with power
    /// estimation", Soviet Mathematics Doklady 11, 1970.
    pub(super) fn cut(mut self, source: usize, sink: usize) -> Vec<bool> {
        loop {
            let levels = self.levels(source);
            if levels.get(sink).copied().flatten().is_none() {
                return levels.iter().map(Option::is_some).collect();
            }
            let mut phase = Phase { levels, next: vec![0; self.leaving.len()] };
            while self.send(source, sink, f64::INFINITY, &mut phase) > 0.0 {}
        }
    }

    /// How many edges with room each node is away from the source.
    fn levels(&self, source: usize) -> Vec<Option<usize>> {
        let mut levels = vec![None; self.leaving.len()];
        let mut found = VecDeque::from([(source, 0)]);
        while let Some((node, level)) = found.pop_front() {
            match levels.get_mut(node) {
                Some(known @ None) => *known = Some(level),
                Some(Some(_)) | None => continue,
            }
            let open = self.open_edges(node).map(|edge| (edge.to, level + 1));
            found.extend(open.filter(|(to, _)| levels.get(*to).is_some_and(Option::is_none)));
        }
        levels
    }

    fn open_edges(&self, node: usize) -> impl Iterator<Item = &Edge> {
        let leaving = self.leaving.get(node).into_iter().flatten();
        leaving.filter_map(|edge| self.edges.get(*edge)).filter(|edge| edge.left > edge.least)
    }

    /// Sends at most `amount` along one path on which each edge gains a level. Returns what got
    /// through.
    fn send(&mut self, node: usize, sink: usize, amount: f64, phase: &mut Phase) -> f64 {
        if node == sink {
            return amount;
        }
        while let Some(number) = self.next_edge(node, phase) {
            let Some(Edge { to, left, least }) = self.edges.get(number).copied() else { break };
            if phase.gains(node, to) && left > least {
                let sent = self.send(to, sink, amount.min(left), phase);
                if sent > 0.0 {
                    for (edge, change) in [(number, -sent), (number ^ 1, sent)] {
                        if let Some(edge) = self.edges.get_mut(edge) {
                            edge.left += change;
                        }
                    }
                    return sent;
                }
            }
            if let Some(next) = phase.next.get_mut(node) {
                *next += 1;
            }
        }
        0.0
    }

    /// The first edge of a node that was not found to be useless.
    fn next_edge(&self, node: usize, phase: &Phase) -> Option<usize> {
        self.leaving.get(node)?.get(*phase.next.get(node)?).copied()
    }
}

impl Phase {
    fn gains(&self, from: usize, to: usize) -> bool {
        let level = |node: usize| self.levels.get(node).copied().flatten();
        level(to).zip(level(from)).is_some_and(|(to, from)| to == from + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_as_small_as_the_flow_is_large() {
        // The only path with room goes back over an edge that a first path would take.
        let mut network = Network::new(4);
        for (from, to, capacity) in
            [(0, 1, 2.5), (0, 2, 1.0), (1, 2, 2.0), (1, 3, 1.0), (2, 3, 2.0)]
        {
            network.edge(from, to, capacity);
        }
        assert_eq!(network.clone().cut(0, 3), [true, true, true, false]);
        // With more capacity behind, the edges that leave the source are the minimum cut.
        network.edge(2, 3, 1.0);
        assert_eq!(network.cut(0, 3), [true, false, false, false]);
    }
}
