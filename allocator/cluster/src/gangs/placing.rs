//! The loop of distributed jobs: read Docker's state, let the policy decide, change the services.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Service, Task};
use futures_util::StreamExt;
use paceline_api::audit::Entry;
use paceline_api::clock::{Clock, unix_seconds};
use paceline_api::labels::GANG;
use paceline_api::live::snapshot::GangView;
use paceline_policy::{JobId, Moment};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::decider::{Decider, PlacementPolicy, PolicyFrame};
use super::orders::{Action, Order, Orders};
use super::spec;
use super::state::SwarmState;
use crate::engine::SwarmEngine;
use crate::member::{self, Member};
use crate::swarm::Outage;

/// How often Docker is asked.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// How many services are changed at the same time.
const ORDER_CONCURRENCY: usize = 8;

/// The distributed jobs of a Swarm.
#[derive(Debug)]
pub(crate) struct Placing {
    decider: Decider,
    engine: SwarmEngine,
    listings: watch::Receiver<Option<Arc<Listing>>>,
    _listing: AbortOnDropHandle<()>,
    acting: JoinSet<OrderResults>,
    /// Failed withdrawals, which are repeated: the policy assumes that they were carried out.
    retries: Vec<Order>,
    /// Older readings do not show the latest changes, and are ignored.
    since: Moment,
    dry_run: bool,
    before: Orders,
    jobs: Vec<GangView>,
}

/// Docker's state, and when it was asked.
#[derive(Debug)]
struct Listing {
    at: Moment,
    members: Vec<Member>,
    services: Vec<Service>,
    tasks: Vec<Task>,
}

/// The results of orders.
#[derive(Debug, Default)]
struct OrderResults {
    done: Vec<Order>,
    failed: Vec<Order>,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The frame that the policy answered, if it was asked.
    pub(crate) frame: Option<PolicyFrame>,
    /// Orders carried out since the last turn, and new reasons to wait.
    pub(crate) entries: Vec<Entry>,
}

impl Placing {
    /// The distributed jobs of the Swarm that `docker` manages. A dry run changes nothing.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(crate) fn new(
        policy: PlacementPolicy,
        docker: Docker,
        clock: Clock,
        dry_run: bool,
    ) -> Self {
        let engine = SwarmEngine::new(docker.clone());
        let epoch = unix_seconds() - clock.now().seconds();
        let (sender, listings) = watch::channel(None);
        let asked = engine.clone();
        let listing = tokio::spawn(async move {
            let mut outage = Outage::of("the Swarm's services");
            loop {
                let at = clock.now();
                if let Some(listing) = outage.answer(list_all(at, &docker, &asked)).await {
                    sender.send_replace(Some(Arc::new(listing)));
                }
                sleep(ROUND_INTERVAL).await;
            }
        });
        Self {
            decider: Decider::new(policy, epoch),
            engine,
            listings,
            _listing: AbortOnDropHandle::new(listing),
            acting: JoinSet::new(),
            retries: Vec::new(),
            since: Moment::default(),
            dry_run,
            before: Orders::default(),
            jobs: Vec::new(),
        }
    }

    /// Lets the policy decide, unless its last answer is still being carried out.
    pub(crate) fn turn(&mut self, now: Moment) -> Turn {
        let mut entries = Vec::new();
        while let Some(results) = self.acting.try_join_next() {
            entries.extend(self.handle_results(results));
            self.since = now;
        }
        let listing = self.listings.borrow().clone().filter(|listing| listing.at >= self.since);
        let (true, Some(listing)) = (self.acting.is_empty(), listing) else {
            return Turn { frame: None, entries };
        };
        let state = SwarmState::new(&listing.members, &listing.services, &listing.tasks);
        let (orders, frame) = self.decider.decide(now, &state);
        self.jobs =
            state.jobs.iter().map(|(id, job)| job.view(id, self.why(&orders, id))).collect();
        entries.extend(self.report(&orders));
        let mut list = std::mem::take(&mut self.retries);
        list.extend(orders.list.iter().filter(|_| !self.dry_run).cloned());
        if !list.is_empty() {
            let engine = self.engine.clone();
            self.acting.spawn(async move { carry_out(&engine, list).await });
        }
        self.before = orders;
        Turn { frame, entries }
    }

    /// The jobs at the last decision.
    pub(crate) fn jobs(&self) -> &[GangView] {
        &self.jobs
    }

    /// Waits until all orders are carried out, and returns their audit entries.
    pub(crate) async fn end(mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        while let Some(results) = self.acting.join_next().await {
            entries.extend(self.handle_results(results));
        }
        entries
    }

    /// Handles the results of orders.
    fn handle_results(&mut self, results: Result<OrderResults, JoinError>) -> Vec<Entry> {
        let OrderResults { done, failed } = match results {
            Ok(results) => results,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let is_place = |order: &Order| matches!(order.action, Action::Place(..));
        if failed.iter().any(is_place) {
            self.decider.doubt();
        }
        self.retries = failed.into_iter().filter(|order| !is_place(order)).collect();
        done.into_iter().map(entry).collect()
    }

    /// Logs new orders and new reasons to wait. The latter are audit entries as well.
    fn report(&self, orders: &Orders) -> Vec<Entry> {
        let dry = if self.dry_run { "dry run: " } else { "" };
        for order in orders.list.iter().filter(|order| !self.before.list.contains(order)) {
            let Order { job, task, action, why, .. } = order;
            match action {
                Action::Place(node, _) => info!(%job, "{dry}placing task {task} on {node}: {why}"),
                Action::Withdraw(node) => {
                    info!(%job, "{dry}withdrawing task {task} from {node}: {why}");
                }
            }
        }
        let waits = orders.waits.iter().filter(|(id, _)| !self.before.waits.contains_key(id));
        let waits = waits.map(|(job, why)| {
            info!(%job, "job {job} waits: {why}");
            Entry::Waits { job: job.to_string(), why: why.clone() }
        });
        waits.collect()
    }

    /// The last reason that a decision gave for a job.
    fn why(&self, orders: &Orders, id: &JobId) -> Option<String> {
        let now = orders.list.iter().find(|order| order.job == *id).map(|order| order.why.clone());
        let before = || self.jobs.iter().find(|view| view.job == id.as_str());
        now.or_else(|| orders.waits.get(id).cloned())
            .or_else(|| before().and_then(|view| view.why.clone()))
    }
}

async fn list_all(
    at: Moment,
    docker: &Docker,
    engine: &SwarmEngine,
) -> Result<Listing, EngineError> {
    let members = member::members(docker).await?;
    // Services come after tasks, so that the service of every listed task is known.
    let tasks = engine.tasks().await?;
    let services = engine.labelled(GANG).await?;
    Ok(Listing { at, members, services, tasks })
}

/// The audit entry of an order that was carried out.
fn entry(order: Order) -> Entry {
    let Order { job, task, action, why, .. } = order;
    let job = job.to_string();
    match action {
        Action::Place(node, _) => Entry::Placed { job, task, node, why },
        Action::Withdraw(node) => Entry::Withdrawn { job, task, node, why },
    }
}

/// Changes services, withdrawals first.
async fn carry_out(engine: &SwarmEngine, list: Vec<Order>) -> OrderResults {
    let (first, then): (Vec<Order>, Vec<Order>) =
        list.into_iter().partition(|order| matches!(order.action, Action::Withdraw(_)));
    let mut results = OrderResults::default();
    for list in [first, then] {
        let each = futures_util::stream::iter(list).map(async |order| {
            let changed = engine.change(&order.service, |spec| match &order.action {
                Action::Place(_, id) => spec::place(spec, id),
                Action::Withdraw(_) => spec::withdraw(spec),
            });
            (changed.await, order)
        });
        let mut each = std::pin::pin!(each.buffer_unordered(ORDER_CONCURRENCY));
        while let Some((changed, order)) = each.next().await {
            match changed {
                Ok(()) => results.done.push(order),
                Err(error) => {
                    let task = &order.task;
                    warn!(job = %order.job, "cannot change the service of {task}: {error}; retrying");
                    results.failed.push(order);
                }
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use paceline_policy::policies::{AnyPolicy, build};
    use paceline_policy::{Params, Variant};

    use super::*;
    use crate::testing::{Warnings, docker};

    #[tokio::test(start_paused = true)]
    async fn outage_of_docker_is_logged_once() {
        let AnyPolicy::Gangs(policy) =
            build("fifo-gang", Variant::Resolved, &Params::default()).unwrap()
        else {
            panic!("it places whole jobs")
        };
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        // Each request is refused.
        drop(UnixListener::bind(&socket).unwrap());
        let warnings = Warnings::of("paceline_cluster");
        let policy = PlacementPolicy::Gangs(policy);
        let _placing = Placing::new(policy, docker(&socket), Clock::start(), false);
        sleep(60 * ROUND_INTERVAL).await;
        assert_eq!(warnings.count(), 1);
    }
}
