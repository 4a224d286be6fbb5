//! The moves that are under way: at most one to each node at a time, in the order in which they were
//! decided.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use paceline_policy::JobId;
use paceline_policy::decision::Migration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::procedure::Step;
use super::{Move, News, Tell, Trip};
use crate::clock::unix_seconds;
use crate::live::snapshot::MoveView;

/// So much news waits to be taken in, and moves wait with it.
const NEWS: usize = 64;

/// Has moves carried out, one way or the other.
pub trait Carriage: Send + Sync + 'static {
    /// Carries a move out, as [`carry`](super::carry) does.
    fn carry(
        &self,
        plan: Move,
        ending: CancellationToken,
        tell: Tell,
    ) -> impl Future<Output = Trip> + Send;
}

/// The moves that are decided and not over.
#[derive(Debug)]
pub struct Moves<C> {
    carriage: Arc<C>,
    /// How often one job is moved.
    most: u32,
    /// Moves that were decided, and wait until their target is free.
    queue: VecDeque<Migration>,
    under_way: BTreeMap<JobId, UnderWay>,
    /// How often each job that is still there was moved, tries that came to nothing included.
    begun: BTreeMap<JobId, u32>,
    tell: Tell,
    told: mpsc::Receiver<(String, News)>,
    works: JoinSet<(JobId, Trip)>,
    ending: CancellationToken,
}

#[derive(Debug)]
struct UnderWay {
    plan: Move,
    step: Step,
    since: f64,
}

/// What has come of a move, so far or altogether.
#[derive(Debug)]
pub enum Came {
    /// It goes on.
    News(JobId, News),
    /// It is over.
    Over(JobId, Box<Trip>),
}

impl<C: Carriage> Moves<C> {
    /// None so far; one job is moved `most` times.
    pub fn new(carriage: C, most: u32) -> Self {
        let (tell, told) = mpsc::channel(NEWS);
        Self {
            carriage: Arc::new(carriage),
            most,
            queue: VecDeque::new(),
            under_way: BTreeMap::new(),
            begun: BTreeMap::new(),
            tell,
            told,
            works: JoinSet::new(),
            ending: CancellationToken::new(),
        }
    }

    /// By what they are carried out.
    pub fn carriage(&self) -> &C {
        &self.carriage
    }

    /// A move that is to come, unless the job is on its way already.
    pub fn want(&mut self, migration: Migration) {
        let known = self.under_way.contains_key(&migration.job)
            || self.queue.iter().any(|one| one.job == migration.job);
        if !known {
            self.queue.push_back(migration);
        }
    }

    /// The next move whose target is free.
    pub fn take(&mut self) -> Option<Migration> {
        let at = next(&self.queue, |to| self.under_way.values().any(|one| one.plan.to == to))?;
        self.queue.remove(at)
    }

    /// Whether a job has been moved as often as it may be.
    pub fn are_spent(&self, job: &JobId) -> Option<u32> {
        let begun = self.begun.get(job).copied().unwrap_or_default();
        (begun >= self.most).then_some(begun)
    }

    /// A job is no more: another one of its name may be moved as often as it could.
    pub fn forget(&mut self, job: &JobId) {
        self.begun.remove(job);
    }

    /// Forgets those that are no more, by whether a job is still known or being moved.
    pub fn retain(&mut self, known: impl Fn(&JobId) -> bool) {
        let Self { begun, under_way, .. } = self;
        begun.retain(|job, _| known(job) || under_way.contains_key(job));
    }

    /// Begins a move.
    pub fn begin(&mut self, job: JobId, plan: Move) {
        *self.begun.entry(job.clone()).or_default() += 1;
        let under_way = UnderWay { plan: plan.clone(), step: Step::Create, since: unix_seconds() };
        self.under_way.insert(job.clone(), under_way);
        let carriage = Arc::clone(&self.carriage);
        let (ending, tell) = (self.ending.clone(), self.tell.clone());
        self.works.spawn(async move { (job, carriage.carry(plan, ending, tell).await) });
    }

    /// Whether a job is being moved.
    pub fn has(&self, job: &JobId) -> bool {
        self.under_way.contains_key(job)
    }

    /// The plan of a move that is under way.
    pub fn plan(&self, job: &JobId) -> Option<&Move> {
        self.under_way.get(job).map(|one| &one.plan)
    }

    /// Waits for the next that comes of a move, for ever where there is none. Nothing is lost when
    /// this is given up.
    ///
    /// # Panics
    ///
    /// As the carriage does.
    pub async fn came(&mut self) -> Came {
        tokio::select! {
            biased;
            Some((job, news)) = self.told.recv() => {
                let job = JobId::new(job).expect("it was made of one");
                if let (News::Now(step), Some(one)) = (&news, self.under_way.get_mut(&job)) {
                    one.step = *step;
                }
                Came::News(job, news)
            }
            Some(over) = self.works.join_next() => match over {
                Ok((job, trip)) => {
                    self.under_way.remove(&job);
                    Came::Over(job, Box::new(trip))
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            else => std::future::pending().await,
        }
    }

    /// Begins nothing more, and has what is under way come to an end, one way or the other.
    pub fn end(&mut self) {
        self.queue.clear();
        self.ending.cancel();
    }

    /// Whether none is under way.
    pub fn are_over(&self) -> bool {
        self.works.is_empty()
    }

    /// Those that are under way, as they are shown.
    pub fn views(&self) -> Vec<MoveView> {
        let view = |(job, one): (&JobId, &UnderWay)| MoveView {
            job: job.to_string(),
            from: one.plan.from.clone(),
            to: one.plan.to.clone(),
            reason: one.plan.reason.to_string(),
            step: one.step.name().to_owned(),
            since: one.since,
        };
        self.under_way.iter().map(view).collect()
    }
}

/// Which of these can be begun, by whether a target is taken.
fn next(queue: &VecDeque<Migration>, taken: impl Fn(&str) -> bool) -> Option<usize> {
    queue.iter().position(|one| !taken(&one.to))
}

#[cfg(test)]
mod tests {
    use paceline_policy::decision::Cause;

    use super::*;

    #[test]
    fn moves_to_one_node_come_one_after_the_other() {
        let to = |job: &str, to: &str| Migration {
            job: JobId::new(job).unwrap(),
            from: "a".to_owned(),
            to: to.to_owned(),
            reason: Cause::Rebalance,
        };
        let queue = VecDeque::from([to("x", "b"), to("y", "b"), to("z", "c")]);
        assert_eq!(next(&queue, |_| false), Some(0));
        assert_eq!(next(&queue, |node| node == "b"), Some(2));
        assert_eq!(next(&queue, |_| true), None);
    }
}
