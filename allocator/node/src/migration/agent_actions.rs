//! The actions that a cluster's manager may request on a machine. They are the steps of a move that
//! only the machine's own engine can do.

use std::path::PathBuf;
use std::str::FromStr;

use paceline_api::labels::{ENABLE, Labels, MOVED_FROM};
use paceline_runtime::{Runtime, RuntimeError};
use serde::{Deserialize, Serialize};

use crate::limits::ownership::Owner;
use crate::migration::StepError;
use crate::migration::containers::Containers;

/// Swarm's label with the service of a task's container.
const SERVICE: &str = "com.docker.swarm.service.id";

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentAction {
    /// Ask the job to save a checkpoint.
    Save,
    /// Pause the container.
    Freeze,
    /// Resume the container.
    Thaw,
    /// Remove the container, unless it is running.
    GiveUp,
    /// Remove the containers of a service that was created for a move.
    Discard,
}

/// The result of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Done {
    /// The step of the checkpoint, if the job counts its steps.
    pub step: Option<u64>,
    /// Why the container was not removed, if it was not.
    pub kept: Option<String>,
}

/// Carries out actions on the containers of a machine that are Swarm tasks and have opted in.
#[derive(Clone, Debug)]
pub struct AgentActions {
    runtime: Runtime,
    containers: Containers,
}

impl AgentAction {
    const ALL: [Self; 5] = [Self::Save, Self::Freeze, Self::Thaw, Self::GiveUp, Self::Discard];

    /// Its name in a request's path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::GiveUp => "give-up",
            Self::Discard => "discard",
        }
    }

    /// The path of the `POST` request for it; `id` is that of the container or service.
    pub fn path(self, id: &str) -> String {
        format!("/v1/{}/{id}/{}", self.kind(), self.name())
    }

    /// The path of each, with `{id}` for that of the container or service.
    pub fn paths() -> impl Iterator<Item = String> {
        Self::ALL.into_iter().map(|action| action.path("{id}"))
    }

    /// Parses a path: the action, and the id of its container or service.
    pub fn from_path(path: &str) -> Option<(Self, &str)> {
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

impl FromStr for AgentAction {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or(())
    }
}

impl AgentActions {
    /// The actions on a machine whose `/proc` is at `proc`.
    pub fn new(runtime: Runtime, proc: PathBuf) -> Self {
        let containers = Containers::new(runtime.clone(), proc).adopting(vec![Owner::Swarm]);
        Self { runtime, containers }
    }

    /// Carries out an action. For a container that is gone, resuming and removing succeed.
    pub async fn carry_out(&self, order: AgentAction, id: &str) -> Result<Done, StepError> {
        let (mut done, containers) = (Done::default(), &self.containers);
        match order {
            AgentAction::Save => {
                self.ensure_exists(id).await?;
                done.step = containers.save(id).await?;
            }
            AgentAction::Freeze => {
                self.ensure_exists(id).await?;
                containers.freeze(id).await?;
            }
            AgentAction::Thaw => {
                if self.exists(id).await? {
                    containers.thaw(id).await?;
                }
            }
            AgentAction::GiveUp => {
                if self.exists(id).await? {
                    done.kept = containers.give_up(id).await?;
                }
            }
            AgentAction::Discard => self.discard(id).await?,
        }
        Ok(done)
    }

    /// Whether a container exists. One that is not a Swarm task or has not opted in is an error.
    async fn exists(&self, id: &str) -> Result<bool, StepError> {
        let Some(found) = self.runtime.inspect(id).await.map_err(failed)? else {
            return Ok(false);
        };
        let is_task = found.labels.keys().any(|label| label.starts_with("com.docker.swarm.task"));
        if is_task && Labels::opted_in(&found.labels) {
            return Ok(true);
        }
        let why = format!("container {} is not a Swarm task that has opted in", found.name);
        Err(StepError::Refused(why))
    }

    async fn ensure_exists(&self, id: &str) -> Result<(), StepError> {
        let ended = || StepError::Refused("its container has ended".to_owned());
        self.exists(id).await?.then_some(()).ok_or_else(ended)
    }

    /// Removes the containers of a service without running them again.
    async fn discard(&self, service: &str) -> Result<(), StepError> {
        let of_service = format!("{SERVICE}={service}");
        let opted_in = format!("{ENABLE}=true");
        let wanted = [of_service.as_str(), MOVED_FROM, opted_in.as_str()];
        for found in self.runtime.list(&wanted).await.map_err(failed)? {
            self.containers.remove(&found.id).await?;
        }
        Ok(())
    }
}

fn failed(error: RuntimeError) -> StepError {
    StepError::Engine("describe the containers", Box::new(error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_names_an_action_and_an_id() {
        for order in AgentAction::ALL {
            assert_eq!(AgentAction::from_path(&order.path("abc123")), Some((order, "abc123")));
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
            assert_eq!(AgentAction::from_path(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn path_never_yields_anything_but_an_id(path in "/v1/containers/[a-f./%]{0,9}/save") {
            if let Some((_, id)) = AgentAction::from_path(&path) {
                prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            }
        }
    }
}
