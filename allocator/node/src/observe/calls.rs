//! Calls into what a container provides. A container can block such a call without end, for example
//! by a FUSE file system that does not answer.
//!
//! No such call runs on the controller's thread. Each one runs on a thread of its own, and its caller
//! waits only for a bounded time. A thread that is still blocked then is lost until its call returns.
//! Each job may lose two threads: from then on this job alone is given up. All jobs
//! together may lose 512.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Semaphore, oneshot};

/// How many calls are waited for at the same time. Others wait for their turn.
const CONCURRENCY: usize = 16;
/// How many threads one job may have blocked. The second one shows that the first was no accident.
const MAX_LOST_OF_JOB: usize = 2;
/// How many threads all jobs may have blocked together.
const MAX_LOST: usize = 512;
/// The stack of a thread, in bytes: its calls are shallow.
const STACK: usize = 256 * 1024;

/// The threads for calls into all containers of a machine.
#[derive(Clone, Debug)]
pub struct CallPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// Places for calls whose caller waits.
    places: Arc<Semaphore>,
    /// One search of processes at a time.
    searches: Semaphore,
    /// Threads that exist.
    threads: Arc<AtomicUsize>,
}

/// The calls into one container.
#[derive(Clone, Debug)]
pub struct JobCalls {
    pool: CallPool,
    /// Calls that have not returned.
    open: Arc<AtomicUsize>,
}

/// Whether the caller still waits for a call. Long calls ask for it, and end early.
#[derive(Clone, Debug, Default)]
pub struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Whether the caller has given up.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A call whose caller has given up.
    #[cfg(test)]
    pub(super) fn for_test() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// An error once the caller has given up.
    pub fn check(&self) -> io::Result<()> {
        if self.is_set() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

/// Cancels the call when its caller stops waiting.
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Counts one thread for as long as it lives.
struct Counted([Arc<AtomicUsize>; 2]);

impl Drop for Counted {
    fn drop(&mut self) {
        for counter in &self.0 {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Default for CallPool {
    fn default() -> Self {
        Self(Arc::new(Pool {
            places: Arc::new(Semaphore::new(CONCURRENCY)),
            searches: Semaphore::new(1),
            threads: Arc::default(),
        }))
    }
}

impl CallPool {
    /// The calls into one more container.
    pub fn of_job(&self) -> JobCalls {
        JobCalls { pool: self.clone(), open: Arc::default() }
    }
}

impl JobCalls {
    /// Runs `call` on a thread of its own. The caller limits the time by dropping the future: the call
    /// is then cancelled, and its place is free for another one.
    pub async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Cancelled) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let pool = &self.pool.0;
        let _place = pool.places.acquire().await.map_err(io::Error::other)?;
        let thread = self.count()?;
        let cancelled = Cancelled::default();
        let (answer, answered) = oneshot::channel();
        let cancels = CancelOnDrop(cancelled.clone());
        std::thread::Builder::new().name("paceline-call".to_owned()).stack_size(STACK).spawn(
            move || {
                let result = call(&cancelled);
                drop(thread);
                // The caller may have given up: dropping the result closes what it holds.
                drop(answer.send(result));
            },
        )?;
        let result = answered.await.map_err(io::Error::other)?;
        drop(cancels);
        result
    }

    /// The same for a call that searches processes: one at a time on the whole machine.
    pub async fn search<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Cancelled) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _turn = self.pool.0.searches.acquire().await.map_err(io::Error::other)?;
        self.run(call).await
    }

    /// Takes one thread from the budgets of this job and of all jobs.
    fn count(&self) -> io::Result<Counted> {
        let counters = [&self.open, &self.pool.0.threads];
        let before = counters.map(|counter| counter.fetch_add(1, Ordering::Relaxed));
        let counted = Counted(counters.map(Arc::clone));
        let [of_job, of_all] = before;
        if of_job < MAX_LOST_OF_JOB && of_all < CONCURRENCY + MAX_LOST {
            return Ok(counted);
        }
        Err(io::Error::other(
            "earlier calls into the container are still blocked; \
             check the file system that its endpoint is on",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A call that returns only when the sender is dropped.
    fn blocked() -> (mpsc::Sender<()>, impl FnOnce(&Cancelled) -> io::Result<()> + Send + 'static) {
        let (sender, blocks) = mpsc::channel::<()>();
        (sender, move |_: &Cancelled| {
            // An error, once the sender is dropped.
            blocks.recv().or(Ok(()))
        })
    }

    const SHORT: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn blocked_job_is_given_up_and_no_other_one() {
        let pool = CallPool::default();
        let (hostile, honest) = (pool.of_job(), pool.of_job());
        let mut blocks = Vec::new();
        for _ in 0..MAX_LOST_OF_JOB {
            let (block, call) = blocked();
            blocks.push(block);
            timeout(SHORT, hostile.run(call)).await.unwrap_err();
        }
        let error = hostile.run(|_| Ok(())).await.unwrap_err().to_string();
        assert!(error.contains("earlier calls into the container are still blocked"), "{error}");
        assert_eq!(honest.run(|_| Ok(7)).await.unwrap(), 7);
        blocks.clear();
        while hostile.run(|_| Ok(())).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn blocked_threads_hold_no_place() {
        let pool = CallPool::default();
        let mut blocks = Vec::new();
        for _ in 0..2 * CONCURRENCY {
            let (block, call) = blocked();
            blocks.push(block);
            timeout(SHORT, pool.of_job().run(call)).await.unwrap_err();
        }
        assert_eq!(pool.of_job().run(|_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn search_is_cancelled_when_its_caller_gives_up() {
        let pool = CallPool::default();
        let (ended, ends) = mpsc::channel();
        let endless = move |cancelled: &Cancelled| {
            while !cancelled.is_set() {
                std::thread::yield_now();
            }
            ended.send(()).map_err(io::Error::other)?;
            cancelled.check()
        };
        timeout(SHORT, pool.of_job().search(endless)).await.unwrap_err();
        ends.recv().unwrap();
        assert_eq!(pool.of_job().search(|_| Ok(7)).await.unwrap(), 7, "it is the next one's turn");
    }

    #[tokio::test]
    async fn searches_run_one_at_a_time() {
        let pool = CallPool::default();
        let running = Arc::new(AtomicUsize::new(0));
        let search = || {
            let running = Arc::clone(&running);
            let job = pool.of_job();
            async move {
                let call = move |_: &Cancelled| {
                    let before = running.fetch_add(1, Ordering::SeqCst);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(before)
                };
                job.search(call).await.unwrap()
            }
        };
        let seen = futures_util::future::join_all((0..8).map(|_| search())).await;
        assert_eq!(seen, [0; 8]);
    }
}
