//! Containers that something else looks after. Pure.

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::observe::container::HostCpu;

/// Something that starts containers and sets their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// Docker Swarm: it starts a task anew when its service is changed.
    Swarm,
    /// Kubernetes: a kubelet keeps a container at its pod's limits.
    Kubernetes,
    /// Docker Compose, for containers that its file limits.
    Compose,
}

/// A container that is not ours to limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{owner} looks after it (label {label}); --adopt {} takes it all the same", .owner.word())]
pub struct Refused {
    /// Whose it is.
    pub owner: Owner,
    /// The label that says so.
    pub label: String,
}

/// The labels of each owner begin with this.
const LABELS: [(&str, Owner); 3] = [
    ("com.docker.swarm.", Owner::Swarm),
    ("io.kubernetes.", Owner::Kubernetes),
    ("com.docker.compose.", Owner::Compose),
];

/// Whether a container may be limited that has these labels and, on a node with `cpus` CPUs, this
/// limit. Whose containers are taken all the same stands in `adopt`.
pub fn fence(
    labels: &BTreeMap<String, String>,
    host: HostCpu,
    cpus: f64,
    adopt: &[Owner],
) -> Result<(), Refused> {
    for (prefix, owner) in LABELS {
        let Some(label) = labels.keys().find(|label| label.starts_with(prefix)) else { continue };
        // Compose only starts what it is told to: it does not come back to set limits right.
        let free = owner == Owner::Compose && host.share(cpus).is_all();
        if !free && !adopt.contains(&owner) {
            return Err(Refused { owner, label: label.clone() });
        }
    }
    Ok(())
}

impl Owner {
    /// As it is written on the command line.
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
            Self::Compose => "a compose file that limits it",
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
        fence(&labels, host, 2.0, adopt).err().map(|refused| refused.owner)
    }

    #[test]
    fn what_an_orchestrator_looks_after_is_refused_with_or_without_limits() {
        for host in [FREE, HALF] {
            let swarm = refused("com.docker.swarm.service.id", host, &[]);
            let kubernetes = refused("io.kubernetes.pod.name", host, &[]);
            assert_eq!((swarm, kubernetes), (Some(Owner::Swarm), Some(Owner::Kubernetes)));
        }
    }

    #[test]
    fn what_compose_started_is_refused_if_it_has_limits() {
        let label = "com.docker.compose.project";
        assert_eq!(refused(label, FREE, &[]), None);
        assert_eq!(refused(label, HALF, &[]), Some(Owner::Compose));
        let quota = HostCpu { cpu_quota: 50_000, ..FREE };
        assert_eq!(refused(label, quota, &[]), Some(Owner::Compose));
        // What we leave behind where there was no limit.
        let all = HostCpu { nano_cpus: 2_000_000_000, ..FREE };
        assert_eq!(refused(label, all, &[]), None);
    }

    #[test]
    fn what_is_asked_for_is_taken_and_nothing_else() {
        assert_eq!(refused("com.docker.swarm.task", FREE, &[Owner::Swarm]), None);
        let other = refused("com.docker.swarm.task", FREE, &[Owner::Kubernetes, Owner::Compose]);
        assert_eq!(other, Some(Owner::Swarm));
        assert_eq!(refused("com.example.swarm", HALF, &[]), None);
    }

    #[test]
    fn a_refusal_says_whose_it_is_and_what_to_do() {
        let labels = [("io.kubernetes.pod.name".to_owned(), "vae".to_owned())].into();
        assert_eq!(
            fence(&labels, FREE, 2.0, &[]).unwrap_err().to_string(),
            "Kubernetes looks after it (label io.kubernetes.pod.name); --adopt kubernetes takes it \
             all the same"
        );
    }
}
