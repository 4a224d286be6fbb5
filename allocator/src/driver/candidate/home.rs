//! Where a container runs, on a machine whose CPUs are several nodes.

use std::sync::Arc;

use paceline_policy::Event;
use paceline_policy::limiter::Guard;
use paceline_wire::Targets;
use tracing::{info, warn};

use super::{Candidate, Seen, Surroundings};
use crate::live::snapshot::Standing;
use crate::migrate::{Means, movable};
use crate::nodes::Nodes;
use crate::observe::container::{Container, HostCpu};
use crate::observe::node::Machine;

#[derive(Debug, PartialEq)]
pub(super) enum Home {
    /// The machine is one node.
    Machine,
    /// A node of this name.
    Node(String),
    /// No node has its CPUs, in words.
    Outside(Arc<str>),
}

/// What people have set for a job: it goes with the job where that goes.
#[derive(Clone, Debug, Default)]
pub(in crate::driver) struct Orders {
    targets: Targets,
    switched: Vec<(Guard, bool)>,
}

impl Home {
    pub(super) fn of(container: &Container, nodes: &Nodes) -> Self {
        if nodes.is_empty() {
            return Self::Machine;
        }
        let cpus = container.cpuset_cpus.as_str();
        nodes.of(cpus).map_or_else(
            || {
                let cpus = if cpus.is_empty() { "all" } else { cpus };
                Self::Outside(format!("its CPUs ({cpus}) are those of no node").into())
            },
            |node| Self::Node(node.name.clone()),
        )
    }

    /// Why it is on none of the nodes, if it is not.
    pub(super) fn outside(&self) -> Option<&str> {
        match self {
            Self::Machine | Self::Node(_) => None,
            Self::Outside(why) => Some(why),
        }
    }
}

impl Candidate {
    /// The node that it runs on, where there are several.
    pub(in crate::driver) fn node(&self) -> Option<&str> {
        match &self.home {
            Home::Node(name) => Some(name),
            Home::Machine | Home::Outside(_) => None,
        }
    }

    /// Why it is on none of the nodes, if it is not.
    pub(in crate::driver) fn outside(&self) -> Option<&str> {
        self.home.outside()
    }

    /// Why its job cannot be moved by these means, if it cannot.
    pub(in crate::driver) fn unmovable(&self, by: Means) -> Option<String> {
        match by {
            Means::Restart => {
                let path = movable::checkpoints(&self.container, &self.labels, &[]);
                path.err().map(|why| why.to_string())
            }
            Means::Cpuset => None,
        }
    }

    /// The engine describes it like this now; what is to be told of it.
    pub(in crate::driver) fn described(
        &mut self,
        container: &Container,
        around: Surroundings<'_>,
    ) -> Vec<Event> {
        let mut host_config = self.container.host_config;
        // A cap that was written is not its owner's; whose a weight is cannot be told.
        if self.written.is_none() {
            let cpu_shares = host_config.cpu_shares;
            host_config = HostCpu { cpu_shares, ..container.host_config };
        }
        self.container = Container { host_config, ..container.clone() };
        let home = Home::of(container, around.nodes);
        if home == self.home {
            return Vec::new();
        }
        match home {
            Home::Machine => Vec::new(),
            Home::Node(node) => {
                info!(job = %self.job, "its CPUs are those of node {node} now");
                self.settle_on(&node, around.machine)
            }
            outside @ Home::Outside(_) => {
                warn!(job = %self.job, "it is left alone: {}", outside.outside().unwrap_or_default());
                self.home = outside;
                if self.managed().is_some() {
                    self.take_back(around);
                }
                vec![Event::Gone(self.job.clone())]
            }
        }
    }

    /// It is frozen, and its job on the way to another node.
    pub(in crate::driver) fn depart(&mut self) {
        (self.feed, self.trouble) = (None, None);
        self.standing = Standing::Moving;
    }

    /// It runs on another node from now on; what the engine is to be told.
    pub(in crate::driver) fn settle_on(&mut self, node: &str, machine: &Machine) -> Vec<Event> {
        self.home = Home::Node(node.to_owned());
        if self.managed().is_none() {
            return Vec::new();
        }
        // Its counters go on.
        (self.began_in_this_run, self.told) = (false, None);
        let seen = self.appear(machine, self.standing);
        let event = |seen| match seen {
            Seen::Appeared(spec) => Some(Event::Appeared(*spec)),
            Seen::Event(event) => Some(event),
            Seen::Urgent | Seen::Reached | Seen::Limited { .. } | Seen::Drifted { .. } => None,
        };
        seen.into_iter().filter_map(event).collect()
    }

    /// What people have set for it.
    pub(in crate::driver) fn orders(&self) -> Orders {
        Orders { targets: self.ordered, switched: self.switched.clone() }
    }

    /// The same is set for it as for the container that it takes the place of.
    pub(in crate::driver) fn inherit(&mut self, orders: Orders) {
        (self.ordered, self.switched) = (orders.targets, orders.switched);
        if let Some(feed) = &self.feed {
            feed.own(self.owned());
        }
    }
}
