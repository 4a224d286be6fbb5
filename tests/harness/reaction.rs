use std::time::Duration;

use paceline_api::clock::{Clock, unix_seconds};
use paceline_cgroup::{Cgroup, Quota};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::sync::oneshot;

/// The arguments of a job whose loss falls, and that uses two CPUs. A bare update has the same load beside it
/// as a reaction.
pub const BUSY: [&str; 4] = ["--half-life", "200", "--burners", "1"];
/// Seconds within which a job must have been cut.
const CUT_TIMEOUT: f64 = 60.0;
/// Between two reads of a quota.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Waits until a control group's quota differs from `before`. Returns the moment, in Unix seconds.
///
/// A thread with a real-time priority reads it: otherwise its own wait for a CPU, up to 2.5 ms, would
/// count as the allocator's. Only root may do that.
pub async fn quota_change(cgroup: Cgroup, before: Quota) -> anyhow::Result<f64> {
    let (sender, changed_at) = oneshot::channel();
    std::thread::spawn(move || sender.send(change(&cgroup, before)));
    changed_at.await?
}

#[expect(clippy::disallowed_methods, reason = "no task of a runtime, whose timers are too coarse")]
fn change(cgroup: &Cgroup, before: Quota) -> anyhow::Result<f64> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).map_err(
        |error| anyhow::anyhow!("only root may observe at a real-time priority: {error}"),
    )?;
    let began = Clock::start();
    while cgroup.quota()? == before {
        anyhow::ensure!(began.now().seconds() < CUT_TIMEOUT, "the job is never cut");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(unix_seconds())
}

/// The median and the 99th percentile of some measurements.
pub fn quantiles(mut samples: Vec<f64>) -> [f64; 2] {
    samples.sort_by(f64::total_cmp);
    let at = |of: usize| samples.get((samples.len() * of).div_ceil(100).saturating_sub(1));
    [50, 99].map(|of| at(of).copied().unwrap_or(f64::NAN))
}
