//! The free capacity of the nodes.

use crate::cluster::Task;
use crate::frame::Node;
use crate::unit::saturate;

/// A task still fits if its need exceeds the free capacity by at most this: a tolerance for rounding.
const EPSILON: f64 = 1e-9;

/// CPU in cores and memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Amount {
    /// Unknown and invalid values count as 0.
    fn known(cpu: Option<f64>, memory: Option<f64>) -> Self {
        let known = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0).unwrap_or(0.0);
        Self { cpu: known(cpu), memory: known(memory) }
    }

    pub(super) fn for_task(task: &Task) -> Self {
        Self::known(task.cpu, task.memory)
    }

    fn plus(self, more: Self) -> Self {
        Self { cpu: saturate(self.cpu + more.cpu), memory: saturate(self.memory + more.memory) }
    }

    fn minus(self, less: Self) -> Self {
        Self { cpu: saturate(self.cpu - less.cpu), memory: saturate(self.memory - less.memory) }
    }

    /// The larger of both, resource by resource.
    fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }
}

/// One node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<'a> {
    pub(super) name: &'a str,
    capacity: Amount,
    used: Amount,
}

impl Host<'_> {
    pub(super) fn free(&self) -> Amount {
        self.capacity.minus(self.used)
    }

    pub(super) fn fits(&self, need: Amount) -> bool {
        let free = self.free();
        need.cpu <= free.cpu + EPSILON && need.memory <= free.memory + EPSILON
    }

    pub(super) fn take(&mut self, need: Amount) {
        self.used = self.used.plus(need);
    }

    /// The fractions of the node that stay free when it takes `need`; 0 for a missing resource.
    pub(super) fn free_after(&self, need: Amount) -> Amount {
        let free = self.free().minus(need);
        let fraction = |free: f64, all: f64| if all > 0.0 { saturate(free / all) } else { 0.0 };
        Amount {
            cpu: fraction(free.cpu, self.capacity.cpu),
            memory: fraction(free.memory, self.capacity.memory),
        }
    }
}

/// All listed nodes, in the order of their names.
#[derive(Clone, Debug)]
pub(super) struct FreeCapacity<'a>(pub(super) Vec<Host<'a>>);

impl<'a> FreeCapacity<'a> {
    /// The free capacity beside the bound tasks. Sums depend on the order of `tasks`, so that order must
    /// not come from the frame.
    pub(super) fn new(nodes: &'a [Node], tasks: &[&Task]) -> Self {
        let host = |node: &'a Node| Host {
            name: &node.name,
            capacity: Amount::known(node.cpus, node.memory),
            used: Amount::default(),
        };
        let mut hosts: Vec<Host<'_>> = nodes.iter().map(host).collect();
        hosts.sort_by_key(|host| host.name);
        let mut room = Self(hosts);
        for task in tasks {
            let at = task.node.as_deref().and_then(|node| room.find(node));
            if let Some(host) = at.and_then(|at| room.0.get_mut(at)) {
                host.take(Amount::for_task(task));
            }
        }
        room
    }

    /// The index of a node in the list.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by_key(&name, |host| host.name).ok()
    }

    /// The most CPU and the most memory that any node has free.
    pub(super) fn most_free(&self) -> Amount {
        self.0.iter().fold(Amount::default(), |most, host| most.max(host.free()))
    }
}
