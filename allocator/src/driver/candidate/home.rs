//! Where a container runs, on a machine whose CPUs are several nodes.

use std::sync::Arc;

use paceline_policy::Event;
use paceline_policy::limiter::Guard;
use paceline_wire::Targets;

use super::{Candidate, Seen};
use crate::live::snapshot::Standing;
use crate::migrate::movable;
use crate::nodes::Nodes;
use crate::observe::container::Container;
use crate::observe::node::Machine;

#[derive(Debug)]
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

    /// Why its job cannot be moved by a checkpoint, if it cannot.
    pub(in crate::driver) fn unmovable(&self) -> Option<String> {
        movable::checkpoints(&self.container, &self.labels).err().map(|why| why.to_string())
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
            Seen::Urgent | Seen::Drifted { .. } => None,
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
