//! An arm: a policy with its settings, under which the jobs run.

use std::collections::BTreeMap;

use paceline_node::migration::MigrationMethod;
use paceline_policy::limiter::Enforcement;
use paceline_policy::policies::{self, AnyPolicy, Scope, Srpt};
use paceline_policy::{Params, Variant};
use serde::{Deserialize, Serialize};

/// The arm that knows each job's work, as a reference for the others.
const ORACLE: &str = "oracle";

/// The enforcement of an arm that sets none: hard caps, as in the papers.
const DEFAULT_ENFORCEMENT: Enforcement = Enforcement::Quota;

/// A policy with all its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arm {
    /// Unique in the schedule.
    pub(crate) name: String,
    /// A policy's name, or [`ORACLE`].
    pub(crate) policy: String,
    pub(crate) variant: Variant,
    pub(crate) enforcement: Enforcement,
    /// How jobs move between nodes, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<MigrationMethod>,
    /// The parameters that differ from the policy's defaults.
    pub(crate) params: BTreeMap<String, f64>,
}

impl Arm {
    /// An arm of that policy, with default settings.
    pub(crate) fn new(policy: &str, params: BTreeMap<String, f64>) -> Self {
        let (policy, variant) = (policy.to_owned(), Variant::default());
        let (enforcement, name) = (DEFAULT_ENFORCEMENT, String::new());
        Self { name, policy, variant, enforcement, migration: None, params }.named()
    }

    /// The same, named after its settings.
    pub(super) fn named(mut self) -> Self {
        self.name.clone_from(&self.policy);
        if self.variant == Variant::Published {
            self.name.push_str("-published");
        }
        self.name.push_str(match self.enforcement {
            Enforcement::Quota => "",
            Enforcement::Shares => "-shares",
            Enforcement::QuotaLeftover => "-leftover",
        });
        if let Some(migration) = &self.migration {
            self.name.push('-');
            self.name.push_str(&migration.to_string());
        }
        self
    }

    pub(crate) fn is_oracle(&self) -> bool {
        self.policy == ORACLE
    }

    /// The policy to give to `paceline run`.
    pub(crate) fn policy_to_run(&self) -> &str {
        if self.is_oracle() { Srpt::NAME } else { &self.policy }
    }

    /// Why the arm cannot run on this number of nodes, if it cannot.
    pub(super) fn problem(&self, nodes: usize) -> Option<String> {
        let mut given = Params::default();
        for (name, value) in &self.params {
            given.set(name.as_str(), *value);
        }
        let name = self.policy_to_run();
        let of_cluster =
            policies::ALL.iter().any(|entry| entry.name == name && entry.scope == Scope::Cluster);
        match policies::build(name, self.variant, &given) {
            Err(error) => Some(error.to_string()),
            Ok(AnyPolicy::Jobs(_)) if !of_cluster || nodes > 1 => None,
            Ok(AnyPolicy::Jobs(_)) => {
                Some("it is a policy for clusters: give two or more [[node]] tables".to_owned())
            }
            Ok(AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_)) => {
                Some("it is a policy for distributed jobs, which a bench cannot run".to_owned())
            }
        }
    }
}
