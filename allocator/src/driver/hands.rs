//! The writes that are under way: a few at once, one at a time for each container, and no increase
//! before the decreases that were decided with it are through.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use paceline_policy::JobId;
use paceline_policy::limiter::{Change, Setting};
use tokio::task::JoinSet;

use super::orders::Pending;
use crate::actuate::{Actuator, Drift, LimitError, OnDrift, Restored};
use crate::clock::Clock;

/// How many limits are written at once.
const WRITERS: usize = 4;
/// How long one write may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Hands {
    actuator: Arc<Actuator>,
    clock: Clock,
    queue: VecDeque<Deed>,
    /// Containers that are being written to.
    busy: BTreeSet<String>,
    /// How many decreases are under way.
    shrinking: usize,
    works: JoinSet<Done>,
}

/// Something to be done to one container.
#[derive(Debug)]
pub(super) struct Deed {
    pub(super) container: String,
    /// The job, if it is or was one.
    pub(super) job: Option<JobId>,
    pub(super) what: What,
    /// The order that is answered once this is done.
    pub(super) order: Option<Pending>,
}

#[derive(Debug)]
pub(super) enum What {
    Set(Change),
    Restore,
    /// A limit is not what was written: answered as configured.
    Answer,
}

/// Something that was done, or not.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) deed: Deed,
    pub(super) outcome: Result<Outcome, Failure>,
    pub(super) seconds: f64,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// This is in force now; before, somebody else had changed what was written.
    Set(Setting, Option<Drift>),
    /// What was there before the first write is there again; `None`: nothing was ever written.
    Restored(Option<Restored>),
    /// What had drifted, and what was done about it; `None`: nothing had.
    Answered(Option<(Drift, OnDrift)>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error("the engine did not answer in time")]
    Late,
}

impl Hands {
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

    /// Whether something is being done, or about to be, to this container.
    pub(super) fn has_to_do_with(&self, container: &str) -> bool {
        self.busy.contains(container) || self.queue.iter().any(|deed| deed.container == container)
    }

    /// Does this after all else. What was to be set for the same container is out of date.
    pub(super) fn last(&mut self, deed: Deed) {
        let outdated = |one: &Deed| {
            one.container == deed.container
                && one.order.is_none()
                && matches!(one.what, What::Set(_))
        };
        self.queue.retain(|one| !outdated(one));
        self.queue.push_back(deed);
        self.start();
    }

    /// Does this before all else, in place of whatever was to be done to that container; returns
    /// the orders that come to nothing by it.
    pub(super) fn first(&mut self, deed: Deed) -> Vec<Pending> {
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) =
            self.queue.drain(..).partition(|one| one.container == deed.container);
        self.queue = kept;
        self.queue.push_front(deed);
        self.start();
        dropped.into_iter().filter_map(|deed| deed.order).collect()
    }

    /// Waits until something is done, for ever if there is nothing to do. Nothing is lost when this
    /// is given up.
    pub(super) async fn done(&mut self) -> Done {
        match self.works.join_next().await {
            Some(Ok(done)) => {
                self.busy.remove(&done.deed.container);
                self.shrinking -= usize::from(done.deed.shrinks());
                self.start();
                done
            }
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => std::future::pending().await,
        }
    }

    /// Gives up what has not begun, and waits for what has. Returns the orders that come to nothing.
    pub(super) async fn rest(&mut self) -> Vec<Pending> {
        let dropped: Vec<Pending> = self.queue.drain(..).filter_map(|deed| deed.order).collect();
        while !self.works.is_empty() {
            self.done().await;
        }
        dropped
    }

    /// Begins what can be begun.
    fn start(&mut self) {
        while self.works.len() < WRITERS {
            let at = next(&self.queue, &self.busy, self.shrinking > 0);
            let Some(deed) = at.and_then(|at| self.queue.remove(at)) else { return };
            self.busy.insert(deed.container.clone());
            self.shrinking += usize::from(deed.shrinks());
            self.works.spawn(work(Arc::clone(&self.actuator), self.clock, deed));
        }
    }
}

impl Deed {
    fn grows(&self) -> bool {
        matches!(&self.what, What::Set(change) if change.grows())
    }

    fn shrinks(&self) -> bool {
        matches!(&self.what, What::Set(change) if !change.grows())
    }
}

/// Which deed can be begun next, while decreases are under way or not.
fn next(queue: &VecDeque<Deed>, busy: &BTreeSet<String>, mut decreases: bool) -> Option<usize> {
    queue.iter().position(|deed| {
        let waits = busy.contains(&deed.container) || (decreases && deed.grows());
        decreases |= deed.shrinks();
        !waits
    })
}

async fn work(actuator: Arc<Actuator>, clock: Clock, deed: Deed) -> Done {
    let began = clock.now();
    let acting = async {
        Ok(match &deed.what {
            What::Set(change) => {
                // The policy may be quicker than the look that is to notice it.
                let drift = actuator.drifted(&deed.container).await;
                Outcome::Set(actuator.set(&deed.container, change.to).await?, drift)
            }
            What::Restore => Outcome::Restored(actuator.restore(&deed.container).await?),
            What::Answer => match actuator.drifted(&deed.container).await {
                Some(drift) => {
                    let response = actuator.answer(&drift).await?;
                    Outcome::Answered(Some((drift, response)))
                }
                None => Outcome::Answered(None),
            },
        })
    };
    let outcome = tokio::time::timeout(PATIENCE, acting).await.unwrap_or(Err(Failure::Late));
    Done { deed, outcome, seconds: clock.now().seconds_since(began) }
}

#[cfg(test)]
mod tests {
    use paceline_policy::Share;
    use paceline_policy::limiter::Why;

    use super::*;

    fn set(container: &str, from: f64, to: f64) -> Deed {
        let cap = |share| Setting::Cap(Share::nearest(share));
        let job = JobId::new(container).unwrap();
        let change = Change { job, from: cap(from), to: cap(to), why: Why::Chosen };
        Deed { container: container.to_owned(), job: None, what: What::Set(change), order: None }
    }

    fn next_of(deeds: Vec<Deed>, busy: &[&str], decreases: bool) -> Option<usize> {
        let busy = busy.iter().map(ToString::to_string).collect();
        next(&deeds.into(), &busy, decreases)
    }

    #[test]
    fn no_increase_begins_before_the_decreases_that_were_decided_with_it_are_through() {
        let deeds = || vec![set("a", 1.0, 0.5), set("b", 0.2, 0.7)];
        assert_eq!(next_of(deeds(), &[], false), Some(0));
        assert_eq!(next_of(deeds(), &["a"], false), None, "b waits for a, which waits");
        assert_eq!(next_of(vec![set("b", 0.2, 0.7)], &[], true), None);
        assert_eq!(next_of(vec![set("b", 0.2, 0.7)], &[], false), Some(0));
    }

    #[test]
    fn a_container_that_is_being_written_to_keeps_no_other_waiting() {
        let deeds = vec![set("a", 1.0, 0.5), set("b", 0.7, 0.2)];
        assert_eq!(next_of(deeds, &["a"], true), Some(1));
        let restore = Deed { what: What::Restore, ..set("c", 1.0, 1.0) };
        assert_eq!(next_of(vec![set("a", 0.5, 1.0), restore], &[], true), Some(1));
    }
}
