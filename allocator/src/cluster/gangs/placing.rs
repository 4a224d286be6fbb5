//! Distributed jobs in the hands of a policy: look, decide, and have the services changed.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Service, Task};
use futures_util::StreamExt;
use paceline_policy::{JobId, Moment};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::judge::{Asked, Judge, Mind};
use super::orders::{Order, Orders, What};
use super::seen::Seen;
use super::spec::{self, GANG};
use crate::audit::Entry;
use crate::clock::{Clock, unix_seconds};
use crate::cluster::engine::SwarmEngine;
use crate::cluster::swarm::{self, Member};
use crate::live::snapshot::GangView;

/// How often the engine is asked.
const PACE: Duration = Duration::from_secs(1);
/// It answers within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many services are changed at the same time.
const AT_ONCE: usize = 8;

/// The distributed jobs of a Swarm.
#[derive(Debug)]
pub(in crate::cluster) struct Placing {
    judge: Judge,
    engine: SwarmEngine,
    looks: watch::Receiver<Option<Arc<Look>>>,
    _looking: AbortOnDropHandle<()>,
    acting: JoinSet<Acted>,
    /// What could not be taken back, and is tried again: the policy believes it done.
    undone: Vec<Order>,
    /// Looks that began before this do not know what was done.
    since: Moment,
    dry_run: bool,
    before: Orders,
    jobs: Vec<GangView>,
}

/// What the engine said, and when it was asked.
#[derive(Debug)]
struct Look {
    at: Moment,
    members: Vec<Member>,
    services: Vec<Service>,
    tasks: Vec<Task>,
}

/// What has come of orders.
#[derive(Debug, Default)]
struct Acted {
    done: Vec<Order>,
    failed: Vec<Order>,
}

/// What has come of a turn.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Turn {
    /// What the policy was asked, if it was.
    pub(in crate::cluster) frame: Option<Asked>,
    /// What was done since the last one, and what jobs wait for now and did not before.
    pub(in crate::cluster) entries: Vec<Entry>,
}

impl Placing {
    /// Those of the Swarm that `docker` manages. A dry run changes nothing.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(in crate::cluster) fn new(mind: Mind, docker: Docker, clock: Clock, dry_run: bool) -> Self {
        let engine = SwarmEngine::new(docker.clone());
        let epoch = unix_seconds() - clock.now().seconds();
        let (told, looks) = watch::channel(None);
        let asked = engine.clone();
        let looking = tokio::spawn(async move {
            loop {
                let at = clock.now();
                match timeout(PATIENCE, look(at, &docker, &asked)).await {
                    Ok(Ok(look)) => drop(told.send_replace(Some(Arc::new(look)))),
                    Ok(Err(error)) => warn!("the engine does not tell of its services: {error}"),
                    Err(late) => warn!("the engine does not tell of its services: {late}"),
                }
                sleep(PACE).await;
            }
        });
        Self {
            judge: Judge::new(mind, epoch),
            engine,
            looks,
            _looking: AbortOnDropHandle::new(looking),
            acting: JoinSet::new(),
            undone: Vec::new(),
            since: Moment::default(),
            dry_run,
            before: Orders::default(),
            jobs: Vec::new(),
        }
    }

    /// Lets the policy decide on what is known now, unless its last answer is still being carried
    /// out.
    pub(in crate::cluster) fn turn(&mut self, now: Moment) -> Turn {
        let mut entries = Vec::new();
        while let Some(acted) = self.acting.try_join_next() {
            entries.extend(self.acted(acted));
            self.since = now;
        }
        let look = self.looks.borrow().clone().filter(|look| look.at >= self.since);
        let (true, Some(look)) = (self.acting.is_empty(), look) else {
            return Turn { frame: None, entries };
        };
        let seen = Seen::of(&look.members, &look.services, &look.tasks);
        let (orders, frame) = self.judge.decide(now, &seen);
        self.jobs = seen.jobs.iter().map(|(id, job)| job.view(id, self.why(&orders, id))).collect();
        entries.extend(self.told(&orders));
        let mut list = std::mem::take(&mut self.undone);
        list.extend(orders.list.iter().filter(|_| !self.dry_run).cloned());
        if !list.is_empty() {
            let engine = self.engine.clone();
            self.acting.spawn(async move { carry_out(&engine, list).await });
        }
        self.before = orders;
        Turn { frame, entries }
    }

    /// The jobs as they were when they were decided on last.
    pub(in crate::cluster) fn jobs(&self) -> &[GangView] {
        &self.jobs
    }

    /// Waits until what was decided is done; what that was.
    pub(in crate::cluster) async fn end(mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        while let Some(acted) = self.acting.join_next().await {
            entries.extend(self.acted(acted));
        }
        entries
    }

    /// Takes in what has come of orders.
    fn acted(&mut self, acted: Result<Acted, JoinError>) -> Vec<Entry> {
        let Acted { done, failed } = match acted {
            Ok(acted) => acted,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let is_place = |order: &Order| matches!(order.what, What::Place(..));
        if failed.iter().any(is_place) {
            self.judge.doubt();
        }
        self.undone = failed.into_iter().filter(|order| !is_place(order)).collect();
        done.into_iter().map(entry).collect()
    }

    /// Says what is decided and was not before; what jobs wait for is for the log, too.
    fn told(&self, orders: &Orders) -> Vec<Entry> {
        let dry = if self.dry_run { "dry run: " } else { "" };
        for order in orders.list.iter().filter(|order| !self.before.list.contains(order)) {
            let Order { job, task, what, why, .. } = order;
            match what {
                What::Place(node, _) => info!(%job, "{dry}{task} goes to {node}: {why}"),
                What::Withdraw(node) => info!(%job, "{dry}{task} is taken back from {node}: {why}"),
            }
        }
        let waits = orders.waits.iter().filter(|(id, _)| !self.before.waits.contains_key(id));
        let waits = waits.map(|(job, why)| {
            info!(%job, "it waits: {why}");
            Entry::Waits { job: job.to_string(), why: why.clone() }
        });
        waits.collect()
    }

    /// What was said of a job last.
    fn why(&self, orders: &Orders, id: &JobId) -> Option<String> {
        let now = orders.list.iter().find(|order| order.job == *id).map(|order| order.why.clone());
        let before = || self.jobs.iter().find(|view| view.job == id.as_str());
        now.or_else(|| orders.waits.get(id).cloned())
            .or_else(|| before().and_then(|view| view.why.clone()))
    }
}

async fn look(at: Moment, docker: &Docker, engine: &SwarmEngine) -> Result<Look, EngineError> {
    let members = swarm::members(docker).await?;
    // In this order: a task that comes meanwhile is of a service that is known then.
    let tasks = engine.tasks().await?;
    let services = engine.labelled(GANG).await?;
    Ok(Look { at, members, services, tasks })
}

/// An order that was carried out, as the audit log has it.
fn entry(order: Order) -> Entry {
    let Order { job, task, what, why, .. } = order;
    let job = job.to_string();
    match what {
        What::Place(node, _) => Entry::Placed { job, task, node, why },
        What::Withdraw(node) => Entry::Withdrawn { job, task, node, why },
    }
}

/// Has services changed, withdrawals first.
async fn carry_out(engine: &SwarmEngine, list: Vec<Order>) -> Acted {
    let (first, then): (Vec<Order>, Vec<Order>) =
        list.into_iter().partition(|order| matches!(order.what, What::Withdraw(_)));
    let mut acted = Acted::default();
    for list in [first, then] {
        let each = futures_util::stream::iter(list).map(async |order| {
            let changed = engine.change(&order.service, |spec| match &order.what {
                What::Place(_, id) => spec::place(spec, id),
                What::Withdraw(_) => spec::withdraw(spec),
            });
            (changed.await, order)
        });
        let mut each = std::pin::pin!(each.buffer_unordered(AT_ONCE));
        while let Some((changed, order)) = each.next().await {
            match changed {
                Ok(()) => acted.done.push(order),
                Err(error) => {
                    warn!(job = %order.job, "{} is tried again: {error}", order.task);
                    acted.failed.push(order);
                }
            }
        }
    }
    acted
}
