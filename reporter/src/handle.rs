//! The calls of a training loop. They use only atomics and the clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use paceline_wire::Progress;

use crate::address::LocalAddr;
use crate::builder::Builder;
use crate::checkpoint_request::CheckpointRequest;
use crate::doing::Task;
use crate::endpoint::ServerThread;
use crate::hot::clock::{Clock, Moment};
use crate::hot::ledger::Entry;
use crate::job::Job;
use crate::meter::Meter;

/// A handle to a running reporter, or to none.
///
/// Clones share one reporter and may be used from any thread. Dropping the last of them closes the
/// endpoint.
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
    /// Starts the description of a job of this name.
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

    /// Begins a batch. Its latency ends when it is dropped or given its [loss](Batch::loss).
    #[inline]
    pub fn batch(&self) -> Batch<'_> {
        Batch { timed: self.job().map(|job| (job, Clock::now())) }
    }

    /// Times one batch: `batch` returns its loss, which is reported and returned.
    ///
    /// ```
    /// # let reporter = paceline_reporter::Reporter::disabled();
    /// let loss = reporter.time(|| 0.25_f64);
    /// ```
    pub fn time<L: Copy + Into<f64>>(&self, batch: impl FnOnce() -> L) -> L {
        let timed = self.batch();
        let loss = batch();
        timed.loss(loss);
        loss
    }

    /// Reports the loss of one step whose duration is not measured.
    ///
    /// A loss that is NaN or infinite is counted as rejected and otherwise ignored.
    pub fn report(&self, loss: impl Into<f64>) {
        if let Some(job) = self.job() {
            job.enter(Entry { loss: Some(loss.into()), took: None }, Clock::now());
        }
    }

    /// Reports a step that was timed elsewhere: its loss, its duration, or both. Without a loss it
    /// counts for the latency alone.
    pub fn record(&self, loss: Option<f64>, took: Option<Duration>) {
        if let Some(job) = self.job() {
            job.enter(Entry { loss, took }, Clock::now());
        }
    }

    /// Reports the losses of several steps that became known together, oldest first. It is the same as
    /// [`Reporter::report`] for each, and hardly slower than for one.
    pub fn report_all(&self, losses: &[f64]) {
        if let Some(job) = self.job() {
            job.enter_losses(losses, None, Clock::now());
        }
    }

    /// The same as [`Reporter::report_all`] followed by [`Reporter::step`], at once: each reading of the
    /// progress shows the losses and the step of the last one, or neither. Only one thread at a time may
    /// call it.
    pub fn report_until(&self, step: u64, losses: &[f64]) {
        if let Some(job) = self.job() {
            job.enter_losses(losses, Some(step), Clock::now());
        }
    }

    /// Sets the most steps that the job takes, if that is not known at the start. 0 means unknown.
    pub fn total_steps(&self, steps: u64) {
        if let Some(job) = self.job() {
            job.set_total_steps(steps);
        }
    }

    /// Sets the number of steps that the job expects to take, if it may stop before
    /// [`Reporter::total_steps`], which limits the published value. 0 means unknown.
    pub fn expected_steps(&self, steps: u64) {
        if let Some(job) = self.job() {
            job.set_expected_steps(steps);
        }
    }

    /// The current progress without the values that are derived on request; `None` if the reporter is
    /// disabled.
    pub fn progress(&self) -> Option<Progress> {
        self.job().map(|job| job.read().0)
    }

    /// What renders the metrics outside of the endpoint; `None` if the reporter is disabled.
    pub fn meter(&self) -> Option<Meter> {
        self.job().map(|job| Meter::new(Arc::clone(job)))
    }

    /// Sets the epoch, counted from 1.
    pub fn epoch(&self, epoch: u64) {
        if let Some(job) = self.job() {
            job.set_epoch(epoch);
        }
    }

    /// Sets the number of steps so far. Call it if not every step is reported, or after a resume.
    /// Each further report counts as one more step.
    pub fn step(&self, step: u64) {
        if let Some(job) = self.job() {
            job.ledger().set_step(step);
        }
    }

    /// Reports a loss on held-out data, which is kept apart from the training loss.
    pub fn validation(&self, loss: impl Into<f64>) {
        if let Some(job) = self.job() {
            job.ledger().validate(loss.into(), job.ledger().clock().elapsed());
        }
    }

    /// Reports that the loop evaluates held-out data until the result is dropped, so that the pause is
    /// not taken for a stall.
    pub fn evaluating(&self) -> Evaluation {
        if let Some(job) = self.job() {
            job.set_doing(Task::Evaluating);
        }
        Evaluation { job: self.job().cloned() }
    }

    /// Whether the loop should end after this step. It is true once the objective has been reached, if
    /// [`Builder::stop_at_objective`] was set, or once SIGTERM has been received, if
    /// [`Builder::stop_on_sigterm`] was.
    pub fn should_stop(&self) -> bool {
        self.job().is_some_and(|job| job.stop().load(Ordering::Relaxed))
    }

    /// Takes the request for a checkpoint, if there is one: from a client, or because the acceptable
    /// loss has been reached. Without a request this reads one word, so it may be called with every step.
    ///
    /// If several threads call it, one gets the request. A fork gets none.
    ///
    /// ```
    /// # use paceline_reporter::{Reason, Reporter};
    /// # fn write(path: &str) -> std::io::Result<()> { Ok(()) }
    /// # let reporter = Reporter::disabled();
    /// if let Some(request) = reporter.checkpoint_requested() {
    ///     // A failure is reported to the requester; training continues.
    ///     let saved = request.save(|reason| {
    ///         let path = if reason == Reason::Keep { "vae-best.bin" } else { "vae.bin" };
    ///         write(path).map(|()| path)
    ///     });
    ///     drop(saved);
    /// }
    /// ```
    pub fn checkpoint_requested(&self) -> Option<CheckpointRequest<'_>> {
        let job = self.job().filter(|job| job.checkpoints().is_pending())?;
        job.is_original_process().then(|| CheckpointRequest::take(job)).flatten()
    }

    /// Reports that the job has finished. It can be read until the last handle is dropped.
    pub fn finish(&self) {
        self.end(true);
    }

    /// Reports that the job has ended by an error. The first call of this and [`Reporter::finish`]
    /// counts.
    pub fn fail(&self) {
        self.end(false);
    }

    fn end(&self, well: bool) {
        if let Some(job) = self.job() {
            job.end(well);
        }
    }

    #[inline]
    fn job(&self) -> Option<&Arc<Job>> {
        self.running.as_ref().map(|running| &running.job)
    }
}

/// A running batch: made by [`Reporter::batch`].
#[derive(Debug)]
#[must_use = "a batch that is dropped at once took no time"]
pub struct Batch<'r> {
    timed: Option<(&'r Arc<Job>, Moment)>,
}

impl Batch<'_> {
    /// Ends the batch: one step, with its loss and its latency.
    ///
    /// A loss that is NaN or infinite is counted as rejected; the latency counts all the same.
    #[inline]
    pub fn loss(mut self, loss: impl Into<f64>) {
        self.end(Some(loss.into()));
    }

    /// Ends the batch now, with a loss that is not known yet, such as one that a device still computes.
    /// A separate thread calls each `loss` in turn.
    ///
    /// Up to 256 may wait. Of any more only the latency counts, and the loss counts as dropped.
    pub fn loss_later(mut self, loss: impl FnOnce() -> f64 + Send + 'static) {
        if let Some((job, began)) = self.timed.take() {
            let now = Clock::now();
            let took = now.since(began);
            job.enter(Entry { loss: None, took: Some(took) }, now);
            Job::enter_later(job, Box::new(loss));
        }
    }

    #[inline]
    fn end(&mut self, loss: Option<f64>) {
        if let Some((job, began)) = self.timed.take() {
            job.end_batch(began, loss);
        }
    }
}

/// Ends the batch with its latency alone, which does not count as a step. A batch that a panic
/// interrupts does not count at all.
impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.timed.is_some() && !thread::panicking() {
            self.end(None);
        }
    }
}

/// The time in which a loop evaluates held-out data: made by [`Reporter::evaluating`].
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Evaluation {
    job: Option<Arc<Job>>,
}

impl Drop for Evaluation {
    fn drop(&mut self) {
        if let Some(job) = &self.job {
            job.set_doing(Task::Training);
        }
    }
}
