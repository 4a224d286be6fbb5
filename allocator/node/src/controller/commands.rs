//! Carries out orders.
//!
//! An order that writes a limit is answered when the limit is in force, any other one as soon as
//! the state has changed. One that opts in an unknown container waits for its description
//! (`adoptions`). Every order is recorded in the audit log, refused ones included.

use std::fmt;

use paceline_api::audit::Entry;
use paceline_api::live::order::Guard;
use paceline_api::live::snapshot::Standing;
use paceline_api::live::{Answer, Command, Order, Refusal};
use paceline_api::plain::plain;
use paceline_policy::limiter::{Change, Setting, Why};
use paceline_policy::{Event, JobId, Share};
use paceline_runtime::{Container, short};
use paceline_wire::Targets;

use super::adoptions::Described;
use super::write_queue::{Action, WriteQueue, WriteRequest};
use super::{Controller, targets};

/// Carries out an order with its argument, and returns the answer.
pub type Hook = Box<dyn FnMut(&str) -> Answer + Send>;

/// Handlers of orders that do not concern the controller's own state.
#[derive(Default)]
pub struct Hooks {
    /// Receives the filter of [`Command::LogLevel`].
    pub log_level: Option<Hook>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// An order that is answered once a write is done.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) order: Order,
    /// The answer if the write succeeds.
    pub(super) done: String,
}

/// How an order is answered.
enum Served {
    /// At once, with this sentence.
    Done(String),
    /// With this sentence, once the write has succeeded.
    AfterWrite(Box<WriteRequest>, String),
    /// Once the engine has described the container that has this name.
    AfterDescription(String),
}

impl Controller {
    /// Carries out an order, or holds it back until a container is described that it may be about.
    pub(super) fn serve(&mut self, order: Order) {
        if self.must_wait(&order.command) {
            self.adoptions.hold_back(order);
            return;
        }
        let served = match order.command.clone() {
            Command::Manage { name } => self.manage(&name),
            Command::Release { name } => self.release(&name),
            Command::Pin { name, share } => self.pin(&name, share),
            Command::Set { name, targets } => self.set_targets(&name, targets),
            Command::Guard { name, guard, on } => self.guard(&name, guard, on),
            Command::LogLevel { filter } => {
                let refusal = "cannot change the log level: this run has no such setting";
                call(self.hooks.log_level.as_mut(), &filter, refusal)
            }
        };
        self.conclude(order, served);
    }

    /// Whether an order must be held back.
    fn must_wait(&self, command: &Command) -> bool {
        let (name, opts_in) = match command {
            Command::Manage { name } => (name, true),
            Command::Release { name }
            | Command::Pin { name, .. }
            | Command::Set { name, .. }
            | Command::Guard { name, .. } => (name, false),
            Command::LogLevel { .. } => return false,
        };
        // A container that is being described may also be called so. One that opts in asks for it itself.
        let is_unknown = || matches!(self.inventory.find(name), Err(Refusal::Unknown(_)));
        self.adoptions.must_wait(name, || !opts_in && is_unknown())
    }

    /// Takes in the description of a container that an order has named, and carries out the orders that
    /// have waited for it.
    pub(super) fn described_for_order(&mut self, described: Described) {
        if let Some(order) = self.adoptions.take(&described) {
            let served = described.found.and_then(|container| self.manage_described(&container));
            self.conclude(order, served);
        }
        for order in self.adoptions.take_held_back() {
            self.serve(order);
        }
    }

    /// Refuses the orders that wait for a description.
    pub(super) fn refuse_waiting_orders(&mut self) {
        for order in self.adoptions.give_up() {
            self.answer(order, Err(Refusal::Ending));
        }
    }

    /// Answers an order, now or once what it waits for is done.
    fn conclude(&mut self, order: Order, served: Result<Served, Refusal>) {
        match served {
            Ok(Served::Done(done)) => self.answer(order, Ok(done)),
            Err(refusal) => self.answer(order, Err(refusal)),
            Ok(Served::AfterDescription(name)) => {
                self.adoptions.begin(self.inventory.runtime().clone(), name, order);
            }
            Ok(Served::AfterWrite(request, done)) => match &mut self.writes {
                Some(writes) => {
                    let order = Some(Pending { order, done });
                    let overtaken = writes.preempt(WriteRequest { order, ..*request });
                    for Pending { order, .. } in overtaken {
                        let why = "another order came before it was done";
                        self.answer(order, Err(Refusal::Failed(why.to_owned())));
                    }
                }
                None => self.answer(order, Ok(format!("{done} (dry run: nothing is written)"))),
            },
        }
        self.publish();
    }

    /// Answers an order and records it.
    pub(super) fn answer(&mut self, order: Order, answer: Answer) {
        let Order { command, who, answer: to } = order;
        let done = answer.is_ok();
        let outcome = answer.as_ref().map_or_else(ToString::to_string, Clone::clone);
        let order = plain(&command.to_string());
        tracing::info!(uid = who.uid, done, "order to {order}: {outcome}");
        self.recorder.write(&Entry::Ordered { who, command, outcome, done });
        // The client may have disconnected already.
        drop(to.send(answer));
    }

    fn manage(&mut self, name: &str) -> Result<Served, Refusal> {
        let id = match self.inventory.find(name) {
            Err(Refusal::Unknown(_)) => return Ok(Served::AfterDescription(name.to_owned())),
            found => found?,
        };
        let Some(candidate) = self.inventory.get(&id) else {
            return Err(Refusal::Unknown(name.to_owned()));
        };
        let (job, before) = (candidate.job().clone(), candidate.standing);
        match before {
            Standing::Managed => Ok(Served::Done(format!("job {job} is already managed"))),
            Standing::Ending => Err(is_ending(&job)),
            Standing::Waiting => Ok(Served::Done(watched(&job))),
            Standing::Moving => Err(is_moving(&job)),
            Standing::Released => {
                if let Some(writes) = &self.writes {
                    writes.actuator().manage(&id);
                }
                self.inventory.take_back(&id);
                Ok(Served::Done(watched(&job)))
            }
            Standing::Pinned => {
                self.apply_event(Event::Gone(job.clone()));
                self.inventory.take_back(&id);
                self.decide_soon();
                let done = format!("job {job} is managed again");
                Ok(Served::AfterWrite(Box::new(restore(id, Some(job))), done))
            }
        }
    }

    /// Opts in a container that lacks the label, unless it has become known meanwhile.
    fn manage_described(&mut self, container: &Container) -> Result<Served, Refusal> {
        match self.manage(&container.id)? {
            Served::AfterDescription(_) => {
                let job = self.inventory.adopt(container)?;
                self.owned_by(container);
                Ok(Served::Done(format!(
                    "container {job} is watched: it is managed as soon as its endpoint answers"
                )))
            }
            served @ (Served::Done(_) | Served::AfterWrite(..)) => Ok(served),
        }
    }

    fn release(&mut self, name: &str) -> Result<Served, Refusal> {
        let id = self.inventory.find(name)?;
        self.is_here(&id)?;
        let candidate = self.inventory.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        if candidate.standing == Standing::Released {
            return Ok(self.release_again(id, job));
        }
        candidate.release();
        candidate.written = None;
        self.apply_event(Event::Gone(job.clone()));
        self.inventory.disown(&id);
        self.decide_soon();
        let done = format!("job {job} is released, its original limits are restored");
        Ok(Served::AfterWrite(Box::new(restore(id, Some(job))), done))
    }

    /// A released job still has limits of ours if restoring them has failed.
    fn release_again(&self, id: String, job: JobId) -> Served {
        let is_limited = |writes: &WriteQueue| writes.actuator().pending().contains(&id);
        if !self.writes.as_ref().is_some_and(is_limited) {
            return Served::Done(format!("job {job} is already released"));
        }
        let done = format!("job {job} was released before, its original limits are restored now");
        Served::AfterWrite(Box::new(restore(id, Some(job))), done)
    }

    fn pin(&mut self, name: &str, share: Share) -> Result<Served, Refusal> {
        let id = self.inventory.find(name)?;
        self.is_here(&id)?;
        let machine = self.inventory.machine().clone();
        let candidate = self.inventory.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        if let Some(why) = candidate.outside() {
            return Err(Refusal::Impossible(format!("cannot pin job {job}: {why}")));
        }
        if let Some(why) = candidate.beyond_its_pod(share, &machine) {
            return Err(Refusal::Impossible(format!("cannot pin job {job}: {why}")));
        }
        match candidate.standing {
            Standing::Moving => return Err(is_moving(&job)),
            Standing::Ending => return Err(is_ending(&job)),
            Standing::Managed | Standing::Pinned => candidate.standing = Standing::Pinned,
            // Its endpoint need not answer for a pin.
            Standing::Waiting | Standing::Released => {
                self.inventory.take_back(&id);
                let appeared =
                    self.inventory.get(&id).map(|one| one.appear(&machine, Standing::Pinned));
                self.ingest(appeared.unwrap_or_default());
            }
        }
        self.apply_event(Event::Pinned(job.clone(), share));
        let done = format!("job {job} is held at {share} of the node");
        let own = self.step_but(Event::Tick, Some(&job));
        self.decide_soon();
        let change = own.or_else(|| self.rewrite_pin(&id, &job));
        Ok(match change {
            Some(change) => {
                let (what, order) = (Action::Set(change), None);
                Served::AfterWrite(
                    Box::new(WriteRequest { container: id, job: Some(job), what, order }),
                    done,
                )
            }
            None => Served::Done(done),
        })
    }

    /// Pins containers that were started again, as an order has asked before.
    pub(super) fn pin_again(&mut self, pinned: Vec<(String, Share)>) {
        for (container, share) in pinned {
            match self.pin(&container, share) {
                Ok(Served::AfterWrite(request, done)) => {
                    tracing::info!("{done} after its restart, too");
                    if let Some(writes) = &mut self.writes {
                        writes.push_back(*request);
                    }
                }
                Ok(_) => {}
                Err(refusal) => tracing::warn!("cannot pin a restarted container again: {refusal}"),
            }
        }
    }

    /// Refuses an order that is not possible while the job is moved to another node.
    fn is_here(&mut self, container: &str) -> Result<(), Refusal> {
        let Some(candidate) = self.inventory.get(container) else { return Ok(()) };
        let job = candidate.job().clone();
        let moving = self.moves.as_ref().is_some_and(|moves| moves.has(&job));
        if moving { Err(is_moving(&job)) } else { Ok(()) }
    }

    /// The limit that a pinned job has already, to be written again if another write to its container
    /// is under way. Otherwise that write's value would be in force after the order is answered.
    fn rewrite_pin(&self, container: &str, job: &JobId) -> Option<Change> {
        self.writes.as_ref().filter(|writes| writes.has_to_do_with(container))?;
        let now = Setting::Cap(self.engine.status(job)?.in_force.cap);
        Some(Change { job: job.clone(), from: now, to: now, why: Why::Pinned })
    }

    fn set_targets(&mut self, name: &str, new: Targets) -> Result<Served, Refusal> {
        let id = self.inventory.find(name)?;
        let candidate = self.inventory.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        let status = self.engine.status(&job);
        let own = (candidate.own_targets(), candidate.labels.direction.unwrap_or_default());
        let (before, direction) = status.map_or(own, |now| (now.targets, now.direction));
        targets::check(new, before, direction)?;
        let event = candidate.set(new);
        self.apply_event(event);
        self.decide_soon();
        Ok(Served::Done(format!("job {job}: {}", targets::in_words(new))))
    }

    fn guard(&mut self, name: &str, guard: Guard, on: bool) -> Result<Served, Refusal> {
        let id = self.inventory.find(name)?;
        let candidate = self.inventory.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        let event = candidate.switch(guard, on);
        self.apply_event(event);
        let (guard, on) = (format!("{guard:?}").to_lowercase(), if on { "on" } else { "off" });
        Ok(Served::Done(format!("job {job}: guard {guard} is {on}")))
    }
}

fn is_moving(job: &JobId) -> Refusal {
    Refusal::Failed(format!("job {job} is being moved to another node; try again in a moment"))
}

fn is_ending(job: &JobId) -> Refusal {
    Refusal::Failed(format!("job {job} has reached its objective and is being ended"))
}

fn watched(job: &JobId) -> String {
    format!("job {job} is watched: it is managed as soon as its endpoint answers")
}

pub(super) fn restore(container: String, job: Option<JobId>) -> WriteRequest {
    WriteRequest { container, job, what: Action::Restore, order: None }
}

fn call(hook: Option<&mut Hook>, argument: &str, otherwise: &str) -> Result<Served, Refusal> {
    let hook = hook.ok_or_else(|| Refusal::Impossible(otherwise.to_owned()))?;
    hook(argument).map(Served::Done)
}

/// The name to show for a container: its job's name, or its short id if it has no job.
pub(super) fn called(job: Option<&JobId>, container: &str) -> String {
    job.map_or_else(|| short(container).to_owned(), ToString::to_string)
}
