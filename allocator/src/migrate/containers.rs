//! The steps of a move between nodes that are sets of CPUs of one machine, by its engine.

mod carriage;
mod end;
mod twin;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerInspectResponse, ContainerUpdateBody, NetworkConnectRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, StartContainerOptions,
};
use paceline_wire::{Checkpoint, Progress, State};
use tokio::time::sleep;
use twin::Twin;

use super::movable;
use super::procedure::Step;
use super::{Carrier, CarryError, Fact, Move, Standing};
use crate::actuate::fence::Owner;
use crate::labels::Labels;
use crate::observe::container::{Container, is_missing};
use crate::observe::endpoint::{self, Way};

pub use carriage::OneMachine;

/// On a container that was made for a move: the one that it took the place of.
pub const MOVED_FROM: &str = "paceline.moved-from";

/// How often a job is asked for what is waited for.
const POLL: Duration = Duration::from_millis(50);
/// So often a container is to be frozen before that has failed. A runtime that freezes the processes of
/// a busy machine may find some that cannot be just then, and leaves it to its caller to try again.
const FREEZES: u32 = 3;

/// The containers of one engine.
#[derive(Clone, Debug)]
pub struct Containers {
    docker: Docker,
    proc: PathBuf,
    /// Whose containers are moved though somebody else looks after them.
    adopt: Vec<Owner>,
}

impl Carrier for Containers {
    async fn carry_out(&self, step: Step, plan: &Move) -> Result<Fact, CarryError> {
        match step {
            Step::Create => self.create(plan).await.map(Fact::Made),
            Step::Save => self.save(&plan.source).await.map(Fact::Saved),
            Step::Pause => self.freeze(&plan.source).await.map(|()| Fact::None),
            Step::Start => self.start(plan).await.map(|()| Fact::None),
            Step::Prove => self.prove(plan).await.map(|()| Fact::None),
            Step::Retire => self.retire(plan).await,
            Step::Rename => self.rename(plan).await.map(|()| Fact::None),
            Step::Discard => self.discard(plan).await.map(|()| Fact::None),
            Step::Resume => self.thaw(&plan.source).await.map(|()| Fact::None),
        }
    }
}

impl Containers {
    /// Those of the engine of a machine whose `/proc` is at `proc`.
    pub fn new(docker: Docker, proc: PathBuf) -> Self {
        Self { docker, proc, adopt: Vec::new() }
    }

    /// The same, with containers of these owners.
    #[must_use]
    pub fn adopting(self, adopt: Vec<Owner>) -> Self {
        Self { adopt, ..self }
    }

    /// Has the container at the source run on the CPUs of the target from now on.
    pub async fn set_cpus(&self, plan: &Move) -> Result<(), CarryError> {
        let (id, cpus) = (&plan.source, Some(plan.place.clone()));
        let body = ContainerUpdateBody { cpuset_cpus: cpus, ..ContainerUpdateBody::default() };
        self.docker.update_container(id, body).await.map_err(failed("change the container's CPUs"))
    }

    async fn create(&self, plan: &Move) -> Result<String, CarryError> {
        let source = self.running(&plan.source).await?;
        let (container, labels) = read(&source)?;
        self.checkpoints(&container, &labels)?;
        if is_paused(&source) {
            return Err(CarryError::Refused("somebody has paused it".to_owned()));
        }
        // What a move that was cut short has left there.
        self.discard(plan).await?;
        let Twin { body, networks } = twin::of(source, plan);
        let options = CreateContainerOptionsBuilder::default().name(&plan.successor()).build();
        let made = self.docker.create_container(Some(options), body).await;
        let id = made.map_err(failed("make a container"))?.id;
        for (network, endpoint) in networks {
            let endpoint_config = Some(endpoint);
            let request = NetworkConnectRequest { container: id.clone(), endpoint_config };
            let joined = self.docker.connect_network(&network, request).await;
            joined.map_err(failed("connect the container to its network"))?;
        }
        Ok(id)
    }

    fn checkpoints<'a>(
        &self,
        container: &Container,
        labels: &'a Labels,
    ) -> Result<&'a Path, CarryError> {
        movable::checkpoints(container, labels, &self.adopt)
            .map_err(|why| CarryError::Refused(why.to_string()))
    }

    /// Asks the job of a container for a checkpoint, and waits until it says that this lies where it
    /// belongs: of which step it is, where the job counts them.
    pub async fn save(&self, id: &str) -> Result<Option<u64>, CarryError> {
        let source = self.running(id).await?;
        let (container, labels) = read(&source)?;
        let folder = self.checkpoints(&container, &labels)?;
        let ways = endpoint::ways(&self.proc, &container, &labels.endpoint);
        loop {
            let (way, number) = endpoint::request_checkpoint(&self.proc, &ways).await?;
            let checkpoint = self.answer(id, way, number).await?;
            if let Some(error) = checkpoint.error {
                return Err(CarryError::Refused(format!("the job has not saved: {error}")));
            }
            let path = checkpoint.path.unwrap_or_default();
            // Nobody goes on from the one that is kept for its loss: that was another wish.
            let at = checkpoint.at.map(f64::to_bits);
            if checkpoint.kept.is_some_and(|kept| Some(kept.at.to_bits()) == at) {
                continue;
            }
            return if PathBuf::from(&path).starts_with(folder) {
                Ok(checkpoint.step)
            } else {
                let folder = folder.display();
                Err(CarryError::Refused(format!("the job has saved to {path}, not to {folder}")))
            };
        }
    }

    /// Waits until request `number` is answered.
    async fn answer(&self, id: &str, way: &Way, number: u64) -> Result<Checkpoint, CarryError> {
        loop {
            match endpoint::read(&self.proc, std::slice::from_ref(way)).await {
                Ok((_, progress)) if progress.checkpoint.answered >= number => {
                    return Ok(progress.checkpoint);
                }
                Ok(_) => {}
                // A job that is busy saving answers late; one that has ended never does.
                Err(error) if error.may_pass() => drop(self.running(id).await?),
                Err(error) => return Err(error.into()),
            }
            sleep(POLL).await;
        }
    }

    /// Freezes a container.
    pub async fn freeze(&self, id: &str) -> Result<(), CarryError> {
        let mut tries = FREEZES;
        loop {
            let paused = self.docker.pause_container(id).await;
            // Whatever the engine says: what counts is whether it is so.
            if is_paused(&self.running(id).await?) {
                return Ok(());
            }
            tries -= 1;
            if tries == 0 {
                paused.map_err(failed("freeze the container"))?;
                return Err(CarryError::Refused(
                    "the container is not frozen, though the engine says so".to_owned(),
                ));
            }
            sleep(POLL).await;
        }
    }

    async fn start(&self, plan: &Move) -> Result<(), CarryError> {
        let name = plan.successor();
        let started = self.docker.start_container(&name, None::<StartContainerOptions>).await;
        started.map_err(failed("start the container on the target"))
    }

    /// Waits for the first report of the container on the target.
    async fn prove(&self, plan: &Move) -> Result<(), CarryError> {
        let name = plan.successor();
        loop {
            let Some(twin) = self.inspect(&name).await? else {
                return Err(CarryError::Refused("the container on the target is gone".to_owned()));
            };
            let (container, labels) = read(&twin)?;
            if container.pid.is_none() {
                return Err(CarryError::Refused(ended(&twin)));
            }
            let ways = endpoint::ways(&self.proc, &container, &labels.endpoint);
            // Until it answers it is beginning.
            if let Ok((_, progress)) = endpoint::read(&self.proc, &ways).await
                && standing(&progress).goes_on_from(plan.saved)?
            {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    async fn running(&self, id: &str) -> Result<ContainerInspectResponse, CarryError> {
        let found = self.inspect(id).await?;
        found.filter(runs).ok_or_else(|| CarryError::Refused("its container has ended".to_owned()))
    }

    async fn inspect(&self, name: &str) -> Result<Option<ContainerInspectResponse>, CarryError> {
        match self.docker.inspect_container(name, None::<InspectContainerOptions>).await {
            Ok(response) => Ok(Some(response)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(failed("describe the container")(error)),
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(EngineError) -> CarryError {
    move |error| CarryError::Engine(what, Box::new(error))
}

fn read(response: &ContainerInspectResponse) -> Result<(Container, Labels), CarryError> {
    let container = Container::from(response.clone());
    let labels = Labels::parse(&container.labels);
    let labels = labels.map_err(|error| CarryError::Refused(error.to_string()))?;
    Ok((container, labels))
}

fn runs(response: &ContainerInspectResponse) -> bool {
    response.state.as_ref().is_some_and(|state| state.running == Some(true))
}

fn is_paused(response: &ContainerInspectResponse) -> bool {
    response.state.as_ref().is_some_and(|state| state.paused == Some(true))
}

fn ended(response: &ContainerInspectResponse) -> String {
    let code = response.state.as_ref().and_then(|state| state.exit_code);
    let code = code.map_or(String::new(), |code| format!(", with exit code {code}"));
    format!("the container on the target ended before its first report{code}")
}

/// How far a job has come, by its own word.
fn standing(progress: &Progress) -> Standing {
    Standing {
        failed: progress.state == State::Failed,
        losses: progress.eval.count,
        step: progress.step,
    }
}

#[cfg(test)]
mod tests;
