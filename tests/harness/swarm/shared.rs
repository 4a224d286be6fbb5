//! A Swarm that one process starts and others use, one at a time.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context;
use bollard::query_parameters::{
    ListConfigsOptions, ListContainersOptionsBuilder, ListNetworksOptions, ListSecretsOptions,
    ListServicesOptions, RemoveContainerOptionsBuilder,
};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{PrivateSwarm, SwarmEngine};
use crate::wait::until;

/// What another process needs to find a Swarm.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SwarmAddress {
    name: String,
    folder: PathBuf,
    hosts: Vec<String>,
}

impl PrivateSwarm {
    /// What another process needs to find it.
    pub fn address(&self) -> SwarmAddress {
        let hosts = self.engines.iter().map(|engine| engine.host.clone()).collect();
        SwarmAddress { name: self.name.clone(), folder: self.folder.clone(), hosts }
    }

    /// Waits until no other process uses a Swarm that another one has started, takes and empties it.
    /// It stays taken until the returned file is closed. Its engines can be neither stopped nor started.
    pub async fn attach(address: &SwarmAddress) -> anyhow::Result<(Self, File)> {
        let lock = File::options().create(true).append(true).open(address.folder.join("lock"))?;
        let held = lock.try_clone()?;
        tokio::task::spawn_blocking(move || flock(&held, FlockOperation::LockExclusive)).await??;
        let mut swarm = Self {
            name: address.name.clone(),
            folder: address.folder.clone(),
            namespaces: Vec::new(),
            engines: Vec::new(),
        };
        for host in &address.hosts {
            let folder = address.folder.join(host);
            let engine = SwarmEngine::attach(folder, &address.name, host.clone()).await?;
            swarm.engines.push(engine);
        }
        // A killed test has not emptied it.
        swarm.empty().await?;
        Ok((swarm, lock))
    }

    /// Removes what a test has left: services, containers, networks, secrets and configurations, but
    /// no images.
    pub async fn empty(&self) -> anyhow::Result<()> {
        let docker = self.manager()?.docker();
        for service in docker.list_services(None::<ListServicesOptions>).await? {
            docker.delete_service(service.id.as_deref().context("a service has an id")?).await?;
        }
        for engine in &self.engines {
            engine.remove_containers().await?;
        }
        for secret in docker.list_secrets(None::<ListSecretsOptions>).await? {
            docker.delete_secret(secret.id.as_deref().context("a secret has an id")?).await?;
        }
        for config in docker.list_configs(None::<ListConfigsOptions>).await? {
            docker
                .delete_config(config.id.as_deref().context("a configuration has an id")?)
                .await?;
        }
        // A network can be removed only when its last task has left it.
        until("the Swarm is empty", || async {
            for network in docker.list_networks(None::<ListNetworksOptions>).await? {
                let own =
                    network.ingress == Some(false) && network.scope.as_deref() == Some("swarm");
                if own && let Some(id) = network.id {
                    drop(docker.remove_network(&id).await);
                }
            }
            for engine in &self.engines {
                let all = ListContainersOptionsBuilder::default().all(true).build();
                if !engine.docker().list_containers(Some(all)).await?.is_empty() {
                    engine.remove_containers().await?;
                    return Ok(None);
                }
                let networks = engine.docker().list_networks(None::<ListNetworksOptions>).await?;
                let is_left =
                    |scope: Option<&str>, ingress| scope == Some("swarm") && ingress == Some(false);
                if networks.iter().any(|it| is_left(it.scope.as_deref(), it.ingress)) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await
    }
}

impl SwarmEngine {
    /// Removes every container, whether it runs or not.
    pub(super) async fn remove_containers(&self) -> anyhow::Result<()> {
        let all = ListContainersOptionsBuilder::default().all(true).build();
        for container in self.docker().list_containers(Some(all)).await? {
            let id = container.id.unwrap_or_default();
            let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            // The engine may be removing it itself.
            drop(self.docker().remove_container(&id, Some(force)).await);
        }
        Ok(())
    }
}
