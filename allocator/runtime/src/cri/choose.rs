//! Which container of a pod is the job. Pure.

use std::collections::{BTreeMap, BTreeSet};

use paceline_api::labels::POD_CONTAINER;
use paceline_api::plain;

use super::proto::{Container, ContainerState};

/// The prefix of the names of containers that are ours, such as the sidecar.
const OURS: &str = "paceline-";
/// The most names of containers in one reason.
const MAX_NAMES: usize = 5;

/// Whether one container of a pod is the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is.
    This,
    /// It is one of ours.
    Ours,
    /// The pod's annotation names this other one.
    Other(String),
    /// The pod's annotation names this one, which does not exist.
    Unknown(String),
    /// It may be one of several, whose names these are.
    Several(String),
}

/// Whether a container with this name is one of ours.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

/// The names of the containers of a pod that have not ended, without ours. Init containers have ended
/// when the others begin, and a container that is restarted has several of the same name.
pub(super) fn names(containers: &[Container]) -> BTreeSet<&str> {
    let lives =
        |one: &&Container| matches!(one.state(), ContainerState::Running | ContainerState::Created);
    containers
        .iter()
        .filter(lives)
        .filter_map(|one| one.metadata.as_ref().map(|metadata| metadata.name.as_str()))
        .filter(|name| !is_ours(name))
        .collect()
}

/// Whether container `name` is the job of its pod, which has these `others`, itself among them.
pub(super) fn choice(
    name: &str,
    annotations: &BTreeMap<String, String>,
    others: &BTreeSet<&str>,
) -> Choice {
    match annotations.get(POD_CONTAINER) {
        Some(chosen) if chosen == name => Choice::This,
        Some(chosen) if others.contains(chosen.as_str()) => Choice::Other(chosen.clone()),
        Some(chosen) => Choice::Unknown(chosen.clone()),
        None if is_ours(name) => Choice::Ours,
        None if others.iter().any(|other| *other != name) => Choice::Several(listed(others)),
        None => Choice::This,
    }
}

fn listed(names: &BTreeSet<&str>) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| plain::name(name)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
