//! The capacity of a cluster's nodes, and how much of it is free.

use std::cmp::Reverse;
use std::ops::Range;

use crate::frame::Node;
use crate::unit::saturate;

/// A task still fits if its need exceeds the free capacity by at most this: a tolerance for rounding.
pub(super) const EPSILON: f64 = 1e-9;
/// Idle shares are compared in units of one billionth: nine decimals.
const PARTS: f64 = 1e9;

/// Cores and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::policies) struct Amount {
    pub(in crate::policies) cpu: f64,
    pub(in crate::policies) memory: f64,
}

impl Amount {
    /// The amount in a frame. Unknown and invalid values count as 0.
    pub(in crate::policies) fn known(cpu: Option<f64>, memory: Option<f64>) -> Self {
        let sane = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0).unwrap_or(0.0);
        Self { cpu: sane(cpu), memory: sane(memory) }
    }

    pub(in crate::policies) fn times(self, n: u32) -> Self {
        self.map(self, |x, _| x * f64::from(n))
    }

    pub(in crate::policies) fn plus(self, other: Self) -> Self {
        self.map(other, |x, y| x + y)
    }

    pub(in crate::policies) fn minus(self, other: Self) -> Self {
        self.map(other, |x, y| x - y)
    }

    /// The smaller of both, resource by resource.
    pub(super) fn min(self, other: Self) -> Self {
        self.map(other, f64::min)
    }

    /// The larger of both, resource by resource.
    fn max(self, other: Self) -> Self {
        self.map(other, f64::max)
    }

    /// Whether `need` fits in here.
    pub(in crate::policies) fn covers(self, need: Self) -> bool {
        need.cpu <= self.cpu + EPSILON && need.memory <= self.memory + EPSILON
    }

    /// How many tasks that need `need` each fit in here, but at most `enough`.
    pub(in crate::policies) fn holds(self, need: Self, enough: u32) -> u32 {
        if self.covers(need.times(enough)) {
            return enough;
        }
        let (mut fit, mut too_many) = (0, enough);
        while too_many - fit > 1 {
            let half = fit + (too_many - fit) / 2;
            if self.covers(need.times(half)) { fit = half } else { too_many = half }
        }
        fit
    }

    fn map(self, other: Self, op: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            cpu: saturate(op(self.cpu, other.cpu)),
            memory: saturate(op(self.memory, other.memory)),
        }
    }
}

/// A node, by its index in the order of names. Ties are broken by the smaller index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policies) struct NodeIndex(usize);

/// The nodes of one frame.
#[derive(Debug)]
pub(in crate::policies) struct Nodes<'f>(Vec<(&'f str, Amount)>);

impl<'f> Nodes<'f> {
    /// Of nodes that share a name, the first counts.
    pub(in crate::policies) fn new(nodes: &'f [Node]) -> Self {
        let known = |node: &'f Node| (node.name.as_str(), Amount::known(node.cpus, node.memory));
        let mut nodes: Vec<_> = nodes.iter().map(known).collect();
        nodes.sort_by_key(|(name, _)| *name);
        nodes.dedup_by_key(|(name, _)| *name);
        Self(nodes)
    }

    /// The node called `name`, if it is listed.
    pub(in crate::policies) fn find(&self, name: &str) -> Option<NodeIndex> {
        self.0.binary_search_by_key(&name, |(name, _)| name).ok().map(NodeIndex)
    }

    /// A node's name.
    pub(in crate::policies) fn name(&self, at: NodeIndex) -> &'f str {
        self.0.get(at.0).map_or("", |(name, _)| name)
    }

    /// The largest amount of each resource on any node.
    pub(in crate::policies) fn largest(&self) -> Amount {
        self.0.iter().fold(Amount::default(), |most, (_, capacity)| most.max(*capacity))
    }

    /// The capacity of the empty cluster.
    pub(in crate::policies) fn empty(&self) -> FreeCapacity {
        FreeCapacity(
            self.0
                .iter()
                .map(|(_, capacity)| NodeCapacity { capacity: *capacity, free: *capacity })
                .collect(),
        )
    }
}

/// The free capacity of each node.
#[derive(Clone, Debug)]
pub(in crate::policies) struct FreeCapacity(Vec<NodeCapacity>);

#[derive(Clone, Copy, Debug, Default)]
struct NodeCapacity {
    capacity: Amount,
    free: Amount,
}

/// A node's idle share in billionths: an integer in a float, so that comparisons are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::policies) struct Idle(f64);

impl Idle {
    /// As a fraction of the node.
    pub(in crate::policies) fn share(self) -> f64 {
        self.0 / PARTS
    }
}

impl Eq for Idle {}

impl PartialOrd for Idle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Idle {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl FreeCapacity {
    /// Every node, by name.
    pub(in crate::policies) fn nodes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        let all: Range<usize> = 0..self.0.len();
        all.map(NodeIndex)
    }

    /// The free capacity of a node.
    pub(in crate::policies) fn free(&self, at: NodeIndex) -> Amount {
        self.node(at).free
    }

    /// Sets the free capacity of a node.
    pub(in crate::policies) fn set(&mut self, at: NodeIndex, free: Amount) {
        if let Some(node) = self.0.get_mut(at.0) {
            node.free = free;
        }
    }

    pub(in crate::policies) fn take(&mut self, at: NodeIndex, amount: Amount) {
        self.set(at, self.free(at).minus(amount));
    }

    pub(in crate::policies) fn give(&mut self, at: NodeIndex, amount: Amount) {
        self.set(at, self.free(at).plus(amount));
    }

    /// The node's idle share: the mean of its free fractions of cores and memory, to nine decimals.
    pub(in crate::policies) fn idle(&self, at: NodeIndex) -> Idle {
        self.idle_without(at, Amount::default())
    }

    /// The same, after `need` is taken.
    pub(in crate::policies) fn idle_without(&self, at: NodeIndex, need: Amount) -> Idle {
        let NodeCapacity { capacity, free } = self.node(at);
        let left = free.minus(need);
        let fraction = |left: f64, all: f64| if all > 0.0 { saturate(left / all) } else { 0.0 };
        let sum = fraction(left.cpu, capacity.cpu) + fraction(left.memory, capacity.memory);
        // Adding 0 turns -0 into 0, which would order below it.
        Idle(saturate((sum / 2.0 * PARTS).round()) + 0.0)
    }

    /// An upper bound on what tasks can take of all nodes together, with the tolerance for rounding.
    pub(super) fn total_bound(&self) -> Amount {
        let rounding = Amount { cpu: EPSILON, memory: EPSILON };
        let free = self.0.iter().map(|node| node.free.max(Amount::default()).plus(rounding));
        let all = free.fold(Amount::default(), Amount::plus);
        all.map(all, |all, _| all * (1.0 + EPSILON))
    }

    /// The idlest of some nodes; of equals, the first by name.
    pub(in crate::policies) fn idlest(
        &self,
        among: impl Iterator<Item = NodeIndex>,
    ) -> Option<NodeIndex> {
        among.min_by_key(|at| (Reverse(self.idle(*at)), *at))
    }

    /// The idlest node on which `need` fits.
    pub(in crate::policies) fn idlest_for(&self, need: Amount) -> Option<NodeIndex> {
        self.idlest(self.nodes().filter(|at| self.free(*at).covers(need)))
    }

    /// All nodes, the idlest first; of equals, the first by name.
    pub(super) fn by_idleness(&self) -> Vec<NodeIndex> {
        let mut nodes: Vec<_> = self.nodes().collect();
        nodes.sort_by_cached_key(|at| (Reverse(self.idle(*at)), *at));
        nodes
    }

    /// How many of `enough` tasks go at once to the node that is best for one of them. It is as many as
    /// fit if no other node can become better: there is no `rival`, or the tasks are too small to matter.
    /// Otherwise it is one.
    pub(in crate::policies) fn batch_size(
        &self,
        at: NodeIndex,
        need: Amount,
        enough: u32,
        rival: bool,
    ) -> u32 {
        let free = self.free(at);
        if rival && free.minus(need) != free { 1 } else { free.holds(need, enough) }
    }

    fn node(&self, at: NodeIndex) -> NodeCapacity {
        self.0.get(at.0).copied().unwrap_or_default()
    }
}
