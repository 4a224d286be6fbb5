//! Checks whether a job can be moved. Pure.

use std::path::{Path, PathBuf};

use paceline_api::labels::{CHECKPOINT, Endpoint, Labels};
use paceline_runtime::{Container, HostCpu};

use crate::limits::ownership::{Owner, check_ownership};

/// Why a job cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmovable {
    /// Without the label it is unknown whether a new container continues from a checkpoint.
    #[error("it has no label {CHECKPOINT} to say where its checkpoints lie")]
    NoCheckpoint,
    /// The checkpoint would be removed with the container.
    #[error("{} ({CHECKPOINT}) is not on a volume or a folder of the machine", .0.display())]
    NotShared(PathBuf),
    /// Two containers cannot publish the same port.
    #[error("it publishes port {0}, which two containers cannot have at once")]
    Published(u16),
    /// Two containers that share a network cannot use the same port.
    #[error("it shares a network by --network {0}, where two containers cannot use the same port")]
    Network(String),
    /// Two containers cannot listen on the same socket.
    #[error("it listens on {}, which two containers would use at once", .0.display())]
    Socket(PathBuf),
    /// Its orchestrator would start it again.
    #[error("it is managed by {0}")]
    Orchestrated(Owner),
}

/// The path of a job's checkpoints, or why it cannot be moved. Containers of the owners in `adopt`
/// can be moved although they are orchestrated.
pub fn checkpoints<'a>(
    container: &Container,
    labels: &'a Labels,
    adopt: &[Owner],
) -> Result<&'a Path, Unmovable> {
    let path = labels.checkpoint.as_deref().ok_or(Unmovable::NoCheckpoint)?;
    let is_shared = |path: &Path| container.mounted.iter().any(|mounted| path.starts_with(mounted));
    if !is_shared(path) {
        return Err(Unmovable::NotShared(path.to_owned()));
    }
    if let Some((port, _)) = container.published.first() {
        return Err(Unmovable::Published(*port));
    }
    if let Endpoint::Unix(socket) = &labels.endpoint
        && is_shared(socket)
    {
        return Err(Unmovable::Socket(socket.clone()));
    }
    let mode = &container.network_mode;
    if mode == "host" || mode.starts_with("container:") {
        return Err(Unmovable::Network(mode.clone()));
    }
    // Compose does not restart a container, so its containers are checked as if without a limit.
    check_ownership(&container.labels, HostCpu::default(), 1.0, adopt)
        .map_err(|refused| Unmovable::Orchestrated(refused.owner))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(change: impl FnOnce(&mut Value)) -> Container {
        let mut described = json!({
            "Id": "1", "Name": "/vae",
            "Config": {"Labels": {"paceline.enable": "true"}},
            "HostConfig": {"NetworkMode": "default"},
            "NetworkSettings": {"Ports": {}},
            "Mounts": [{"Type": "bind", "Destination": "/ckpt", "RW": true}],
        });
        change(&mut described);
        paceline_runtime::testing::described(described)
    }

    fn obstacle(path: Option<&str>, change: impl FnOnce(&mut Value)) -> String {
        let label = path.map(|path| (CHECKPOINT, path));
        judged(label.as_slice(), change)
    }

    fn judged(labels: &[(&str, &str)], change: impl FnOnce(&mut Value)) -> String {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let labels = Labels::parse(&labels.collect()).unwrap();
        match checkpoints(&container(change), &labels, &[]) {
            Ok(path) => path.display().to_string(),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn socket_shared_by_both_containers_prevents_a_move() {
        let at = |socket| judged(&[(CHECKPOINT, "/ckpt"), ("paceline.endpoint", socket)], |_| ());
        assert_eq!(at("unix:/run/job.sock"), "/ckpt");
        assert!(at("unix:/ckpt/job.sock").contains("it listens on /ckpt/job.sock, which two"));
    }

    #[test]
    fn job_with_shared_checkpoints_can_be_moved() {
        assert_eq!(obstacle(Some("/ckpt/vae"), |_| ()), "/ckpt/vae");
        let by_volume = |it: &mut Value| it["Mounts"][0]["Type"] = json!("volume");
        assert_eq!(obstacle(Some("/ckpt"), by_volume), "/ckpt");
    }

    #[test]
    fn obstacle_to_a_move_is_named() {
        let with = |path: &'static str, value: Value| {
            move |it: &mut Value| *it.pointer_mut(path).unwrap() = value
        };
        let binding = json!({"7223/tcp": [{"HostIp": "0.0.0.0", "HostPort": "7223"}]});
        let swarm = json!({"com.docker.swarm.task": "x"});
        assert!(obstacle(None, |_| ()).contains("no label paceline.checkpoint"));
        for (change, words) in [
            (with("/Mounts/0/Type", json!("tmpfs")), "not on a volume"),
            (with("/Mounts/0/RW", json!(false)), "not on a volume"),
            (with("/Mounts/0/Destination", json!("/ck")), "not on a volume"),
            (with("/NetworkSettings/Ports", binding), "it publishes port 7223"),
            (with("/HostConfig/NetworkMode", json!("host")), "--network host"),
            (with("/HostConfig/NetworkMode", json!("container:1")), "--network container:1"),
            (with("/Config/Labels", swarm), "it is managed by Docker Swarm"),
        ] {
            let obstacle = obstacle(Some("/ckpt"), change);
            assert!(obstacle.contains(words), "{obstacle}");
        }
    }
}
