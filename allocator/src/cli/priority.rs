//! The allocator's own turn on a machine whose cores are all taken.

use std::io;
use std::time::Duration;

use rustix::process::setpriority_process;
use thread_priority::unix::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};
use thread_priority::{ThreadId, ThreadPriority};
use tracing::debug;

/// The kernel has the loop's thread run at once when it wakes, for as long as this …
const RUNTIME: Duration = Duration::from_millis(10);
/// … in each of these periods, and not at all once that is used up: whatever goes wrong here, the
/// jobs have half of that CPU and all of the others.
const PERIOD: Duration = Duration::from_millis(20);
/// How nice it is where the kernel promises nothing. Between a job's word and the new limit it has to
/// run some ten times, each time behind jobs that never pause.
const NICE: i32 = -20;
/// The kernel's word for the thread that asks.
const THIS_THREAD: ThreadId = 0;

/// Has the kernel run this thread soon after it wakes, where it may ask for that (`CAP_SYS_NICE`).
///
/// A niceness alone does not get far: it counts among the processes of one control group or session
/// only. `SCHED_DEADLINE` (sched(7)) goes before all of these, and is the one real-time policy that
/// cannot starve others: its runtime is a bound as well. Threads and processes that are started later
/// do not inherit it.
pub(super) fn raise() {
    if let Err(error) = reserve() {
        debug!("the kernel reserves no time for this thread: {error}");
        if let Err(error) = setpriority_process(None, NICE) {
            debug!("no higher priority than other processes: {error}");
        }
    }
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
        // The library keeps no error of this call's; the kernel's is still there.
        .map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;
    use crate::clock::Clock;

    const SCHED_OTHER: u32 = 0;
    const SCHED_DEADLINE: u32 = 6;

    /// This thread's scheduling policy, as the kernel tells it.
    fn policy() -> u32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    /// The CPU time that this thread has had, in seconds.
    fn used() -> f64 {
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanoseconds: f64 = schedstat.split_whitespace().next().unwrap().parse().unwrap();
        nanoseconds / 1e9
    }

    #[test]
    fn the_thread_goes_first_where_it_may_and_those_that_it_starts_do_not() {
        let may = thread::spawn(|| reserve().is_ok()).join().unwrap();
        let raised = || {
            raise();
            (policy(), thread::spawn(policy).join().unwrap())
        };
        let own = if may { SCHED_DEADLINE } else { SCHED_OTHER };
        assert_eq!(thread::spawn(raised).join().unwrap(), (own, SCHED_OTHER));
    }

    #[test]
    fn what_is_reserved_is_all_that_a_thread_that_spins_can_have() {
        let spinning = || {
            reserve().ok()?;
            let (clock, before) = (Clock::start(), used());
            while clock.now().seconds() < 0.5 {}
            Some((used() - before) / clock.now().seconds())
        };
        // Where nothing is reserved, there is nothing to be bounded.
        let share = thread::spawn(spinning).join().unwrap();
        assert!(share.is_none_or(|share| share < 0.7), "{share:?}");
    }
}
