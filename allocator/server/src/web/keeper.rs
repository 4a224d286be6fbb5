//! Follows the snapshots: keeps their history, and caches the answers made from them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use paceline_api::live::snapshot::JobView;
use paceline_api::live::{DaemonHandle, Snapshot};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::export::ExportCounts;
use super::history::History;
use super::metrics;

/// The shortest time between two events for listeners, unless a decision was made.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);
/// A snapshot is due every second. After this long without one, the daemon is not ready.
const STALE: Duration = Duration::from_secs(30);

/// The snapshots of a run and their history, for all of its servers. A task of the Tokio runtime
/// follows the snapshots until the last copy is dropped.
#[derive(Clone, Debug)]
pub struct Snapshots {
    pub(crate) cache: Arc<SnapshotCache>,
    _following: Arc<AbortOnDropHandle<()>>,
}

impl From<DaemonHandle> for Snapshots {
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    fn from(live: DaemonHandle) -> Self {
        let cache = Arc::new(SnapshotCache::new(live));
        let followed = Arc::clone(&cache);
        let following = tokio::spawn(async move { followed.run().await });
        Self { cache, _following: Arc::new(AbortOnDropHandle::new(following)) }
    }
}

/// The history of a run, and its latest snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotCache {
    pub(crate) live: DaemonHandle,
    history: Mutex<History>,
    events: watch::Sender<Bytes>,
    sampled_at: Mutex<Option<Instant>>,
    status: Made,
    metrics: Made,
    pub(super) exports: ExportCounts,
}

/// The answer for the latest snapshot, cached so that frequent requests cost little.
#[derive(Debug, Default)]
struct Made(Mutex<Option<(Arc<Snapshot>, Bytes)>>);

impl Made {
    fn get(&self, snapshot: Arc<Snapshot>, make: impl FnOnce(&Snapshot) -> Bytes) -> Bytes {
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

impl SnapshotCache {
    pub(super) fn new(live: DaemonHandle) -> Self {
        let events = watch::Sender::new(event(&live.now()));
        let (status, metrics) = (Made::default(), Made::default());
        let (history, sampled_at) = (Mutex::default(), Mutex::new(None));
        let exports = ExportCounts::default();
        Self { live, history, events, sampled_at, status, metrics, exports }
    }

    /// Follows the snapshots until the controller ends.
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
                        self.add(&snapshot);
                        let before = std::mem::replace(&mut last, snapshot);
                        waits = true;
                        is_news(&before, &last)
                    }
                    Err(_) => return,
                },
                () = sleep_until(quiet_until), if waits => true,
            };
            if waits && (is_news || Instant::now() >= quiet_until) {
                self.events.send_replace(event(&last));
                quiet_until = Instant::now() + EVENT_INTERVAL;
                waits = false;
            }
        }
    }

    fn add(&self, snapshot: &Snapshot) {
        *lock(&self.sampled_at) = Some(Instant::now());
        lock(&self.history).add(snapshot);
    }

    /// Whether the controller has sampled the jobs recently.
    pub(super) fn is_fresh(&self) -> bool {
        lock(&self.sampled_at).is_some_and(|at| at.elapsed() < STALE)
    }

    /// The latest snapshot.
    pub(super) fn status(&self) -> Bytes {
        self.status.get(self.live.now(), |snapshot| (json(snapshot) + "\n").into())
    }

    /// The latest figures, for Prometheus.
    pub(super) fn metrics(&self) -> Bytes {
        let decided = |job: &str| lock(&self.history).decided(job);
        let exports = self.exports.read();
        self.metrics
            .get(self.live.now(), |snapshot| metrics::render(snapshot, decided, exports).into())
    }

    /// The events, for another listener.
    pub(super) fn events(&self) -> watch::Receiver<Bytes> {
        self.events.subscribe()
    }

    /// A job's figures over time.
    pub(super) fn history(&self, job: &str) -> Option<Bytes> {
        lock(&self.history).figures(job).map(|figures| (json(&figures) + "\n").into())
    }

    /// The decisions on a job.
    pub(super) fn decisions(&self, job: &str) -> Option<Bytes> {
        lock(&self.history).decisions(job).map(|decisions| (json(&decisions) + "\n").into())
    }
}

/// Whether listeners get an event immediately: after a decision, or when a job was added, removed
/// or changed.
fn is_news(before: &Snapshot, now: &Snapshot) -> bool {
    let number = |snapshot: &Snapshot| snapshot.decision.as_ref().map(|decision| decision.number);
    let same = |(a, b): (&JobView, &JobView)| {
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

pub(crate) fn json(value: &impl Serialize) -> String {
    // Serialization could fail only for keys that are not strings, and these types have none.
    serde_json::to_string(value).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use paceline_api::live::snapshot::DecisionView;
    use paceline_api::live::{DaemonChannels, pair};

    use super::*;

    fn at(t: f64, number: u64) -> Arc<Snapshot> {
        let decision = Some(DecisionView { number, ..DecisionView::default() });
        Arc::new(Snapshot { t, decision, ..Snapshot::default() })
    }

    fn keeper() -> (SnapshotCache, DaemonChannels) {
        let (live, channels) = pair(Snapshot::default());
        (SnapshotCache::new(live), channels)
    }

    /// Runs the keeper during `script`, and counts its events.
    async fn events_during(keeper: &SnapshotCache, script: impl Future<Output = ()>) -> usize {
        let mut events = keeper.events();
        let mut count = 0;
        let mut script = pin!(script);
        let mut run = pin!(keeper.run());
        loop {
            tokio::select! {
                biased;
                changed = events.changed() => {
                    changed.unwrap();
                    events.borrow_and_update();
                    count += 1;
                }
                () = &mut run => {}
                () = &mut script => return count,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn listeners_get_at_most_one_event_a_second() {
        let (keeper, channels) = keeper();
        let count = events_during(&keeper, async {
            for look in 0..100_u32 {
                channels.snapshots.send_replace(at(f64::from(look) / 10.0, 1));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
        assert!((10..=11).contains(&count), "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn decision_is_sent_immediately() {
        let (keeper, channels) = keeper();
        let count = events_during(&keeper, async {
            for number in 1..=20 {
                channels.snapshots.send_replace(at(0.0, number));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert_eq!(count, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn keeper_is_fresh_from_first_sample_until_samples_stop() {
        let (keeper, channels) = keeper();
        assert!(!keeper.is_fresh());
        events_during(&keeper, async {
            channels.snapshots.send_replace(at(1.0, 1));
            tokio::time::sleep(EVENT_INTERVAL).await;
            assert!(keeper.is_fresh());
            tokio::time::sleep(STALE).await;
            assert!(!keeper.is_fresh());
        })
        .await;
    }

    #[test]
    fn answer_for_a_snapshot_is_made_once() {
        let made = Made::default();
        let (one, two) = (at(1.0, 1), at(1.0, 1));
        assert_eq!(made.get(Arc::clone(&one), |_| "first".into()), "first");
        assert_eq!(made.get(one, |_| "second".into()), "first");
        assert_eq!(made.get(two, |_| "third".into()), "third");
    }
}
