//! The snapshot of a run before the first sample, and the view of its policy.

use std::collections::BTreeMap;

use paceline_api::clock::unix_seconds;
use paceline_api::live::snapshot::{NodeView, PolicyView, SCHEMA, Snapshot};
use paceline_api::nodes::Nodes;
use paceline_policy::NodeSpec;

use super::super::engine::EngineInfo;
use super::settings::Settings;

/// The snapshot before the first sample.
pub(super) fn first_snapshot(
    described: &EngineInfo,
    nodes: &Nodes,
    policy: PolicyView,
) -> Snapshot {
    let part = |NodeSpec { name, cpus }| NodeView { name, cpus, ..NodeView::default() };
    Snapshot {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: unix_seconds(),
        node: NodeView {
            name: described.name.clone(),
            cpus: described.machine.cpus,
            memory: described.machine.memory,
            ..NodeView::default()
        },
        nodes: nodes.specs().map(part).collect(),
        policy,
        ..Snapshot::default()
    }
}

impl Settings {
    /// The policy, with the parameters in force.
    pub(super) fn policy_view(&self, in_force: &BTreeMap<&'static str, f64>) -> PolicyView {
        PolicyView {
            name: self.chosen.policy.clone(),
            variant: self.chosen.variant.to_string(),
            params: in_force.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            enforcement: self.chosen.limiter.enforcement.to_string(),
            actuator: self.fixed.actuator.to_string(),
            dry_run: self.fixed.dry_run,
            guards: self.chosen.limiter.guards(),
        }
    }
}
