//! The steps of a move between machines of a Swarm. Docker's Swarm manager carries them out, or the
//! agents of the two machines where only their own Docker can.
//!
//! A job is one service with one task. Its successor is another service, placed on the target and
//! without a task until the source is frozen. The source's service is removed once the successor
//! has reported. A service is changed only if its version is the one that was read. The `name` of a
//! plan is the service's id here, which is unique forever.

mod journal;

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Service, ServiceSpec, Task};
use paceline_api::labels::MOVED_FROM;
use paceline_api::live::snapshot::JobView;
use paceline_node::migration::agent_actions::{AgentAction, Done};
use paceline_node::migration::moves::MigrationWorker;
use paceline_node::migration::procedure::Step;
use paceline_node::migration::{
    MigrationBackend, MigrationResult, Move, NewsSender, Settings, Standing, StepError,
    StepOutcome, execute,
};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::agent_client::{AgentClient, AskError, Connection};
use super::engine::{SwarmEngine, is_over, scale};
use super::replacement;
use super::swarm::Swarm;

/// How often Docker or an agent is asked while a step waits.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The services of a Swarm, and the agents of its machines.
#[derive(Clone, Debug)]
pub(super) struct Services {
    engine: SwarmEngine,
    client: AgentClient,
    swarm: watch::Receiver<Swarm>,
}

impl Services {
    pub(super) fn new(docker: Docker, client: AgentClient, swarm: watch::Receiver<Swarm>) -> Self {
        Self { engine: SwarmEngine::new(docker), client, swarm }
    }

    async fn create(&self, plan: &Move) -> Result<String, StepError> {
        let source = self.service(&plan.name).await?;
        let source = source.and_then(|service| service.spec).ok_or_else(ended)?;
        let spec = replacement::replacement_spec(source, plan)?;
        // An interrupted move may have left a successor.
        self.discard(plan).await?;
        let made = self.engine.create(spec).await;
        made.map_err(failed("create a service"))?.ok_or_else(|| {
            StepError::Refused("Docker returned no id for the new service".to_owned())
        })
    }

    async fn start(&self, plan: &Move) -> Result<(), StepError> {
        let id = self.successor(plan).await?.ok_or_else(gone)?;
        self.change(&id, |spec| scale(spec, 1)).await
    }

    /// Waits for the first report of the task on the target.
    async fn prove(&self, plan: &Move) -> Result<(), StepError> {
        let id = self.successor(plan).await?.ok_or_else(gone)?;
        let mut connection = None;
        loop {
            if let Some(why) = self.tasks(&id).await?.iter().find_map(over) {
                return Err(StepError::Refused(why));
            }
            // Until the agent knows the task, it is starting.
            if let Ok(Some(view)) = self.view(&mut connection, plan, &id).await
                && progress(&view).goes_on_from(plan.saved)?
            {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The job of a service, as the target's agent shows it.
    async fn view(
        &self,
        connection: &mut Option<Connection>,
        plan: &Move,
        id: &str,
    ) -> Result<Option<JobView>, StepError> {
        let mut kept = match connection.take() {
            Some(kept) => kept,
            None => self.connection(&plan.to).await?,
        };
        let said = self.client.status(&mut kept).await.map_err(|error| unasked(&error))?;
        *connection = Some(kept);
        let of_service = |view: &JobView| view.task.as_ref().is_some_and(|task| task.service == id);
        Ok(said.jobs.into_iter().find(of_service))
    }

    async fn retire(&self, plan: &Move) -> Result<StepOutcome, StepError> {
        if self.service(&plan.name).await?.is_none() {
            return Ok(StepOutcome::None);
        }
        let successor = self.successor(plan).await?;
        let goes_on = match &successor {
            Some(id) => self.runs(id).await?,
            None => false,
        };
        if !goes_on {
            return Ok(StepOutcome::Refuted("the task on the target is gone".to_owned()));
        }
        // Docker alone would let the task run on for a moment, and save once more.
        let done = self.order(&plan.from, AgentAction::GiveUp, &plan.source).await?;
        if let Some(why) = done.kept {
            return Ok(StepOutcome::Refuted(why));
        }
        self.remove(&plan.name).await.map(|()| StepOutcome::None)
    }

    /// Makes the successor an ordinary service.
    async fn settle(&self, plan: &Move) -> Result<(), StepError> {
        let Some(id) = self.successor(plan).await? else { return Ok(()) };
        let strip = |spec: &mut ServiceSpec| {
            spec.labels.get_or_insert_default().remove(MOVED_FROM);
        };
        self.change(&id, strip).await
    }

    /// Removes the successor; on return none of its tasks runs. Its service goes last, so that
    /// another try finds what to wait for.
    async fn discard(&self, plan: &Move) -> Result<(), StepError> {
        let Some(id) = self.successor(plan).await? else { return Ok(()) };
        if self.runs(&id).await? {
            // Docker alone would let the task run on for a while.
            self.order(&plan.to, AgentAction::Discard, &id).await?;
            self.change(&id, |spec| scale(spec, 0)).await?;
        }
        while self.runs(&id).await? {
            sleep(POLL_INTERVAL).await;
        }
        self.remove(&id).await
    }

    /// Whether Docker lists a task of the service that has not ended.
    async fn runs(&self, service: &str) -> Result<bool, StepError> {
        Ok(self.tasks(service).await?.iter().any(|task| over(task).is_none()))
    }

    /// The id of the service that was created for a move.
    async fn successor(&self, plan: &Move) -> Result<Option<String>, StepError> {
        let of = self.engine.labelled(&format!("{MOVED_FROM}={}", plan.name)).await;
        let of = of.map_err(failed("list services"))?;
        Ok(of.into_iter().next().and_then(|service| service.id))
    }

    async fn service(&self, id: &str) -> Result<Option<Service>, StepError> {
        self.engine.service(id).await.map_err(failed("describe the service"))
    }

    async fn tasks(&self, service: &str) -> Result<Vec<Task>, StepError> {
        self.engine.tasks_of(service).await.map_err(failed("list tasks"))
    }

    async fn remove(&self, id: &str) -> Result<(), StepError> {
        self.engine.remove(id).await.map_err(failed("remove the service"))
    }

    async fn change(
        &self,
        id: &str,
        change: impl Fn(&mut ServiceSpec) + Sync,
    ) -> Result<(), StepError> {
        self.engine.change(id, change).await.map_err(failed("change the service"))
    }

    async fn order(
        &self,
        node: &str,
        order: AgentAction,
        container: &str,
    ) -> Result<Done, StepError> {
        let mut connection = self.connection(node).await?;
        self.client.order(&mut connection, order, container).await.map_err(|error| unasked(&error))
    }

    async fn connection(&self, node: &str) -> Result<Connection, StepError> {
        let address = {
            let swarm = self.swarm.borrow();
            let member = swarm.members.iter().find(|member| member.name == node);
            member.and_then(|member| member.address.clone())
        };
        let unknown = || StepError::Refused(format!("the address of {node} is not known"));
        self.client
            .connect(node, &address.ok_or_else(unknown)?)
            .await
            .map_err(|error| unasked(&error))
    }
}

impl MigrationBackend for Services {
    async fn carry_out(&self, step: Step, plan: &Move) -> Result<StepOutcome, StepError> {
        let (from, source) = (plan.from.as_str(), plan.source.as_str());
        match step {
            Step::Create => self.create(plan).await.map(StepOutcome::Made),
            Step::Save => self
                .order(from, AgentAction::Save, source)
                .await
                .map(|done| StepOutcome::Saved(done.step)),
            Step::Pause => {
                self.order(from, AgentAction::Freeze, source).await.map(|_| StepOutcome::None)
            }
            Step::Start => self.start(plan).await.map(|()| StepOutcome::None),
            Step::Prove => self.prove(plan).await.map(|()| StepOutcome::None),
            Step::Retire => self.retire(plan).await,
            Step::Rename => self.settle(plan).await.map(|()| StepOutcome::None),
            Step::Discard => self.discard(plan).await.map(|()| StepOutcome::None),
            Step::Resume => {
                self.order(from, AgentAction::Thaw, source).await.map(|_| StepOutcome::None)
            }
        }
    }
}

/// Moves between machines. Docker keeps their journal, on the services.
#[derive(Debug)]
pub struct SwarmMigrationWorker {
    services: Services,
    settings: Settings,
}

impl SwarmMigrationWorker {
    pub(super) fn new(services: Services, settings: Settings) -> Self {
        Self { services, settings }
    }

    pub(super) fn services(&self) -> &Services {
        &self.services
    }
}

impl MigrationWorker for SwarmMigrationWorker {
    async fn execute(
        &self,
        plan: Move,
        ending: CancellationToken,
        tell: NewsSender,
    ) -> MigrationResult {
        let within = Duration::from_secs_f64(self.settings.within);
        execute(plan, &self.services, &self.services, (within, &ending), &tell).await
    }
}

fn failed(what: &'static str) -> impl FnOnce(EngineError) -> StepError {
    move |error| StepError::Engine(what, Box::new(error))
}

fn unasked(error: &AskError) -> StepError {
    StepError::Refused(error.to_string())
}

fn ended() -> StepError {
    StepError::Refused("its service is gone".to_owned())
}

fn gone() -> StepError {
    StepError::Refused("the service on the target is gone".to_owned())
}

/// How a task ended, if it has.
fn over(task: &Task) -> Option<String> {
    let status = task.status.clone().unwrap_or_default();
    let state = status.state?;
    let said = status.err.or(status.message).unwrap_or_default();
    is_over(state).then(|| {
        format!("the task on the target ended before its first report, as {state}: {said}")
    })
}

/// A job's progress, as its agent reports it.
fn progress(view: &JobView) -> Standing {
    Standing {
        failed: view.state.as_deref() == Some("failed"),
        losses: view.counts.as_ref().map_or(0, |counts| counts.losses),
        step: view.step,
    }
}
