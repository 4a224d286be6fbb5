//! The steps of a move between CPU sets of one machine, through its container engine.

mod end;
mod one_machine;

use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_api::labels::{Labels, MOVED_FROM};
use paceline_runtime::{Change, Container, Runtime, RuntimeError, Successor};
use paceline_wire::{Checkpoint, Progress, State};
use tokio::time::sleep;

use super::movable;
use super::procedure::Step;
use super::{MigrationBackend, Move, Standing, StepError, StepOutcome};
use crate::endpoint::{self, Reach, Route};
use crate::limits::ownership::Owner;

pub use one_machine::OneMachine;

/// How often a job is asked whether an awaited state is reached.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often pausing a container is tried. On a busy machine, a runtime may fail to pause some
/// processes at first and leaves the retry to its caller.
const MAX_PAUSES: u32 = 8;

/// The containers of one engine.
#[derive(Clone, Debug)]
pub struct Containers {
    runtime: Runtime,
    proc: PathBuf,
    /// Orchestrators whose containers are moved all the same.
    adopt: Vec<Owner>,
}

impl MigrationBackend for Containers {
    async fn carry_out(&self, step: Step, plan: &Move) -> Result<StepOutcome, StepError> {
        match step {
            Step::Create => self.create(plan).await.map(StepOutcome::Made),
            Step::Save => self.save(&plan.source).await.map(StepOutcome::Saved),
            Step::Pause => self.freeze(&plan.source).await.map(|()| StepOutcome::None),
            Step::Start => self.start(plan).await.map(|()| StepOutcome::None),
            Step::Prove => self.prove(plan).await.map(|()| StepOutcome::None),
            Step::Retire => self.retire(plan).await,
            Step::Rename => self.rename(plan).await.map(|()| StepOutcome::None),
            Step::Discard => self.discard(plan).await.map(|()| StepOutcome::None),
            Step::Resume => self.thaw(&plan.source).await.map(|()| StepOutcome::None),
        }
    }
}

impl Containers {
    /// The containers of a machine whose `/proc` is at `proc`.
    pub fn new(runtime: Runtime, proc: PathBuf) -> Self {
        Self { runtime, proc, adopt: Vec::new() }
    }

    /// The same, also moving containers of these owners.
    #[must_use]
    pub fn adopting(self, adopt: Vec<Owner>) -> Self {
        Self { adopt, ..self }
    }

    /// Changes the CPUs of the container at the source to those of the target.
    pub async fn set_cpus(&self, plan: &Move) -> Result<(), StepError> {
        let changed = self.runtime.update(&plan.source, Change::Cpus(plan.place.clone())).await;
        changed.map_err(failed("change the container's CPUs"))
    }

    async fn create(&self, plan: &Move) -> Result<String, StepError> {
        let source = self.running(&plan.source).await?;
        self.checkpoints(&source, &labels(&source)?)?;
        if source.state.paused {
            return Err(StepError::Refused("its container is already paused".to_owned()));
        }
        // An interrupted move may have left a container there.
        self.discard(plan).await?;
        let copy = Successor {
            name: plan.successor(),
            cpus: plan.place.clone(),
            limits: plan.limits,
            label: (MOVED_FROM.to_owned(), plan.source.clone()),
        };
        let made = self.runtime.copy(&plan.source, &copy).await;
        made.map_err(|error| failed(error.what)(error.source))
    }

    fn checkpoints<'a>(
        &self,
        container: &Container,
        labels: &'a Labels,
    ) -> Result<&'a Path, StepError> {
        movable::checkpoints(container, labels, &self.adopt)
            .map_err(|why| StepError::Refused(why.to_string()))
    }

    /// Asks a container's job for a checkpoint, and waits until it reports one in its folder.
    /// Returns the checkpoint's step, if the job counts its steps.
    pub async fn save(&self, id: &str) -> Result<Option<u64>, StepError> {
        let container = self.running(id).await?;
        let labels = labels(&container)?;
        let folder = self.checkpoints(&container, &labels)?;
        let routes = endpoint::routes(&self.proc, &container, &labels.endpoint);
        let reach = Reach::new(&self.proc, &container);
        loop {
            let (route, number) = endpoint::request_checkpoint(&reach, &routes).await?;
            let checkpoint = self.answer(id, &reach, route, number).await?;
            if let Some(error) = checkpoint.error {
                return Err(StepError::Refused(format!("the job has not saved: {error}")));
            }
            let path = checkpoint.path.unwrap_or_default();
            // This is the checkpoint that is kept for its loss: a successor does not load it.
            let at = checkpoint.at.map(f64::to_bits);
            if checkpoint.kept.is_some_and(|kept| Some(kept.at.to_bits()) == at) {
                continue;
            }
            return if PathBuf::from(&path).starts_with(folder) {
                Ok(checkpoint.step)
            } else {
                let folder = folder.display();
                Err(StepError::Refused(format!("the job has saved to {path}, not to {folder}")))
            };
        }
    }

    /// Waits until checkpoint request `number` is answered.
    async fn answer(
        &self,
        id: &str,
        reach: &Reach,
        route: &Route,
        number: u64,
    ) -> Result<Checkpoint, StepError> {
        loop {
            match endpoint::read(reach, std::slice::from_ref(route)).await {
                Ok((_, progress)) if progress.checkpoint.answered >= number => {
                    return Ok(progress.checkpoint);
                }
                Ok(_) => {}
                // A job that is saving may answer late; one that has ended never does.
                Err(error) if error.may_pass() => drop(self.running(id).await?),
                Err(error) => return Err(error.into()),
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Pauses a container.
    pub async fn freeze(&self, id: &str) -> Result<(), StepError> {
        let mut tries = 0;
        loop {
            let paused = self.runtime.pause(id).await;
            // The container's state counts, not the engine's answer.
            if self.running(id).await?.state.paused {
                return Ok(());
            }
            tries += 1;
            if tries == MAX_PAUSES {
                paused.map_err(failed("pause the container"))?;
                return Err(StepError::Refused(
                    "the container is not paused, although the engine reports success".to_owned(),
                ));
            }
            sleep(POLL_INTERVAL * tries).await;
        }
    }

    async fn start(&self, plan: &Move) -> Result<(), StepError> {
        let name = plan.successor();
        let started = self.runtime.start(&name).await;
        started.map_err(failed("start the container on the target"))
    }

    /// Waits for the first report of the container on the target.
    async fn prove(&self, plan: &Move) -> Result<(), StepError> {
        let name = plan.successor();
        let mut reach = None;
        loop {
            let Some(container) = self.inspect(&name).await? else {
                return Err(StepError::Refused("the container on the target is gone".to_owned()));
            };
            let labels = labels(&container)?;
            if container.pid.is_none() {
                return Err(StepError::Refused(ended(&container)));
            }
            let routes = endpoint::routes(&self.proc, &container, &labels.endpoint);
            let reach = reach.get_or_insert_with(|| Reach::new(&self.proc, &container));
            // It is still starting as long as it does not answer.
            if let Ok((_, progress)) = endpoint::read(reach, &routes).await
                && standing(&progress).goes_on_from(plan.saved)?
            {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn running(&self, id: &str) -> Result<Container, StepError> {
        let found = self.inspect(id).await?.filter(|found| found.state.running);
        found.ok_or_else(|| StepError::Refused("its container has ended".to_owned()))
    }

    async fn inspect(&self, name: &str) -> Result<Option<Container>, StepError> {
        self.runtime.inspect(name).await.map_err(failed("describe the container"))
    }
}

fn failed(what: &'static str) -> impl FnOnce(RuntimeError) -> StepError {
    move |error| StepError::Engine(what, Box::new(error))
}

fn labels(container: &Container) -> Result<Labels, StepError> {
    Labels::parse(&container.labels).map_err(|error| StepError::Refused(error.to_string()))
}

fn ended(container: &Container) -> String {
    let code =
        container.state.exit_code.map_or(String::new(), |code| format!(", with exit code {code}"));
    format!("the container on the target ended before its first report{code}")
}

/// How far a job has come, by its own report.
fn standing(progress: &Progress) -> Standing {
    Standing {
        failed: progress.state == State::Failed,
        losses: progress.eval.count,
        step: progress.step,
    }
}

#[cfg(test)]
mod tests;
