//! The scheduling priority of the allocator on a busy machine.

use std::io;
use std::time::Duration;

use rustix::process::setpriority_process;
use thread_priority::unix::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};
use thread_priority::{ThreadId, ThreadPriority};
use tracing::debug;

/// The CPU time that the kernel reserves for the controller's thread in each period.
const RUNTIME: Duration = Duration::from_millis(10);
/// The period of the reservation. The reservation is also a bound, so jobs keep at least half of
/// one CPU and all of the others.
const PERIOD: Duration = Duration::from_millis(20);
/// The niceness without a reservation. Between a job's report and the new limit the thread runs
/// about ten times, each time after busy jobs.
const NICE: i32 = -20;
/// The kernel's id for the calling thread.
const THIS_THREAD: ThreadId = 0;

/// Makes the kernel run this thread soon after it wakes, if the process has `CAP_SYS_NICE`.
///
/// Niceness alone has little effect: it counts only among processes of one control group or
/// session. `SCHED_DEADLINE` (sched(7)) runs before all of these. It is the one real-time policy
/// that cannot starve others, since its runtime is also a bound. Threads and processes that are
/// started later do not inherit it.
pub(super) fn raise() {
    if let Err(error) = reserve() {
        debug!("cannot reserve CPU time for the controller's thread: {error}");
        if let Err(error) = setpriority_process(None, NICE) {
            debug!("cannot raise the priority of the controller's thread: {error}");
        }
    }
}

/// Whether CPU time can be reserved. A thread of its own tries, and gives it back at once.
pub(super) fn can_reserve() -> io::Result<()> {
    std::thread::scope(|scope| scope.spawn(reserve).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that tried has panicked")))
}

fn reserve() -> io::Result<()> {
    let deadline = ThreadPriority::Deadline {
        runtime: RUNTIME,
        deadline: PERIOD,
        period: PERIOD,
        flags: DeadlineFlags::RESET_ON_FORK,
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    set_thread_priority_and_policy(THIS_THREAD, deadline, policy)
        // The library drops the error of this call, but the kernel's is still set.
        .map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use paceline_api::clock::Clock;

    use super::*;

    const SCHED_OTHER: u32 = 0;
    const SCHED_DEADLINE: u32 = 6;

    /// This thread's scheduling policy, from the kernel.
    fn policy() -> u32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    /// The CPU time that this thread has used, in seconds.
    fn used() -> f64 {
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanoseconds: f64 = schedstat.split_whitespace().next().unwrap().parse().unwrap();
        nanoseconds / 1e9
    }

    #[test]
    fn raised_thread_has_a_deadline_that_others_do_not_inherit() {
        let raised = || {
            raise();
            (policy(), thread::spawn(policy).join().unwrap())
        };
        // Other processes reserve CPU time at any moment, and all of it is soon reserved.
        let as_allowed = (0..100).any(|_| {
            let may = thread::spawn(|| reserve().is_ok()).join().unwrap();
            let (own, inherited) = thread::spawn(raised).join().unwrap();
            assert_eq!(inherited, SCHED_OTHER);
            own == if may { SCHED_DEADLINE } else { SCHED_OTHER }
        });
        assert!(as_allowed);
    }

    #[test]
    fn spinning_thread_gets_no_more_than_its_reservation() {
        let spinning = || {
            reserve().ok()?;
            let (clock, before) = (Clock::start(), used());
            while clock.now().seconds() < 0.5 {}
            Some((used() - before) / clock.now().seconds())
        };
        // Without a reservation there is nothing to check.
        let share = thread::spawn(spinning).join().unwrap();
        assert!(share.is_none_or(|share| share < 0.7), "{share:?}");
    }
}
