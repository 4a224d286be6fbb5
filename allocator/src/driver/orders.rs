//! What people order, carried out at once.
//!
//! An order that writes a limit is answered when the limit is in force; any other one as soon as
//! the state has changed. Everything that was ordered, well or not, stands in the audit log.

use std::fmt;
use std::time::Duration;

use paceline_policy::limiter::{Change, Setting, Why};
use paceline_policy::{Event, JobId, Share};
use paceline_wire::Targets;

use super::hands::{Deed, What};
use super::{Driver, short, targets};
use crate::audit::Entry;
use crate::live::order::Guard;
use crate::live::snapshot::Standing;
use crate::live::{Answer, Command, Order, Refusal};
use crate::observe::container;

/// How long the engine may take to describe a container that somebody names.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes an argument, and says what came of it.
pub type Hook = Box<dyn FnMut(&str) -> Answer + Send>;

/// Orders that are not the driver's own business.
#[derive(Default)]
pub struct Hooks {
    /// Given the filter of [`Command::LogLevel`].
    pub log_level: Option<Hook>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// An order that is answered once a deed is done.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) order: Order,
    /// The answer, if all goes well.
    pub(super) done: String,
}

/// How an order is carried out.
enum Course {
    /// It is.
    Done(String),
    /// It will be when this is done, and then this is the answer.
    Once(Box<Deed>, String),
}

impl Driver {
    /// Carries an order out.
    pub(super) async fn serve(&mut self, order: Order) {
        let course = match order.command.clone() {
            Command::Manage { name } => self.manage(&name).await,
            Command::Release { name } => self.release(&name),
            Command::Pin { name, share } => self.pin(&name, share),
            Command::Set { name, targets } => self.set_targets(&name, targets),
            Command::Guard { name, guard, on } => self.guard(&name, guard, on),
            Command::LogLevel { filter } => {
                ask(self.hooks.log_level.as_mut(), &filter, "its log's level cannot be changed")
            }
        };
        match course {
            Ok(Course::Done(done)) => self.answer(order, Ok(done)),
            Err(refusal) => self.answer(order, Err(refusal)),
            Ok(Course::Once(deed, done)) => match &mut self.hands {
                Some(hands) => {
                    let order = Some(Pending { order, done });
                    let overtaken = hands.first(Deed { order, ..*deed });
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

    /// Says what came of an order, and keeps it.
    pub(super) fn answer(&mut self, order: Order, answer: Answer) {
        let Order { command, who, answer: to } = order;
        let done = answer.is_ok();
        let outcome = answer.as_ref().map_or_else(ToString::to_string, Clone::clone);
        tracing::info!(uid = who.uid, done, "ordered: {command:?}: {outcome}");
        self.write(&Entry::Ordered { who, command, outcome, done });
        // Who has ordered it may be gone already.
        drop(to.send(answer));
    }

    async fn manage(&mut self, name: &str) -> Result<Course, Refusal> {
        let id = match self.roster.find(name) {
            Err(Refusal::Unknown(_)) => return self.adopt(name).await,
            found => found?,
        };
        let Some(candidate) = self.roster.get(&id) else {
            return Err(Refusal::Unknown(name.to_owned()));
        };
        let (job, before) = (candidate.job().clone(), candidate.standing);
        match before {
            Standing::Managed => Ok(Course::Done(format!("job {job} is managed already"))),
            Standing::Ending => Err(Refusal::Impossible(format!(
                "job {job} has reached its objective and is on its way to its end"
            ))),
            Standing::Waiting => Ok(Course::Done(watched(&job))),
            Standing::Moving => Err(on_its_way(&job)),
            Standing::Released => {
                if let Some(hands) = &self.hands {
                    hands.actuator().manage(&id);
                }
                self.roster.take_back(&id);
                Ok(Course::Done(watched(&job)))
            }
            Standing::Pinned => {
                self.tell(Event::Gone(job.clone()));
                self.roster.take_back(&id);
                self.hurry();
                let done = format!("job {job} is managed again");
                Ok(Course::Once(Box::new(restore(id, Some(job))), done))
            }
        }
    }

    /// Opts a container in that lacks the label.
    async fn adopt(&mut self, name: &str) -> Result<Course, Refusal> {
        let found = container::inspect(self.roster.docker(), name);
        let found = tokio::time::timeout(PATIENCE, found)
            .await
            .map_err(|_| Refusal::Failed("the engine does not answer in time".to_owned()))?;
        let container = match found {
            Ok(Some(container)) => container,
            Ok(None) => return Err(Refusal::Unknown(name.to_owned())),
            Err(error) if is_ambiguous(&error) => return Err(Refusal::Ambiguous(name.to_owned())),
            Err(error) => return Err(Refusal::Failed(format!("the engine failed: {error}"))),
        };
        if container.pid.is_none() {
            let name = container.name;
            return Err(Refusal::Impossible(format!("container {name} does not run")));
        }
        let job = self.roster.adopt(&container)?;
        Ok(Course::Done(format!(
            "container {job} is watched: it is managed as soon as its endpoint answers"
        )))
    }

    fn release(&mut self, name: &str) -> Result<Course, Refusal> {
        let id = self.roster.find(name)?;
        self.is_here(&id)?;
        let candidate = self.roster.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        if candidate.standing == Standing::Released {
            return Ok(Course::Done(format!("job {job} is left alone already")));
        }
        candidate.release();
        candidate.written = None;
        self.tell(Event::Gone(job.clone()));
        self.roster.disown(&id);
        self.hurry();
        let done = format!("job {job} is left alone, its limits are what they were");
        Ok(Course::Once(Box::new(restore(id, Some(job))), done))
    }

    fn pin(&mut self, name: &str, share: Share) -> Result<Course, Refusal> {
        let id = self.roster.find(name)?;
        self.is_here(&id)?;
        let machine = self.roster.machine().clone();
        let candidate = self.roster.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        if let Some(why) = candidate.outside() {
            return Err(Refusal::Impossible(format!("job {job} cannot be held: {why}")));
        }
        match candidate.standing {
            Standing::Moving => return Err(on_its_way(&job)),
            Standing::Ending => {
                return Err(Refusal::Impossible(format!(
                    "job {job} has reached its objective and is on its way to its end"
                )));
            }
            Standing::Managed | Standing::Pinned => candidate.standing = Standing::Pinned,
            // It need not answer to be held.
            Standing::Waiting | Standing::Released => {
                self.roster.take_back(&id);
                let appeared =
                    self.roster.get(&id).map(|one| one.appear(&machine, Standing::Pinned));
                self.take_in(appeared.unwrap_or_default());
            }
        }
        self.tell(Event::Pinned(job.clone(), share));
        let done = format!("job {job} is held at {share} of the node");
        let (own, others): (Vec<Change>, Vec<Change>) =
            self.judge(Event::Look).into_iter().partition(|change| change.job == job);
        self.apply(others);
        self.hurry();
        let change = own.into_iter().next().or_else(|| self.anew(&id, &job));
        Ok(match change {
            Some(change) => {
                let (what, order) = (What::Set(change), None);
                Course::Once(Box::new(Deed { container: id, job: Some(job), what, order }), done)
            }
            None => Course::Done(done),
        })
    }

    /// Refuses what is not possible while a job is on its way to another node.
    fn is_here(&mut self, container: &str) -> Result<(), Refusal> {
        let Some(candidate) = self.roster.get(container) else { return Ok(()) };
        let job = candidate.job().clone();
        let moving = self.moves.as_ref().is_some_and(|moves| moves.has(&job));
        if moving { Err(on_its_way(&job)) } else { Ok(()) }
    }

    /// What a pinned job has already, to be written all the same: another value is on its way to
    /// the container, and would be in force after the order is answered.
    fn anew(&self, container: &str, job: &JobId) -> Option<Change> {
        self.hands.as_ref().filter(|hands| hands.has_to_do_with(container))?;
        let now = Setting::Cap(self.engine.account(job)?.in_force.cap);
        Some(Change { job: job.clone(), from: now, to: now, why: Why::Pinned })
    }

    fn set_targets(&mut self, name: &str, new: Targets) -> Result<Course, Refusal> {
        let id = self.roster.find(name)?;
        let candidate = self.roster.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        let account = self.engine.account(&job);
        let own = (candidate.own_targets(), candidate.labels.direction.unwrap_or_default());
        let (before, direction) = account.map_or(own, |now| (now.targets, now.direction));
        targets::check(new, before, direction)?;
        let event = candidate.set(new);
        self.tell(event);
        self.hurry();
        Ok(Course::Done(format!("job {job}: {}", targets::in_words(new))))
    }

    fn guard(&mut self, name: &str, guard: Guard, on: bool) -> Result<Course, Refusal> {
        let id = self.roster.find(name)?;
        let candidate = self.roster.get(&id).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        let job = candidate.job().clone();
        let event = candidate.switch(guard, on);
        self.tell(event);
        let (guard, on) = (format!("{guard:?}").to_lowercase(), if on { "on" } else { "off" });
        Ok(Course::Done(format!("job {job}: guard {guard} is {on}")))
    }
}

fn on_its_way(job: &JobId) -> Refusal {
    let words = format!("job {job} is on its way to another node: try again in a moment");
    Refusal::Impossible(words)
}

fn watched(job: &JobId) -> String {
    format!("job {job} is watched: it is managed as soon as its endpoint answers")
}

pub(super) fn restore(container: String, job: Option<JobId>) -> Deed {
    Deed { container, job, what: What::Restore, order: None }
}

fn ask(hook: Option<&mut Hook>, argument: &str, otherwise: &str) -> Result<Course, Refusal> {
    let hook = hook.ok_or_else(|| Refusal::Impossible(otherwise.to_owned()))?;
    hook(argument).map(Course::Done)
}

/// The engine says so of the beginning of several ids.
fn is_ambiguous(error: &bollard::errors::Error) -> bool {
    use bollard::errors::Error::DockerResponseServerError;
    matches!(error, DockerResponseServerError { status_code: 400, .. })
}

/// What a container without a job is called towards people.
pub(super) fn called(job: Option<&JobId>, container: &str) -> String {
    job.map_or_else(|| short(container).to_owned(), ToString::to_string)
}
