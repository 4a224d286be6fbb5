use std::fmt;
use std::str::FromStr;

use paceline_policy::policies::{self, Scope};
use paceline_policy::variant::UnknownVariant;
use paceline_policy::{Params, Variant};

use super::ScenarioError;

/// A policy in one of its variants: `flowcon`, or `flowcon:published`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The policy's name.
    pub policy: String,
    /// Which variant of the policy.
    pub variant: Variant,
}

impl Arm {
    /// Whether its policy sees all nodes together.
    pub fn is_cluster_policy(&self) -> bool {
        let entry = policies::ALL.iter().find(|entry| entry.name == self.policy);
        entry.is_some_and(|entry| entry.scope == Scope::Cluster)
    }
}

impl FromStr for Arm {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let (policy, variant) = match text.split_once(':') {
            Some((policy, variant)) => {
                let problem = |error: UnknownVariant| {
                    ScenarioError::value("policies", &text, error.to_string())
                };
                (policy, variant.parse().map_err(problem)?)
            }
            None => (text, Variant::default()),
        };
        policies::build(policy, variant, &Params::default())?;
        Ok(Self { policy: policy.to_owned(), variant })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variant {
            Variant::Resolved => f.write_str(&self.policy),
            Variant::Published => write!(f, "{}:published", self.policy),
        }
    }
}
