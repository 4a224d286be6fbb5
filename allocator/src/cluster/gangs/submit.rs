//! Submitting a distributed job to a Swarm, and taking it back.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use bollard::Docker;
use bollard::models::{NetworkCreateRequest, ServiceSpec};
use bollard::query_parameters::ListNetworksOptionsBuilder;

use super::file::Gang;
use super::spec::{self, GANG};
use crate::cluster::engine::{SwarmEngine, is};
use crate::exit::BadUsage;

/// What was found and made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Services that were made.
    pub made: usize,
    /// Services of the job that were there already: an earlier submission was cut short.
    pub kept: usize,
}

/// The services of a job, and the network of its own that they are on, if it has one.
pub fn plan(gang: &Gang) -> anyhow::Result<(Vec<ServiceSpec>, Option<String>)> {
    let own = gang.network.is_none().then(|| format!("paceline-{}", gang.name));
    let network = own.clone().or_else(|| gang.network.clone()).unwrap_or_default();
    Ok((spec::services(gang, &network)?, own))
}

/// Makes the services of a job, which wait for a manager. A submission that was cut short is
/// completed.
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
                "there is another job {0} already: `paceline submit --withdraw {0}` removes it",
                gang.name
            ))
        );
    }
    if let Some(network) = own {
        make_network(docker, gang, network).await.context("make the job's network")?;
    }
    let mut submitted = Submitted::default();
    for spec in services {
        let name = spec.name.clone().unwrap_or_default();
        if there.contains_key(&name) {
            submitted.kept += 1;
            continue;
        }
        engine.create(spec).await.with_context(|| format!("make the service {name}"))?;
        submitted.made += 1;
    }
    ensure!(
        submitted.made > 0,
        BadUsage(format!("job {} has been submitted before, and is whole", gang.name))
    );
    Ok(submitted)
}

/// Whether a service is what the file says, as far as a file says it and an engine keeps it.
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
        // A submission that was cut short has made it.
        Err(error) if is(&error, 409) => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

/// Removes a job, whether it waits, runs or has ended: its services and its network. How many
/// services there were.
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

/// Removes a network once the last task has left it.
async fn remove_network(docker: &Docker, id: &str) -> anyhow::Result<()> {
    let mut patience = PATIENCE;
    loop {
        match docker.remove_network(id).await {
            Err(error) if is(&error, 404) => return Ok(()),
            Err(_) if patience > 0 => {
                patience -= 1;
                tokio::time::sleep(PACE).await;
            }
            removed => {
                return removed
                    .context("the job's services are removed, but its network is still in use");
            }
        }
    }
}

/// A network is tried again so often,
const PATIENCE: u32 = 60;
/// after so long: its tasks need a moment to end.
const PACE: std::time::Duration = std::time::Duration::from_millis(500);
