//! Whether a job can be moved at all. Pure.

use std::path::{Path, PathBuf};

use crate::actuate::fence::{Owner, fence};
use crate::labels::{CHECKPOINT, Endpoint, Labels};
use crate::observe::container::{Container, HostCpu};

/// Why a job cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmovable {
    /// Nobody has said that a new container goes on where this one is.
    #[error("it has no label {CHECKPOINT} to say where its checkpoints lie")]
    NoCheckpoint,
    /// A checkpoint would go with the container.
    #[error("{} ({CHECKPOINT}) is on no volume and no folder of the machine", .0.display())]
    NotShared(PathBuf),
    /// Two containers cannot have one port.
    #[error("it publishes port {0}, which two containers cannot have at once")]
    Published(u16),
    /// Two containers cannot have one port.
    #[error("it shares a network by --network {0}, where its port cannot be had twice")]
    Network(String),
    /// The same of a socket that both see.
    #[error("it listens on {}, which two containers would have at once", .0.display())]
    Socket(PathBuf),
    /// Whoever started it would start it again.
    #[error("{0} looks after it")]
    Owned(Owner),
}

/// Where a job's checkpoints lie, if it can be moved by one; whose containers can be moved though
/// somebody else looks after them stands in `adopt`.
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
    // Compose does not come back for a container that is without a limit.
    fence(&container.labels, HostCpu::default(), 1.0, adopt)
        .map_err(|refused| Unmovable::Owned(refused.owner))?;
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
        serde_json::from_value::<bollard::models::ContainerInspectResponse>(described)
            .unwrap()
            .into()
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
    fn a_socket_that_both_containers_would_see_is_in_the_way() {
        let at = |socket| judged(&[(CHECKPOINT, "/ckpt"), ("paceline.endpoint", socket)], |_| ());
        assert_eq!(at("unix:/run/job.sock"), "/ckpt");
        assert!(at("unix:/ckpt/job.sock").contains("it listens on /ckpt/job.sock, which two"));
    }

    #[test]
    fn a_job_whose_checkpoints_outlive_its_container_can_be_moved() {
        assert_eq!(obstacle(Some("/ckpt/vae"), |_| ()), "/ckpt/vae");
        let by_volume = |it: &mut Value| it["Mounts"][0]["Type"] = json!("volume");
        assert_eq!(obstacle(Some("/ckpt"), by_volume), "/ckpt");
    }

    #[test]
    fn what_is_in_the_way_of_a_move_is_said() {
        let with = |path: &'static str, value: Value| {
            move |it: &mut Value| *it.pointer_mut(path).unwrap() = value
        };
        let binding = json!({"7223/tcp": [{"HostIp": "0.0.0.0", "HostPort": "7223"}]});
        let swarm = json!({"com.docker.swarm.task": "x"});
        assert!(obstacle(None, |_| ()).contains("no label paceline.checkpoint"));
        for (change, words) in [
            (with("/Mounts/0/Type", json!("tmpfs")), "on no volume"),
            (with("/Mounts/0/RW", json!(false)), "on no volume"),
            (with("/Mounts/0/Destination", json!("/ck")), "on no volume"),
            (with("/NetworkSettings/Ports", binding), "it publishes port 7223"),
            (with("/HostConfig/NetworkMode", json!("host")), "--network host"),
            (with("/HostConfig/NetworkMode", json!("container:1")), "--network container:1"),
            (with("/Config/Labels", swarm), "Docker Swarm looks after it"),
        ] {
            let obstacle = obstacle(Some("/ckpt"), change);
            assert!(obstacle.contains(words), "{obstacle}");
        }
    }
}
