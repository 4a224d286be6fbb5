//! Waits for the end of one job, and removes its group and its record. It works without an allocator, and
//! sleeps until a process ends.

use std::io;
use std::path::Path;

use paceline_cgroup::job_group::JobGroup;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::folder::Place;
use super::record::Record;

/// The pause after a process that ended just now, or a group that cannot be removed yet.
const BACKOFF: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How often the removal of an empty group is tried: the kernel may still hold it for a moment.
const MAX_TRIES: u32 = 500;

/// Waits until job `id` of user `uid` has no process, and removes what is left of it. `groups` are the lines
/// of `/proc/PID/cgroup` that name its group: it may have no record. It blocks the thread: the process does
/// nothing else.
pub fn remove_after_end(proc: &Path, uid: u32, id: &str, groups: &str) -> io::Result<()> {
    let group = JobGroup::from_text(proc, id, groups)?;
    remove(&group, &Place::own(uid), id)
}

fn remove(group: &JobGroup, place: &Place, id: &str) -> io::Result<()> {
    let mut tries = 0;
    loop {
        if let Some(pid) = group.processes().first() {
            wait_for(*pid);
        } else if let Err(error) = group.remove() {
            if tries == MAX_TRIES {
                return Err(error);
            }
            tries += 1;
            pause();
        } else {
            return Record::remove(&place.open()?, id);
        }
    }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// As if the disk were full when it was to be recorded.
    #[test]
    fn group_of_a_job_without_a_record_is_removed() {
        let machine = tempfile::tempdir().unwrap();
        let path = |name: &str| machine.path().join(name);
        let id = "job-0123456789abcdef";
        let group = path("groups/paceline").join(format!("vae-{id}"));
        for folder in [path("proc/self"), path("jobs"), group.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        let mounts = format!("1 1 0:1 / {} rw - cgroup2 cgroup2 rw\n", path("groups").display());
        fs::write(path("proc/self/mountinfo"), mounts).unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        let groups = format!("0::/paceline/vae-{id}\n");
        let found = JobGroup::from_text(&path("proc"), id, &groups).unwrap();
        // Unlike in the kernel's folders, files keep a folder here.
        fs::remove_file(group.join("cpu.max")).unwrap();
        remove(&found, &Place::at(&path("jobs")), id).unwrap();
        assert!(!group.exists());
    }
}
