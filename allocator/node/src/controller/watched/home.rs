//! The node that a container runs on, on a machine whose CPUs are split into several.

use std::sync::Arc;

use paceline_api::live::snapshot::Standing;
use paceline_api::nodes::Nodes;
use paceline_policy::Event;
use paceline_policy::limiter::Guard;
use paceline_runtime::{Container, HostCpu};
use paceline_wire::Targets;
use tracing::{info, warn};

use super::{Context, Observation, WatchedContainer};
use crate::migration::{MigrationMethod, movable};
use crate::observe::node::Machine;

#[derive(Debug, PartialEq)]
pub(super) enum Home {
    /// The machine is not split.
    Machine,
    /// The node with this name.
    Node(String),
    /// No node has its CPUs, or its pod's limits may not be changed: the reason as a sentence.
    Outside(Arc<str>),
}

/// The settings that orders have made for a job. They move with the job.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Orders {
    targets: Targets,
    switched: Vec<(Guard, bool)>,
}

impl Orders {
    /// Whether no order has made a setting.
    pub(in crate::controller) fn is_empty(&self) -> bool {
        self.targets == Targets::default() && self.switched.is_empty()
    }
}

impl Home {
    pub(super) fn new(container: &Container, nodes: &Nodes) -> Self {
        if let Some(why) = container.pod.as_ref().and_then(|pod| pod.watched_only.as_deref()) {
            return Self::Outside(why.into());
        }
        if nodes.is_empty() {
            return Self::Machine;
        }
        let cpus = container.cpuset_cpus.as_str();
        nodes.of(cpus).map_or_else(
            || {
                let cpus = if cpus.is_empty() { "all" } else { cpus };
                Self::Outside(format!("its CPUs ({cpus}) do not match any node").into())
            },
            |node| Self::Node(node.name.clone()),
        )
    }

    /// Why it is on none of the nodes, if that is so.
    pub(super) fn outside(&self) -> Option<&str> {
        match self {
            Self::Machine | Self::Node(_) => None,
            Self::Outside(why) => Some(why),
        }
    }
}

impl WatchedContainer {
    /// The node that it runs on, if there are several.
    pub(in crate::controller) fn node(&self) -> Option<&str> {
        match &self.home {
            Home::Node(name) => Some(name),
            Home::Machine | Home::Outside(_) => None,
        }
    }

    /// Why it is on none of the nodes, if that is so.
    pub(in crate::controller) fn outside(&self) -> Option<&str> {
        self.home.outside()
    }

    /// Why its job cannot be moved by this method, if it cannot.
    pub(in crate::controller) fn unmovable(&self, by: MigrationMethod) -> Option<String> {
        match by {
            MigrationMethod::Restart => {
                let path = movable::checkpoints(&self.container, &self.labels, &[]);
                path.err().map(|why| why.to_string())
            }
            MigrationMethod::Cpuset => None,
        }
    }

    /// Takes in a new description; returns the events for the decision engine.
    pub(in crate::controller) fn described(
        &mut self,
        container: &Container,
        context: Context<'_>,
    ) -> Vec<Event> {
        let mut host_config = self.container.host_config;
        // A cap that we wrote is not its owner's. Who set a weight is unknown.
        if self.written.is_none() {
            let cpu_shares = host_config.cpu_shares;
            host_config = HostCpu { cpu_shares, ..container.host_config };
        }
        let floor = self.floor();
        let has_moved = container.pid.is_some() && self.container.pid != container.pid;
        self.container = Container { host_config, ..container.clone() };
        if has_moved && self.feed.is_some() {
            // The first process of a job has ended, and others go on: its endpoint is reached through one
            // of them.
            self.reconnect(context);
        }
        let home = Home::new(container, context.nodes);
        if home == self.home && floor == self.floor() {
            return Vec::new();
        }
        match home {
            // Its pod's limits may be changed again, or its request is another one.
            Home::Machine => {
                self.home = Home::Machine;
                self.appear_again(context.machine)
            }
            Home::Node(node) => {
                info!(job = %self.job, "its CPUs were changed to those of node {node}");
                self.settle_on(&node, context.machine)
            }
            outside @ Home::Outside(_) => {
                let why = outside.outside().unwrap_or_default();
                warn!(job = %self.job, "it is not managed any more: {why}");
                self.home = outside;
                if self.managed().is_some() {
                    self.take_back(context);
                }
                vec![Event::Gone(self.job.clone())]
            }
        }
    }

    /// It is paused, and its job is being moved to another node.
    pub(in crate::controller) fn depart(&mut self) {
        self.stop_asking();
        self.standing = Standing::Moving;
    }

    /// It runs on another node from now on; returns the events for the decision engine.
    pub(in crate::controller) fn settle_on(&mut self, node: &str, machine: &Machine) -> Vec<Event> {
        self.home = Home::Node(node.to_owned());
        self.appear_again(machine)
    }

    /// It is another job to the decision engine from now on; returns the events for it.
    fn appear_again(&mut self, machine: &Machine) -> Vec<Event> {
        if self.managed().is_none() {
            return Vec::new();
        }
        // Its counters continue, so it counts as a job that was running before.
        (self.began_in_this_run, self.last_reported) = (false, None);
        let seen = self.appear(machine, self.standing);
        let event = |seen| match seen {
            Observation::Appeared(spec) => Some(Event::Appeared(*spec)),
            Observation::Event(event) => Some(event),
            Observation::Urgent
            | Observation::Reached
            | Observation::Limited { .. }
            | Observation::Drifted { .. } => None,
        };
        seen.into_iter().filter_map(event).collect()
    }

    /// The settings that orders have made for it.
    pub(in crate::controller) fn orders(&self) -> Orders {
        Orders { targets: self.ordered, switched: self.switched.clone() }
    }

    /// Takes over the settings of the container that it replaces.
    pub(in crate::controller) fn inherit(&mut self, orders: Orders) {
        (self.ordered, self.switched) = (orders.targets, orders.switched);
        if let Some(feed) = &self.feed {
            feed.set_overrides(self.overrides());
        }
    }
}
