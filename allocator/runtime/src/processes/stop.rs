//! Ends a job: its first process is asked, and after a while all are killed.

use std::path::Path;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use super::job::Job;
use crate::RuntimeError;

/// How often it is checked whether the job has ended.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// How often all processes are killed, if new ones appear meanwhile.
const MAX_KILLS: u32 = 50;

/// Asks a job to end, and kills it after `seconds`.
pub(super) async fn stop(proc: &Path, job: &Job, seconds: i32) -> Result<(), RuntimeError> {
    let Some(first) = job.describe().and_then(|described| described.pid) else { return Ok(()) };
    send(proc, job, first, Signal::TERM);
    let grace = Duration::from_secs(seconds.try_into().unwrap_or(0));
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline {
        if job.processes().is_empty() {
            return Ok(());
        }
        sleep(CHECK_PERIOD).await;
    }
    for _ in 0..MAX_KILLS {
        let left = job.processes();
        if left.is_empty() {
            return Ok(());
        }
        for pid in left {
            send(proc, job, pid, Signal::KILL);
        }
        sleep(CHECK_PERIOD).await;
    }
    Err(RuntimeError::Failed("its processes do not end when they are killed".into()))
}

/// Sends a signal to a process of the job; the number may have passed to another process meanwhile.
fn send(proc: &Path, job: &Job, pid: u32, signal: Signal) {
    let Some(process) = opened(pid) else { return };
    let own = paceline_cgroup::job_group::JobGroup::of_process(proc, pid, &job.record.id);
    if own.is_ok_and(|own| job.group.as_ref().is_some_and(|group| *group.cgroup() == *own.cgroup()))
    {
        // A process that has just ended needs no signal.
        let _ended: Result<(), Errno> = pidfd_send_signal(process, signal);
    }
}

fn opened(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
