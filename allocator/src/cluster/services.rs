//! The steps of a move between machines of a Swarm: through its engine, and through the agents of the
//! two machines where only their own engines can do them.
//!
//! A job is one service with one task. Its successor is another service, placed on the target and
//! without a task until the source is frozen; the source's service is removed once the successor has
//! reported. A service is only ever changed as it was when it was read (the engine's version). What a
//! plan calls the name is the service's id here, which no other service will ever have.

mod journal;

use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Service, ServiceSpec, Task};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ask::{AskError, Asker, Line};
use super::engine::{SwarmEngine, is_over, scale};
use super::hands::{Done, MOVED_FROM, Order};
use super::swarm::Swarm;
use super::twin;
use crate::live::snapshot::JobView;
use crate::migrate::moves::Carriage;
use crate::migrate::procedure::Step;
use crate::migrate::{Carrier, CarryError, Fact, Move, Settings, Standing, Tell, Trip, carry};

/// How often the target is asked for what is waited for.
const POLL: Duration = Duration::from_millis(200);

/// The services of a Swarm, and the agents of its machines.
#[derive(Clone, Debug)]
pub(super) struct Services {
    engine: SwarmEngine,
    asker: Asker,
    swarm: watch::Receiver<Swarm>,
}

impl Services {
    pub(super) fn new(docker: Docker, asker: Asker, swarm: watch::Receiver<Swarm>) -> Self {
        Self { engine: SwarmEngine::new(docker), asker, swarm }
    }

    async fn create(&self, plan: &Move) -> Result<String, CarryError> {
        let source = self.service(&plan.name).await?;
        let source = source.and_then(|service| service.spec).ok_or_else(ended)?;
        let spec = twin::of(source, plan)?;
        // What a move that was cut short has left there.
        self.discard(plan).await?;
        let made = self.engine.create(spec).await;
        made.map_err(failed("make a service"))?.ok_or_else(|| {
            CarryError::Refused("the engine does not say what it calls the service".to_owned())
        })
    }

    async fn start(&self, plan: &Move) -> Result<(), CarryError> {
        let id = self.successor(plan).await?.ok_or_else(gone)?;
        self.change(&id, |spec| scale(spec, 1)).await
    }

    /// Waits for the first report of the task on the target.
    async fn prove(&self, plan: &Move) -> Result<(), CarryError> {
        let id = self.successor(plan).await?.ok_or_else(gone)?;
        let mut line = None;
        loop {
            if let Some(why) = self.tasks(&id).await?.iter().find_map(over) {
                return Err(CarryError::Refused(why));
            }
            // Until the agent knows of it, it is beginning.
            if let Ok(Some(view)) = self.seen(&mut line, plan, &id).await
                && progress(&view).goes_on_from(plan.saved)?
            {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    /// What the target's agent knows of a service's job.
    async fn seen(
        &self,
        line: &mut Option<Line>,
        plan: &Move,
        id: &str,
    ) -> Result<Option<JobView>, CarryError> {
        let mut kept = match line.take() {
            Some(kept) => kept,
            None => self.line(&plan.to).await?,
        };
        let said = self.asker.status(&mut kept).await.map_err(|error| unasked(&error))?;
        *line = Some(kept);
        let of_service = |view: &JobView| view.task.as_ref().is_some_and(|task| task.service == id);
        Ok(said.jobs.into_iter().find(of_service))
    }

    async fn retire(&self, plan: &Move) -> Result<Fact, CarryError> {
        if self.service(&plan.name).await?.is_none() {
            return Ok(Fact::None);
        }
        let successor = self.successor(plan).await?;
        let goes_on = match &successor {
            Some(id) => self.runs(id).await?,
            None => false,
        };
        if !goes_on {
            return Ok(Fact::Refuted("the task on the target is gone".to_owned()));
        }
        // The engine's own way to end a task lets it go on for a moment, and save once more.
        let done = self.order(&plan.from, Order::GiveUp, &plan.source).await?;
        if let Some(why) = done.kept {
            return Ok(Fact::Refuted(why));
        }
        self.remove(&plan.name).await.map(|()| Fact::None)
    }

    /// The successor is a service like any other from now on.
    async fn settle(&self, plan: &Move) -> Result<(), CarryError> {
        let Some(id) = self.successor(plan).await? else { return Ok(()) };
        let strip = |spec: &mut ServiceSpec| {
            spec.labels.get_or_insert_default().remove(MOVED_FROM);
        };
        self.change(&id, strip).await
    }

    /// Removes the successor; on return nothing of it runs. Its service goes last: whoever tries again
    /// must know what to wait for.
    async fn discard(&self, plan: &Move) -> Result<(), CarryError> {
        let Some(id) = self.successor(plan).await? else { return Ok(()) };
        if self.runs(&id).await? {
            // The engine's own way to end a task lets it go on for a while.
            self.order(&plan.to, Order::Discard, &id).await?;
            self.change(&id, |spec| scale(spec, 0)).await?;
        }
        while self.runs(&id).await? {
            sleep(POLL).await;
        }
        self.remove(&id).await
    }

    /// Whether a service has a task that has not come to its end, by the engine's word.
    async fn runs(&self, service: &str) -> Result<bool, CarryError> {
        Ok(self.tasks(service).await?.iter().any(|task| over(task).is_none()))
    }

    /// The id of the service that was made for a move.
    async fn successor(&self, plan: &Move) -> Result<Option<String>, CarryError> {
        let of = self.engine.labelled(&format!("{MOVED_FROM}={}", plan.name)).await;
        let of = of.map_err(failed("list services"))?;
        Ok(of.into_iter().next().and_then(|service| service.id))
    }

    async fn service(&self, id: &str) -> Result<Option<Service>, CarryError> {
        self.engine.service(id).await.map_err(failed("describe the service"))
    }

    async fn tasks(&self, service: &str) -> Result<Vec<Task>, CarryError> {
        self.engine.tasks_of(service).await.map_err(failed("list tasks"))
    }

    async fn remove(&self, id: &str) -> Result<(), CarryError> {
        self.engine.remove(id).await.map_err(failed("remove the service"))
    }

    async fn change(
        &self,
        id: &str,
        change: impl Fn(&mut ServiceSpec) + Sync,
    ) -> Result<(), CarryError> {
        self.engine.change(id, change).await.map_err(failed("change the service"))
    }

    async fn order(&self, node: &str, order: Order, container: &str) -> Result<Done, CarryError> {
        let mut line = self.line(node).await?;
        self.asker.order(&mut line, order, container).await.map_err(|error| unasked(&error))
    }

    async fn line(&self, node: &str) -> Result<Line, CarryError> {
        let address = {
            let swarm = self.swarm.borrow();
            let member = swarm.members.iter().find(|member| member.name == node);
            member.and_then(|member| member.address.clone())
        };
        let unknown = || CarryError::Refused(format!("the address of {node} is not known"));
        self.asker
            .connect(node, &address.ok_or_else(unknown)?)
            .await
            .map_err(|error| unasked(&error))
    }
}

impl Carrier for Services {
    async fn carry_out(&self, step: Step, plan: &Move) -> Result<Fact, CarryError> {
        let (from, source) = (plan.from.as_str(), plan.source.as_str());
        match step {
            Step::Create => self.create(plan).await.map(Fact::Made),
            Step::Save => {
                self.order(from, Order::Save, source).await.map(|done| Fact::Saved(done.step))
            }
            Step::Pause => self.order(from, Order::Freeze, source).await.map(|_| Fact::None),
            Step::Start => self.start(plan).await.map(|()| Fact::None),
            Step::Prove => self.prove(plan).await.map(|()| Fact::None),
            Step::Retire => self.retire(plan).await,
            Step::Rename => self.settle(plan).await.map(|()| Fact::None),
            Step::Discard => self.discard(plan).await.map(|()| Fact::None),
            Step::Resume => self.order(from, Order::Thaw, source).await.map(|_| Fact::None),
        }
    }
}

/// Moves between machines, which the engine itself keeps the record of.
#[derive(Debug)]
pub(crate) struct Between {
    services: Services,
    settings: Settings,
}

impl Between {
    pub(super) fn new(services: Services, settings: Settings) -> Self {
        Self { services, settings }
    }

    pub(super) fn services(&self) -> &Services {
        &self.services
    }
}

impl Carriage for Between {
    async fn carry(&self, plan: Move, ending: CancellationToken, tell: Tell) -> Trip {
        let within = Duration::from_secs_f64(self.settings.within);
        carry(plan, &self.services, &self.services, (within, &ending), &tell).await
    }
}

fn failed(what: &'static str) -> impl FnOnce(EngineError) -> CarryError {
    move |error| CarryError::Engine(what, Box::new(error))
}

fn unasked(error: &AskError) -> CarryError {
    CarryError::Refused(error.to_string())
}

fn ended() -> CarryError {
    CarryError::Refused("its service has gone".to_owned())
}

fn gone() -> CarryError {
    CarryError::Refused("the service on the target is gone".to_owned())
}

/// How a task has come to its end, if it has.
fn over(task: &Task) -> Option<String> {
    let status = task.status.clone().unwrap_or_default();
    let state = status.state?;
    let said = status.err.or(status.message).unwrap_or_default();
    is_over(state)
        .then(|| format!("the task on the target is {state} before its first report: {said}"))
}

/// How far a job has come, by its agent.
fn progress(view: &JobView) -> Standing {
    Standing {
        failed: view.state.as_deref() == Some("failed"),
        losses: view.counts.as_ref().map_or(0, |counts| counts.losses),
        step: view.step,
    }
}
