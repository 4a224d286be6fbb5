//! Waits for the end of one job, and removes its group and its record. It works without an allocator, and
//! sleeps until a process ends.

use std::io;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::folder::Place;
use super::job::Job;

/// The pause after a process that ended just now, or a group that cannot be removed yet.
const BACKOFF: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How often the removal of an empty group is tried: the kernel may still hold it for a moment.
const MAX_TRIES: u32 = 500;

/// Waits until job `id` of user `uid` has no process, and removes what is left of it. It blocks the
/// thread: the process does nothing else.
pub fn remove_after_end(proc: &Path, uid: u32, id: &str) -> io::Result<()> {
    let folder = Place::own(uid).open()?;
    // Read once: the record may be removed before the group.
    let job = Job::read(proc, &folder, id)?;
    let mut tries = 0;
    while tries < MAX_TRIES {
        if let Some(pid) = job.processes().first() {
            wait_for(*pid);
        } else if job.remove(&folder) {
            break;
        } else {
            tries += 1;
            pause();
        }
    }
    Ok(())
}

/// Waits until a process has ended.
fn wait_for(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Otherwise it has ended, or this kernel cannot watch it.
    if let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
        let _interrupted: Result<usize, Errno> =
            poll(&mut [PollFd::new(&process, PollFlags::IN)], None);
    }
    // A process that has ended may be in the group until its parent takes note.
    pause();
}

fn pause() {
    let _interrupted: Result<usize, Errno> = poll(&mut [], Some(&BACKOFF));
}
