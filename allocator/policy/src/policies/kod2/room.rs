//! What a cluster's nodes hold, and how much of that is free.

use std::cmp::Reverse;
use std::ops::Range;

use crate::frame::Node;
use crate::unit::saturate;

/// What a task needs may exceed what is free by this much: sums of fractions do not come out even.
pub(super) const EPSILON: f64 = 1e-9;
/// Idle shares are compared by so many parts of a whole: nine decimals.
const PARTS: f64 = 1e9;

/// Cores and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::policies) struct Amount {
    pub(in crate::policies) cpu: f64,
    pub(in crate::policies) memory: f64,
}

impl Amount {
    /// As a frame tells it: what is not known, or makes no sense, is 0.
    pub(in crate::policies) fn told(cpu: Option<f64>, memory: Option<f64>) -> Self {
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
    pub(super) fn least(self, other: Self) -> Self {
        self.map(other, f64::min)
    }

    /// The larger of both, resource by resource.
    fn most(self, other: Self) -> Self {
        self.map(other, f64::max)
    }

    /// Whether `need` fits in here.
    pub(in crate::policies) fn covers(self, need: Self) -> bool {
        need.cpu <= self.cpu + EPSILON && need.memory <= self.memory + EPSILON
    }

    /// How many tasks that need `need` each fit in here; not counted further than `enough`.
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

/// A node, by its rank among the names of all: the smaller comes first where nodes tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policies) struct At(usize);

/// The nodes of one frame.
#[derive(Debug)]
pub(in crate::policies) struct Nodes<'f>(Vec<(&'f str, Amount)>);

impl<'f> Nodes<'f> {
    /// Of nodes that share a name, the first counts.
    pub(in crate::policies) fn new(nodes: &'f [Node]) -> Self {
        let told = |node: &'f Node| (node.name.as_str(), Amount::told(node.cpus, node.memory));
        let mut nodes: Vec<_> = nodes.iter().map(told).collect();
        nodes.sort_by_key(|(name, _)| *name);
        nodes.dedup_by_key(|(name, _)| *name);
        Self(nodes)
    }

    /// The node called `name`, if it is listed.
    pub(in crate::policies) fn find(&self, name: &str) -> Option<At> {
        self.0.binary_search_by_key(&name, |(name, _)| name).ok().map(At)
    }

    /// A node's name.
    pub(in crate::policies) fn name(&self, at: At) -> &'f str {
        self.0.get(at.0).map_or("", |(name, _)| name)
    }

    /// The most of each resource that any node has.
    pub(in crate::policies) fn largest(&self) -> Amount {
        self.0.iter().fold(Amount::default(), |most, (_, capacity)| most.most(*capacity))
    }

    /// The cluster with nothing on it.
    pub(in crate::policies) fn empty(&self) -> Room {
        Room(
            self.0
                .iter()
                .map(|(_, capacity)| Spot { capacity: *capacity, free: *capacity })
                .collect(),
        )
    }
}

/// What is free on each node, in one way of reckoning.
#[derive(Clone, Debug)]
pub(in crate::policies) struct Room(Vec<Spot>);

#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    capacity: Amount,
    free: Amount,
}

/// A node's idle share in billionths: as an integer in a float, so that it orders exactly.
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

impl Room {
    /// Every node, by name.
    pub(in crate::policies) fn nodes(&self) -> impl Iterator<Item = At> + use<> {
        let all: Range<usize> = 0..self.0.len();
        all.map(At)
    }

    /// What is free on a node.
    pub(in crate::policies) fn free(&self, at: At) -> Amount {
        self.spot(at).free
    }

    /// Says what is free on a node.
    pub(in crate::policies) fn set(&mut self, at: At, free: Amount) {
        if let Some(spot) = self.0.get_mut(at.0) {
            spot.free = free;
        }
    }

    pub(in crate::policies) fn take(&mut self, at: At, amount: Amount) {
        self.set(at, self.free(at).minus(amount));
    }

    pub(in crate::policies) fn give(&mut self, at: At, amount: Amount) {
        self.set(at, self.free(at).plus(amount));
    }

    /// The node's idle share: the mean of its free fractions of cores and memory, to nine decimals.
    pub(in crate::policies) fn idle(&self, at: At) -> Idle {
        self.idle_without(at, Amount::default())
    }

    /// The same, after `need` is taken.
    pub(in crate::policies) fn idle_without(&self, at: At, need: Amount) -> Idle {
        let Spot { capacity, free } = self.spot(at);
        let left = free.minus(need);
        let fraction = |left: f64, all: f64| if all > 0.0 { saturate(left / all) } else { 0.0 };
        let sum = fraction(left.cpu, capacity.cpu) + fraction(left.memory, capacity.memory);
        // Adding 0 turns -0 into 0, which would order below it.
        Idle(saturate((sum / 2.0 * PARTS).round()) + 0.0)
    }

    /// No less than tasks can take of all nodes together: each may go a little beyond what is free.
    pub(super) fn in_all(&self) -> Amount {
        let rounding = Amount { cpu: EPSILON, memory: EPSILON };
        let free = self.0.iter().map(|spot| spot.free.most(Amount::default()).plus(rounding));
        let all = free.fold(Amount::default(), Amount::plus);
        all.map(all, |all, _| all * (1.0 + EPSILON))
    }

    /// The idlest of some nodes; of equals, the first by name.
    pub(in crate::policies) fn idlest(&self, among: impl Iterator<Item = At>) -> Option<At> {
        among.min_by_key(|at| (Reverse(self.idle(*at)), *at))
    }

    /// The idlest node on which `need` fits.
    pub(in crate::policies) fn idlest_for(&self, need: Amount) -> Option<At> {
        self.idlest(self.nodes().filter(|at| self.free(*at).covers(need)))
    }

    /// All nodes, the idlest first; of equals, the first by name.
    pub(super) fn by_idleness(&self) -> Vec<At> {
        let mut nodes: Vec<_> = self.nodes().collect();
        nodes.sort_by_cached_key(|at| (Reverse(self.idle(*at)), *at));
        nodes
    }

    /// How many of `enough` tasks go to a node together, now that it is the best for one of them:
    /// all that it holds if nothing else can become better, because there is no `rival` or because
    /// a task is too small to make a difference; else one.
    pub(in crate::policies) fn together(
        &self,
        at: At,
        need: Amount,
        enough: u32,
        rival: bool,
    ) -> u32 {
        let free = self.free(at);
        if rival && free.minus(need) != free { 1 } else { free.holds(need, enough) }
    }

    fn spot(&self, at: At) -> Spot {
        self.0.get(at.0).copied().unwrap_or_default()
    }
}
