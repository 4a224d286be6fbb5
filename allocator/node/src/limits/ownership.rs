//! Containers that an orchestrator manages. Pure.

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;
use paceline_runtime::HostCpu;
use serde::{Deserialize, Serialize};

/// An orchestrator, which starts containers and sets their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// Docker Swarm, which restarts a task when its service changes.
    Swarm,
    /// Kubernetes, whose kubelet enforces the limits of a pod.
    Kubernetes,
    /// Docker Compose, for containers with limits in its file.
    Compose,
}

/// A container that must not be limited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is managed by {owner} (label {label}); use --adopt {} to limit it anyway", .owner.word())]
pub struct Refused {
    /// Its orchestrator.
    pub owner: Owner,
    /// The label that identifies the orchestrator.
    pub label: String,
}

/// The prefix of each owner's labels.
const LABELS: [(&str, Owner); 3] = [
    ("com.docker.swarm.", Owner::Swarm),
    ("io.kubernetes.", Owner::Kubernetes),
    ("com.docker.compose.", Owner::Compose),
];

/// Checks whether a container with these labels and this limit may be limited, on a node with
/// `cpus` CPUs. Containers of the owners in `adopt` always may.
pub fn check_ownership(
    labels: &BTreeMap<String, String>,
    host: HostCpu,
    cpus: f64,
    adopt: &[Owner],
) -> Result<(), Refused> {
    for (prefix, owner) in LABELS {
        let Some(label) = labels.keys().find(|label| label.starts_with(prefix)) else { continue };
        // Compose does not enforce limits after it has started a container.
        let free = owner == Owner::Compose && host.share(cpus).is_all();
        if !free && !adopt.contains(&owner) {
            return Err(Refused { owner, label: label.clone() });
        }
    }
    Ok(())
}

impl Owner {
    /// Its name on the command line.
    fn word(self) -> &'static str {
        match self {
            Self::Swarm => "swarm",
            Self::Kubernetes => "kubernetes",
            Self::Compose => "compose",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Swarm => "Docker Swarm",
            Self::Kubernetes => "Kubernetes",
            Self::Compose => "a compose file with limits",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: HostCpu = HostCpu { nano_cpus: 0, cpu_quota: 0, cpu_period: 0, cpu_shares: 0 };
    const HALF: HostCpu = HostCpu { nano_cpus: 1_000_000_000, ..FREE };

    fn refused(label: &str, host: HostCpu, adopt: &[Owner]) -> Option<Owner> {
        let labels = [("paceline.enable", "true"), (label, "x")];
        let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into();
        check_ownership(&labels, host, 2.0, adopt).err().map(|refused| refused.owner)
    }

    #[test]
    fn orchestrated_container_is_refused_with_or_without_limits() {
        for host in [FREE, HALF] {
            let swarm = refused("com.docker.swarm.service.id", host, &[]);
            let kubernetes = refused("io.kubernetes.pod.name", host, &[]);
            assert_eq!((swarm, kubernetes), (Some(Owner::Swarm), Some(Owner::Kubernetes)));
        }
    }

    #[test]
    fn compose_container_is_refused_if_it_has_limits() {
        let label = "com.docker.compose.project";
        assert_eq!(refused(label, FREE, &[]), None);
        assert_eq!(refused(label, HALF, &[]), Some(Owner::Compose));
        let quota = HostCpu { cpu_quota: 50_000, ..FREE };
        assert_eq!(refused(label, quota, &[]), Some(Owner::Compose));
        // This is our restored state of a container without a limit.
        let all = HostCpu { nano_cpus: 2_000_000_000, ..FREE };
        assert_eq!(refused(label, all, &[]), None);
    }

    #[test]
    fn only_containers_of_adopted_owners_are_accepted() {
        assert_eq!(refused("com.docker.swarm.task", FREE, &[Owner::Swarm]), None);
        let other = refused("com.docker.swarm.task", FREE, &[Owner::Kubernetes, Owner::Compose]);
        assert_eq!(other, Some(Owner::Swarm));
        assert_eq!(refused("com.example.swarm", HALF, &[]), None);
    }

    #[test]
    fn refusal_names_the_owner_and_what_to_do() {
        let labels = [("io.kubernetes.pod.name".to_owned(), "vae".to_owned())].into();
        assert_eq!(
            check_ownership(&labels, FREE, 2.0, &[]).unwrap_err().to_string(),
            "it is managed by Kubernetes (label io.kubernetes.pod.name); use --adopt kubernetes to \
             limit it anyway"
        );
    }
}
