//! What the manager of a cluster may have done on a machine, beside reading what is known there: the
//! steps of a move that only the machine's own engine can do.

use std::path::PathBuf;
use std::str::FromStr;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::query_parameters::ListContainersOptionsBuilder;
use serde::{Deserialize, Serialize};

use crate::actuate::fence::Owner;
use crate::labels::{ENABLE, Labels};
use crate::migrate::CarryError;
use crate::migrate::containers::Containers;
use crate::observe::container;

/// On a task's container that was made for a move: the id of the service that it takes the place of.
pub(super) const MOVED_FROM: &str = "paceline.moved-from";
/// What the engine calls the service of a task's container.
const SERVICE: &str = "com.docker.swarm.service.id";

/// One such step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The job saves a checkpoint.
    Save,
    /// The container is frozen.
    Freeze,
    /// It goes on.
    Thaw,
    /// It is removed, unless it runs.
    GiveUp,
    /// What a service that was made for a move has here is removed.
    Discard,
}

/// What has come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// Of which step the checkpoint is, where the job counts its steps.
    pub step: Option<u64>,
    /// Why the container is not given up, where it is not.
    pub kept: Option<String>,
}

/// The containers of a machine, as far as they are tasks of its Swarm and have opted in.
#[derive(Clone, Debug)]
pub struct Hands {
    docker: Docker,
    containers: Containers,
}

impl Order {
    const ALL: [Self; 5] = [Self::Save, Self::Freeze, Self::Thaw, Self::GiveUp, Self::Discard];

    /// As it is asked for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::GiveUp => "give-up",
            Self::Discard => "discard",
        }
    }

    /// Where it is asked for (`POST`), of the container or service of this id.
    pub fn path(self, id: &str) -> String {
        format!("/v1/{}/{id}/{}", self.kind(), self.name())
    }

    /// What a path asks for, and of which container or service.
    pub fn of_path(path: &str) -> Option<(Self, &str)> {
        let (kind, rest) = path.strip_prefix("/v1/")?.split_once('/')?;
        let (id, order) = rest.split_once('/')?;
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let order: Self = order.parse().ok()?;
        (is_id && order.kind() == kind).then_some((order, id))
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Save | Self::Freeze | Self::Thaw | Self::GiveUp => "containers",
            Self::Discard => "services",
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or(())
    }
}

impl Hands {
    /// Those of the engine of a machine whose `/proc` is at `proc`.
    pub fn new(docker: Docker, proc: PathBuf) -> Self {
        let containers = Containers::new(docker.clone(), proc).adopting(vec![Owner::Swarm]);
        Self { docker, containers }
    }

    /// Does it. A container that is gone has been given up, and needs nothing else.
    pub async fn carry_out(&self, order: Order, id: &str) -> Result<Done, CarryError> {
        if order == Order::Discard {
            return self.discard(id).await.map(|()| Done::default());
        }
        let Some(found) = container::inspect(&self.docker, id).await.map_err(failed)? else {
            return match order {
                Order::Thaw | Order::GiveUp | Order::Discard => Ok(Done::default()),
                Order::Save | Order::Freeze => {
                    Err(CarryError::Refused("its container has ended".to_owned()))
                }
            };
        };
        let is_task = found.labels.keys().any(|label| label.starts_with("com.docker.swarm.task"));
        if !is_task || !Labels::opted_in(&found.labels) {
            let why = format!("container {} is no task that has opted in", found.name);
            return Err(CarryError::Refused(why));
        }
        let (mut done, containers) = (Done::default(), &self.containers);
        match order {
            Order::Save => done.step = containers.save(id).await?,
            Order::Freeze => containers.freeze(id).await?,
            Order::Thaw => containers.thaw(id).await?,
            Order::GiveUp => done.kept = containers.give_up(id).await?,
            Order::Discard => {}
        }
        Ok(done)
    }

    /// Removes what a service has here, without another moment of it.
    async fn discard(&self, service: &str) -> Result<(), CarryError> {
        let of_service = format!("{SERVICE}={service}");
        let opted_in = format!("{ENABLE}=true");
        let wanted = vec![of_service.as_str(), MOVED_FROM, opted_in.as_str()];
        let filters = [("label", wanted)].into_iter().collect();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        for found in self.docker.list_containers(Some(options)).await.map_err(failed)? {
            self.containers.remove(&found.id.unwrap_or_default()).await?;
        }
        Ok(())
    }
}

fn failed(error: EngineError) -> CarryError {
    CarryError::Engine("describe its containers", Box::new(error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_names_a_container_by_its_id_and_what_is_to_be_done() {
        for order in Order::ALL {
            assert_eq!(Order::of_path(&order.path("abc123")), Some((order, "abc123")));
        }
        for path in [
            "/v1/containers/abc",
            "/v1/containers//save",
            "/v1/containers/abc/sav",
            "/v1/containers/../save",
            "/v1/containers/abc/save/",
            "/v1/services/abc/freeze",
            "/v1/containers/abc/discard",
            "/v1/status",
        ] {
            assert_eq!(Order::of_path(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_reaches_beyond_a_containers_id(path in "/v1/containers/[a-f./%]{0,9}/save") {
            if let Some((_, id)) = Order::of_path(&path) {
                prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            }
        }
    }
}
