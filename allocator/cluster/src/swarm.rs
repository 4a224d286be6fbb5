//! The machines and services of a Swarm, as Docker lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::query_parameters::{ListServicesOptions, ListTasksOptions};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::engine::by_service;
use super::lost::{self, Lost};
use super::member::{Member, members};
use super::replacement;

/// How often Docker is asked.
const ASK_INTERVAL: Duration = Duration::from_secs(2);
/// The longest wait for Docker's answer.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of a Swarm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swarm {
    /// Its machines.
    pub members: Vec<Member>,
    /// Why jobs cannot be moved, by the ids of their services. Movable jobs have no entry.
    pub obstacles: BTreeMap<String, String>,
    /// Jobs that were lost with their machines, by the ids of their services.
    pub lost: BTreeMap<String, Lost>,
}

/// Reads the state once. Fails if this Docker does not manage a Swarm.
pub async fn read(docker: &Docker) -> Result<Swarm, EngineError> {
    let members = members(docker).await?;
    // Tasks come after services, so that they show changes of their services.
    let services = docker.list_services(None::<ListServicesOptions>).await?;
    let tasks = docker.list_tasks(None::<ListTasksOptions>).await?;
    let of_service = by_service(&tasks);
    let ids: BTreeSet<&str> = services.iter().filter_map(|service| service.id.as_deref()).collect();
    let mut swarm = Swarm { members, ..Swarm::default() };
    for service in &services {
        let (Some(id), Some(spec)) = (&service.id, &service.spec) else { continue };
        if let Some(why) = replacement::obstacle(spec) {
            swarm.obstacles.insert(id.clone(), why);
        }
        let tasks = of_service.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        if let Some(lost) = lost::find(service, tasks, |id| ids.contains(id)) {
            swarm.lost.insert(id.clone(), lost);
        }
    }
    Ok(swarm)
}

/// Follows the state of a Swarm.
#[derive(Debug)]
pub(super) struct Watch {
    latest: watch::Receiver<Swarm>,
    _task: AbortOnDropHandle<()>,
}

impl Watch {
    /// Follows the Swarm, starting from the state `first`. While Docker does not answer, the
    /// last state stays.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(docker: Docker, first: Swarm) -> Self {
        let (sender, latest) = watch::channel(first);
        let task = tokio::spawn(async move {
            let mut outage = Outage::of("the Swarm");
            loop {
                sleep(ASK_INTERVAL).await;
                let Some(swarm) = outage.answer(read(&docker)).await else { continue };
                sender.send_if_modified(|before| {
                    let news = *before != swarm;
                    *before = swarm;
                    news
                });
            }
        });
        Self { latest, _task: AbortOnDropHandle::new(task) }
    }

    /// The latest state.
    pub(super) fn now(&self) -> Swarm {
        self.latest.borrow().clone()
    }

    /// A receiver of the latest state.
    pub(super) fn latest(&self) -> watch::Receiver<Swarm> {
        self.latest.clone()
    }
}

/// Whether Docker answers about something. An outage is logged once, and so is its end.
#[derive(Debug)]
pub(super) struct Outage {
    of: &'static str,
    lasts: bool,
}

impl Outage {
    /// Docker has answered about `of` so far.
    pub(super) fn of(of: &'static str) -> Self {
        Self { of, lasts: false }
    }

    /// Docker's answer; `None` if it fails or takes too long.
    pub(super) async fn answer<T>(
        &mut self,
        asked: impl Future<Output = Result<T, EngineError>>,
    ) -> Option<T> {
        let answer = match timeout(ENGINE_TIMEOUT, asked).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("no answer".to_owned()),
        };
        let (of, lasted) = (self.of, std::mem::replace(&mut self.lasts, answer.is_err()));
        match &answer {
            Ok(_) if lasted => info!("Docker answers again about {of}"),
            Err(why) if !lasted => {
                warn!("cannot read {of} from Docker: {why}; using the last known state");
            }
            Ok(_) | Err(_) => {}
        }
        answer.ok()
    }
}
