//! Submits a distributed job to a Swarm, or withdraws it.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use bollard::Docker;
use bollard::models::{NetworkCreateRequest, ServiceSpec};
use bollard::query_parameters::ListNetworksOptionsBuilder;
use paceline_api::labels::GANG;
use paceline_api::usage::BadUsage;

use super::file::Gang;
use super::spec;
use crate::engine::{SwarmEngine, is};

/// The result of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Services that were created.
    pub made: usize,
    /// Services that existed already, from an earlier submission that was interrupted.
    pub kept: usize,
}

/// The services of a job, and the name of its own network, if it has one.
pub fn plan(gang: &Gang) -> anyhow::Result<(Vec<ServiceSpec>, Option<String>)> {
    let own = gang.network.is_none().then(|| format!("paceline-{}", gang.name));
    let network = own.clone().or_else(|| gang.network.clone()).unwrap_or_default();
    Ok((spec::services(gang, &network)?, own))
}

/// Creates the services of a job, which wait for a manager. An interrupted submission is completed.
pub async fn submit(docker: &Docker, gang: &Gang) -> anyhow::Result<Submitted> {
    let engine = SwarmEngine::new(docker.clone());
    let there = engine.labelled(&format!("{GANG}={}", gang.name)).await?;
    let there: BTreeMap<String, ServiceSpec> = there
        .into_iter()
        .filter_map(|service| service.spec)
        .filter_map(|spec| Some((spec.name.clone()?, spec)))
        .collect();
    let (services, own) = plan(gang)?;
    for spec in &services {
        let before = spec.name.as_ref().and_then(|name| there.get(name));
        ensure!(
            before.is_none_or(|before| is_same(before, spec)),
            BadUsage(format!(
                "cannot submit job {0}: another job has this name; remove that one by \
                 `paceline submit --withdraw {0}`",
                gang.name
            ))
        );
    }
    if let Some(network) = own {
        make_network(docker, gang, network).await.context("cannot create the job's network")?;
    }
    let mut submitted = Submitted::default();
    for spec in services {
        let name = spec.name.clone().unwrap_or_default();
        if there.contains_key(&name) {
            submitted.kept += 1;
            continue;
        }
        engine.create(spec).await.with_context(|| format!("cannot create service {name}"))?;
        submitted.made += 1;
    }
    ensure!(
        submitted.made > 0,
        BadUsage(format!(
            "cannot submit job {0}: it is submitted already; remove it by \
             `paceline submit --withdraw {0}`",
            gang.name
        ))
    );
    Ok(submitted)
}

/// Whether a service matches the file, in the fields that a file sets and Docker keeps.
fn is_same(there: &ServiceSpec, spec: &ServiceSpec) -> bool {
    let inside = |spec: &ServiceSpec| {
        let task = spec.task_template.clone().unwrap_or_default();
        let it = task.container_spec.unwrap_or_default();
        let words = (it.args.unwrap_or_default(), it.env.unwrap_or_default());
        (it.image, words, it.labels)
    };
    there.labels == spec.labels && inside(there) == inside(spec)
}

async fn make_network(docker: &Docker, gang: &Gang, name: String) -> anyhow::Result<()> {
    let request = NetworkCreateRequest {
        name,
        driver: Some("overlay".to_owned()),
        labels: Some([(GANG.to_owned(), gang.name.clone())].into_iter().collect()),
        ..NetworkCreateRequest::default()
    };
    match docker.create_network(request).await {
        // An interrupted submission has created it.
        Err(error) if is(&error, 409) => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

/// Removes a job's services and network, whether it waits, runs or has ended. Returns the number of
/// services.
pub async fn withdraw(docker: &Docker, name: &str) -> anyhow::Result<usize> {
    let engine = SwarmEngine::new(docker.clone());
    let label = format!("{GANG}={name}");
    let services = engine.labelled(&label).await?;
    for service in &services {
        engine.remove(service.id.as_deref().unwrap_or_default()).await?;
    }
    let filters = [("label", vec![label.as_str()])].into_iter().collect();
    let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
    for network in docker.list_networks(Some(options)).await? {
        remove_network(docker, network.id.as_deref().unwrap_or_default()).await?;
    }
    Ok(services.len())
}

/// Removes a network after its last task has left.
async fn remove_network(docker: &Docker, id: &str) -> anyhow::Result<()> {
    let mut polls = MAX_POLLS;
    loop {
        match docker.remove_network(id).await {
            Err(error) if is(&error, 404) => return Ok(()),
            Err(_) if polls > 0 => {
                polls -= 1;
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            removed => {
                return removed.context(
                    "cannot remove the job's network: it is still in use; the services are removed",
                );
            }
        }
    }
}

/// How often the removal of a network is tried: its tasks need a moment to end.
const MAX_POLLS: u32 = 60;
/// The pause between two tries.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
