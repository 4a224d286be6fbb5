//! Writes of limits: a few at once, and one at a time for each container. An increase waits for the
//! decreases that were decided with it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use paceline_api::clock::Clock;
use paceline_policy::JobId;
use paceline_policy::limiter::{Change, Setting};
use tokio::task::JoinSet;

use super::commands::Pending;
use crate::limits::{Actuator, Drift, LimitError, OnDrift, Restored};

/// How many limits are written at once.
const WRITE_CONCURRENCY: usize = 4;
/// How long one write may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct WriteQueue {
    actuator: Arc<Actuator>,
    clock: Clock,
    queue: VecDeque<WriteRequest>,
    /// Containers that are being written to.
    busy: BTreeSet<String>,
    /// How many decreases are being written.
    shrinking: usize,
    works: JoinSet<Done>,
}

/// A request to write to one container.
#[derive(Debug)]
pub(super) struct WriteRequest {
    pub(super) container: String,
    /// The job, if it is or was one.
    pub(super) job: Option<JobId>,
    pub(super) what: Action,
    /// The order that is answered when the write is done.
    pub(super) order: Option<Pending>,
}

#[derive(Debug)]
pub(super) enum Action {
    Set(Change),
    Restore,
    /// Check a limit that is not what was written, and write it again or keep it, as configured.
    Answer,
}

/// A finished write, successful or not.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) request: WriteRequest,
    pub(super) outcome: Result<Outcome, Failure>,
    pub(super) seconds: f64,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// This is in force now. The drift is an outside change that was found before the write.
    Set(Setting, Option<Drift>),
    /// The original limits are restored; `None` if nothing was ever written.
    Restored(Option<Restored>),
    /// The outside change, and the response to it; `None` if there was none.
    Answered(Option<(Drift, OnDrift)>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("the container engine did not answer in time")]
    Late,
}

impl WriteQueue {
    pub(super) fn new(actuator: Arc<Actuator>, clock: Clock) -> Self {
        Self {
            actuator,
            clock,
            queue: VecDeque::new(),
            busy: BTreeSet::new(),
            shrinking: 0,
            works: JoinSet::new(),
        }
    }

    pub(super) fn actuator(&self) -> &Arc<Actuator> {
        &self.actuator
    }

    /// Whether a write to this container is under way or queued.
    pub(super) fn has_to_do_with(&self, container: &str) -> bool {
        self.busy.contains(container)
            || self.queue.iter().any(|request| request.container == container)
    }

    /// Queues a request after all others. Queued changes of the same container's limit are dropped.
    pub(super) fn push_back(&mut self, request: WriteRequest) {
        let outdated = |one: &WriteRequest| {
            one.container == request.container
                && one.order.is_none()
                && matches!(one.what, Action::Set(_))
        };
        self.queue.retain(|one| !outdated(one));
        self.queue.push_back(request);
        self.start();
    }

    /// Queues a request before all others, in place of those for the same container. Returns the
    /// orders that are dropped by that.
    pub(super) fn preempt(&mut self, request: WriteRequest) -> Vec<Pending> {
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) =
            self.queue.drain(..).partition(|one| one.container == request.container);
        self.queue = kept;
        self.queue.push_front(request);
        self.start();
        dropped.into_iter().filter_map(|request| request.order).collect()
    }

    /// Waits for the next finished write; never returns if none is under way. Nothing is lost when
    /// the future is dropped.
    pub(super) async fn done(&mut self) -> Done {
        match self.works.join_next().await {
            Some(Ok(done)) => {
                self.busy.remove(&done.request.container);
                self.shrinking -= usize::from(done.request.shrinks());
                self.start();
                done
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => std::future::pending().await,
        }
    }

    /// Drops the requests that have not begun, and waits for the others. Returns the orders that are
    /// dropped by that.
    pub(super) async fn drain(&mut self) -> Vec<Pending> {
        let dropped: Vec<Pending> =
            self.queue.drain(..).filter_map(|request| request.order).collect();
        while !self.works.is_empty() {
            self.done().await;
        }
        dropped
    }

    /// Begins the requests that can begin now.
    fn start(&mut self) {
        while self.works.len() < WRITE_CONCURRENCY {
            let at = next(&self.queue, &self.busy, self.shrinking > 0);
            let Some(request) = at.and_then(|at| self.queue.remove(at)) else { return };
            self.busy.insert(request.container.clone());
            self.shrinking += usize::from(request.shrinks());
            self.works.spawn(work(Arc::clone(&self.actuator), self.clock, request));
        }
    }
}

impl WriteRequest {
    fn grows(&self) -> bool {
        matches!(&self.what, Action::Set(change) if change.grows())
    }

    fn shrinks(&self) -> bool {
        matches!(&self.what, Action::Set(change) if !change.grows())
    }
}

/// The request that can begin next. `decreases` is whether decreases are being written.
fn next(
    queue: &VecDeque<WriteRequest>,
    busy: &BTreeSet<String>,
    mut decreases: bool,
) -> Option<usize> {
    queue.iter().position(|request| {
        let waits = busy.contains(&request.container) || (decreases && request.grows());
        decreases |= request.shrinks();
        !waits
    })
}

async fn work(actuator: Arc<Actuator>, clock: Clock, request: WriteRequest) -> Done {
    let began = clock.now();
    let acting = async {
        Ok(match &request.what {
            Action::Set(change) => {
                // The policy may act before a sample notices an outside change.
                let drift = actuator.drifted(&request.container).await;
                Outcome::Set(actuator.set(&request.container, change.to).await?, drift)
            }
            Action::Restore => Outcome::Restored(actuator.restore(&request.container).await?),
            Action::Answer => match actuator.drifted(&request.container).await {
                Some(drift) => {
                    let response = actuator.answer(&drift).await?;
                    Outcome::Answered(Some((drift, response)))
                }
                None => Outcome::Answered(None),
            },
        })
    };
    let outcome = tokio::time::timeout(WRITE_TIMEOUT, acting).await.unwrap_or(Err(Failure::Late));
    Done { request, outcome, seconds: clock.now().seconds_since(began) }
}

#[cfg(test)]
mod tests {
    use paceline_policy::Share;
    use paceline_policy::limiter::Why;

    use super::*;

    fn set(container: &str, from: f64, to: f64) -> WriteRequest {
        let cap = |share| Setting::Cap(Share::nearest(share));
        let job = JobId::new(container).unwrap();
        let change = Change { job, from: cap(from), to: cap(to), why: Why::Chosen };
        WriteRequest {
            container: container.to_owned(),
            job: None,
            what: Action::Set(change),
            order: None,
        }
    }

    fn next_of(requests: Vec<WriteRequest>, busy: &[&str], decreases: bool) -> Option<usize> {
        let busy = busy.iter().map(ToString::to_string).collect();
        next(&requests.into(), &busy, decreases)
    }

    #[test]
    fn increase_waits_for_decreases_decided_with_it() {
        let requests = || vec![set("a", 1.0, 0.5), set("b", 0.2, 0.7)];
        assert_eq!(next_of(requests(), &[], false), Some(0));
        assert_eq!(next_of(requests(), &["a"], false), None, "b waits for a, which waits");
        assert_eq!(next_of(vec![set("b", 0.2, 0.7)], &[], true), None);
        assert_eq!(next_of(vec![set("b", 0.2, 0.7)], &[], false), Some(0));
    }

    #[test]
    fn busy_container_does_not_delay_others() {
        let requests = vec![set("a", 1.0, 0.5), set("b", 0.7, 0.2)];
        assert_eq!(next_of(requests, &["a"], true), Some(1));
        let restore = WriteRequest { what: Action::Restore, ..set("c", 1.0, 1.0) };
        assert_eq!(next_of(vec![set("a", 0.5, 1.0), restore], &[], true), Some(1));
    }
}
