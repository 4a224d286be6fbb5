//! What a training loop calls. Only atomics and the clock are touched here.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::address::LocalAddr;
use crate::builder::Builder;
use crate::job::Job;
use crate::thread::ServerThread;

/// A handle to a running reporter, or to none.
///
/// Clones share one reporter and may be used from any thread. When the last of them is dropped, the
/// endpoint goes away.
#[derive(Clone, Debug)]
pub struct Reporter {
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    job: Arc<Job>,
    thread: Arc<ServerThread>,
}

impl Reporter {
    /// Describes a job of this name.
    pub fn builder(job: impl Into<String>) -> Builder {
        Builder::new(job.into())
    }

    /// A handle that publishes nothing and whose calls do nothing.
    pub fn disabled() -> Self {
        Self { running: None }
    }

    pub(crate) fn new(job: Arc<Job>, thread: ServerThread) -> Self {
        Self { running: Some(Running { job, thread: Arc::new(thread) }) }
    }

    /// Where the endpoint is; `None` if the reporter is disabled.
    pub fn local_addr(&self) -> Option<&LocalAddr> {
        self.running.as_ref().map(|running| running.thread.address())
    }

    /// Begins a batch, whose latency counts when it is dropped or given its [loss](Batch::loss).
    pub fn batch(&self) -> Batch {
        let timed = self.job().map(|job| (Arc::clone(job), job.ledger().clock().elapsed()));
        Batch { timed }
    }

    /// Reports the loss of one step whose duration is not measured.
    ///
    /// A loss that is NaN or infinite is counted as rejected and otherwise ignored.
    pub fn report(&self, loss: impl Into<f64>) {
        if let Some(job) = self.job() {
            let ledger = job.ledger();
            ledger.enter(Some(loss.into()), None, ledger.clock().elapsed());
        }
    }

    /// Says which epoch it is, counted from 1.
    pub fn epoch(&self, epoch: u64) {
        if let Some(job) = self.job() {
            job.set_epoch(epoch);
        }
    }

    /// Says that the job has ended as it meant to. It can be read until the last handle is dropped.
    pub fn finish(&self) {
        self.end(true);
    }

    /// Says that the job has ended by an error. What was said first of this and
    /// [`Reporter::finish`] stays.
    pub fn fail(&self) {
        self.end(false);
    }

    fn end(&self, well: bool) {
        if let Some(job) = self.job() {
            job.end(well);
        }
    }

    fn job(&self) -> Option<&Arc<Job>> {
        self.running.as_ref().map(|running| &running.job)
    }
}

/// A batch that runs: made by [`Reporter::batch`].
#[derive(Debug)]
#[must_use = "a batch that is dropped at once took no time"]
pub struct Batch {
    timed: Option<(Arc<Job>, Duration)>,
}

impl Batch {
    /// Ends the batch: one step, with its loss and its latency.
    ///
    /// A loss that is NaN or infinite is counted as rejected; the latency counts all the same.
    pub fn loss(mut self, loss: impl Into<f64>) {
        self.end(Some(loss.into()));
    }

    fn end(&mut self, loss: Option<f64>) {
        if let Some((job, began)) = self.timed.take() {
            let now = job.ledger().clock().elapsed();
            job.ledger().enter(loss, Some(now.saturating_sub(began)), now);
        }
    }
}

/// Ends the batch with its latency alone, which is no step. A batch that a panic cuts short does
/// not count.
impl Drop for Batch {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end(None);
        }
    }
}
