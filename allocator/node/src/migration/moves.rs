//! The queue of moves: at most one to each node at a time, in the order in which they were decided.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_api::live::snapshot::MoveView;
use paceline_policy::JobId;
use paceline_policy::decision::Migration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::procedure::Step;
use super::{Ended, MigrationResult, Move, News, NewsSender};

/// The most news that waits for the host; beyond that, the moves wait.
const MAX_QUEUED_NEWS: usize = 64;

/// Carries out moves by some method.
pub trait MigrationWorker: Send + Sync + 'static {
    /// Carries out a move, like [`execute`](super::execute).
    fn execute(
        &self,
        plan: Move,
        ending: CancellationToken,
        tell: NewsSender,
    ) -> impl Future<Output = MigrationResult> + Send;
}

/// The moves that are decided and not finished.
#[derive(Debug)]
pub struct MigrationQueue<C> {
    worker: Arc<C>,
    /// How often one job may be moved.
    most: u32,
    /// Decided moves that wait until their target is free.
    queue: VecDeque<Migration>,
    under_way: BTreeMap<JobId, UnderWay>,
    /// How often each existing job was moved, failed moves included.
    begun: BTreeMap<JobId, u32>,
    tell: NewsSender,
    news: mpsc::Receiver<(String, News)>,
    works: JoinSet<(JobId, MigrationResult)>,
    ending: CancellationToken,
}

#[derive(Debug)]
struct UnderWay {
    plan: Move,
    step: Step,
    since: f64,
}

/// Progress or the result of a move.
#[derive(Debug)]
pub enum MigrationEvent {
    /// Progress.
    News(JobId, News),
    /// The result.
    Over(JobId, Box<MigrationResult>),
}

impl<C: MigrationWorker> MigrationQueue<C> {
    /// An empty queue; one job is moved at most `most` times.
    pub fn new(worker: C, most: u32) -> Self {
        let (tell, news) = mpsc::channel(MAX_QUEUED_NEWS);
        Self {
            worker: Arc::new(worker),
            most,
            queue: VecDeque::new(),
            under_way: BTreeMap::new(),
            begun: BTreeMap::new(),
            tell,
            news,
            works: JoinSet::new(),
            ending: CancellationToken::new(),
        }
    }

    /// The worker that carries out the moves.
    pub fn worker(&self) -> &C {
        &self.worker
    }

    /// Queues a move, unless one of the job is queued or under way.
    pub fn want(&mut self, migration: Migration) {
        let known = self.under_way.contains_key(&migration.job)
            || self.queue.iter().any(|one| one.job == migration.job);
        if !known {
            self.queue.push_back(migration);
        }
    }

    /// Takes the next move whose target is free off the queue.
    pub fn take(&mut self) -> Option<Migration> {
        let at = next(&self.queue, |to| self.under_way.values().any(|one| one.plan.to == to))?;
        self.queue.remove(at)
    }

    /// How often a job was moved, if that is the maximum.
    pub fn are_spent(&self, job: &JobId) -> Option<u32> {
        let begun = self.begun.get(job).copied().unwrap_or_default();
        (begun >= self.most).then_some(begun)
    }

    /// Forgets a job that has ended: another one with its name starts counting from 0.
    pub fn forget(&mut self, job: &JobId) {
        self.begun.remove(job);
    }

    /// Forgets jobs that are neither `known` nor being moved.
    pub fn retain(&mut self, known: impl Fn(&JobId) -> bool) {
        let Self { begun, under_way, .. } = self;
        begun.retain(|job, _| known(job) || under_way.contains_key(job));
    }

    /// Begins a move.
    pub fn begin(&mut self, job: JobId, plan: Move) {
        *self.begun.entry(job.clone()).or_default() += 1;
        let under_way = UnderWay { plan: plan.clone(), step: Step::Create, since: unix_seconds() };
        self.under_way.insert(job.clone(), under_way);
        let worker = Arc::clone(&self.worker);
        let (ending, tell) = (self.ending.clone(), self.tell.clone());
        self.works.spawn(async move { (job, worker.execute(plan, ending, tell).await) });
    }

    /// Whether a job is being moved.
    pub fn has(&self, job: &JobId) -> bool {
        self.under_way.contains_key(job)
    }

    /// The plan of a move that is under way.
    pub fn plan(&self, job: &JobId) -> Option<&Move> {
        self.under_way.get(job).map(|one| &one.plan)
    }

    /// Waits for the next progress or result of a move; never returns if none is under way. Nothing
    /// is lost when the future is dropped.
    ///
    /// # Panics
    ///
    /// Panics if the worker panics.
    pub async fn next_event(&mut self) -> MigrationEvent {
        tokio::select! {
            biased;
            Some((job, news)) = self.news.recv() => {
                let job = JobId::new(job).expect("the name is that of a job");
                if let (News::Now(step), Some(one)) = (&news, self.under_way.get_mut(&job)) {
                    one.step = *step;
                }
                MigrationEvent::News(job, news)
            }
            Some(over) = self.works.join_next() => match over {
                Ok((job, result)) => {
                    self.under_way.remove(&job);
                    MigrationEvent::Over(job, Box::new(result))
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            else => std::future::pending().await,
        }
    }

    /// Drops the queued moves, and asks those under way to end.
    pub fn end(&mut self) {
        self.queue.clear();
        self.ending.cancel();
    }

    /// Gives up the moves that are under way. Returns their results; the journal has what is left to do.
    pub fn give_up(&mut self) -> Vec<MigrationEvent> {
        self.works = JoinSet::new();
        let given_up = |(job, UnderWay { plan, .. }): (JobId, UnderWay)| {
            let why = "the allocator is shutting down, and the move takes too long; the next run \
                       completes or undoes it";
            let ended = Ended::Stuck(why.to_owned());
            let result = MigrationResult { plan, ended, successor: None, saving: None, cost: None };
            MigrationEvent::Over(job, Box::new(result))
        };
        std::mem::take(&mut self.under_way).into_iter().map(given_up).collect()
    }

    /// Whether no move is under way.
    pub fn are_over(&self) -> bool {
        self.works.is_empty()
    }

    /// The moves that are under way, as they are shown.
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

/// The first move whose target is not taken.
fn next(queue: &VecDeque<Migration>, taken: impl Fn(&str) -> bool) -> Option<usize> {
    queue.iter().position(|one| !taken(&one.to))
}

#[cfg(test)]
mod tests {
    use paceline_policy::decision::Cause;

    use super::*;

    #[test]
    fn moves_to_one_node_run_one_after_the_other() {
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
