//! Follows the snapshots: keeps their past, and has what is asked for ready.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::history::History;
use super::metrics;
use crate::live::{Live, Snapshot};

/// Listeners are told at most so often, unless something was decided.
const PACE: Duration = Duration::from_secs(1);
/// A look is due every second. When none has come for this long, something is wrong.
const STALE: Duration = Duration::from_secs(30);

/// The past of a run, as far as it is kept, and its present.
#[derive(Debug)]
pub(super) struct Keeper {
    live: Live,
    history: Mutex<History>,
    told: watch::Sender<Bytes>,
    looked_at: Mutex<Option<Instant>>,
    status: Made,
    metrics: Made,
}

/// What was made of a snapshot, so that asking often costs little.
#[derive(Debug, Default)]
struct Made(Mutex<Option<(Arc<Snapshot>, Bytes)>>);

impl Made {
    fn of(&self, snapshot: Arc<Snapshot>, make: impl FnOnce(&Snapshot) -> Bytes) -> Bytes {
        let mut made = lock(&self.0);
        match &*made {
            Some((of, bytes)) if Arc::ptr_eq(of, &snapshot) => bytes.clone(),
            _ => {
                let bytes = make(&snapshot);
                *made = Some((snapshot, bytes.clone()));
                bytes
            }
        }
    }
}

impl Keeper {
    pub(super) fn new(live: Live) -> Self {
        let told = watch::Sender::new(event(&live.now()));
        let (status, metrics) = (Made::default(), Made::default());
        let (history, looked_at) = (Mutex::default(), Mutex::new(None));
        Self { live, history, told, looked_at, status, metrics }
    }

    /// Follows for as long as there is a driver.
    pub(super) async fn run(&self) {
        let mut snapshots = self.live.follow();
        let mut last = self.live.now();
        let mut quiet_until = Instant::now();
        let mut waits = false;
        loop {
            let is_news = tokio::select! {
                // Cancel safe: a watch keeps its value.
                changed = snapshots.changed() => match changed {
                    Ok(()) => {
                        let snapshot = Arc::clone(&snapshots.borrow_and_update());
                        self.look(&snapshot);
                        let before = std::mem::replace(&mut last, snapshot);
                        waits = true;
                        is_news(&before, &last)
                    }
                    Err(_) => return,
                },
                () = sleep_until(quiet_until), if waits => true,
            };
            if waits && (is_news || Instant::now() >= quiet_until) {
                self.told.send_replace(event(&last));
                quiet_until = Instant::now() + PACE;
                waits = false;
            }
        }
    }

    fn look(&self, snapshot: &Snapshot) {
        *lock(&self.looked_at) = Some(Instant::now());
        lock(&self.history).look(snapshot);
    }

    /// Whether the driver has looked at the jobs, and not long ago.
    pub(super) fn is_fresh(&self) -> bool {
        lock(&self.looked_at).is_some_and(|at| at.elapsed() < STALE)
    }

    /// The latest snapshot.
    pub(super) fn status(&self) -> Bytes {
        self.status.of(self.live.now(), |snapshot| (json(snapshot) + "\n").into())
    }

    /// The latest figures, for Prometheus.
    pub(super) fn metrics(&self) -> Bytes {
        let decided = |job: &str| lock(&self.history).decided(job);
        self.metrics.of(self.live.now(), |snapshot| metrics::render(snapshot, decided).into())
    }

    /// Events for one more listener.
    pub(super) fn told(&self) -> watch::Receiver<Bytes> {
        self.told.subscribe()
    }

    /// A job's figures over time.
    pub(super) fn history(&self, job: &str) -> Option<Bytes> {
        lock(&self.history).figures(job).map(|figures| (json(&figures) + "\n").into())
    }

    /// What was decided of a job.
    pub(super) fn decisions(&self, job: &str) -> Option<Bytes> {
        lock(&self.history).decisions(job).map(|decisions| (json(&decisions) + "\n").into())
    }
}

/// Whether something is told at once: a decision, or a job that has come, gone or changed.
fn is_news(before: &Snapshot, now: &Snapshot) -> bool {
    let number = |snapshot: &Snapshot| snapshot.decision.as_ref().map(|decision| decision.number);
    let same = |(a, b): (&crate::live::snapshot::JobView, &crate::live::snapshot::JobView)| {
        a.container == b.container
            && a.standing == b.standing
            && a.targets == b.targets
            && a.acceptable_at == b.acceptable_at
            && a.objective_at == b.objective_at
    };
    number(before) != number(now)
        || before.jobs.len() != now.jobs.len()
        || !before.jobs.iter().zip(&now.jobs).all(same)
}

/// The bytes of an event whose data is one line.
fn event(snapshot: &Snapshot) -> Bytes {
    format!("data: {}\n\n", json(snapshot)).into()
}

fn json(value: &impl Serialize) -> String {
    // None of these types has a key that is no text, which is all that could fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::live::snapshot::DecisionView;
    use crate::live::{Backstage, pair};

    fn at(t: f64, number: u64) -> Arc<Snapshot> {
        let decision = Some(DecisionView { number, ..DecisionView::default() });
        Arc::new(Snapshot { t, decision, ..Snapshot::default() })
    }

    fn keeper() -> (Keeper, Backstage) {
        let (live, backstage) = pair(Snapshot::default());
        (Keeper::new(live), backstage)
    }

    /// Lets the keeper run for a while, and counts what it tells.
    async fn told_during(keeper: &Keeper, script: impl Future<Output = ()>) -> usize {
        let mut told = keeper.told();
        let mut count = 0;
        let mut script = pin!(script);
        let mut run = pin!(keeper.run());
        loop {
            tokio::select! {
                biased;
                changed = told.changed() => {
                    changed.unwrap();
                    told.borrow_and_update();
                    count += 1;
                }
                () = &mut run => {}
                () = &mut script => return count,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn listeners_are_told_once_a_second_however_often_the_driver_looks() {
        let (keeper, backstage) = keeper();
        let count = told_during(&keeper, async {
            for look in 0..100_u32 {
                backstage.snapshots.send_replace(at(f64::from(look) / 10.0, 1));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
        assert!((10..=11).contains(&count), "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_is_told_at_once() {
        let (keeper, backstage) = keeper();
        let count = told_during(&keeper, async {
            for number in 1..=20 {
                backstage.snapshots.send_replace(at(0.0, number));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert_eq!(count, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_fresh_from_the_first_look_until_looks_stay_away() {
        let (keeper, backstage) = keeper();
        assert!(!keeper.is_fresh());
        told_during(&keeper, async {
            backstage.snapshots.send_replace(at(1.0, 1));
            tokio::time::sleep(PACE).await;
            assert!(keeper.is_fresh());
            tokio::time::sleep(STALE).await;
            assert!(!keeper.is_fresh());
        })
        .await;
    }

    #[test]
    fn what_was_made_of_a_snapshot_is_made_once() {
        let made = Made::default();
        let (one, two) = (at(1.0, 1), at(1.0, 1));
        assert_eq!(made.of(Arc::clone(&one), |_| "first".into()), "first");
        assert_eq!(made.of(one, |_| "second".into()), "first");
        assert_eq!(made.of(two, |_| "third".into()), "third");
    }
}
