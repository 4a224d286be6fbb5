//! Children of this process that do not belong to the job, such as the commands of `--on`.
//!
//! `exec` reaps every child, because it adopts the processes that the job leaves behind. So children of our
//! own are registered here: the code that reaps one leaves its status here, and the job's signals pass by.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpid,
};

/// The running ones, and the statuses of those that were reaped elsewhere.
static CHILDREN: Mutex<BTreeMap<i32, Option<ExitStatus>>> = Mutex::new(BTreeMap::new());

/// A child of our own.
#[derive(Debug)]
#[cfg_attr(not(feature = "forward"), expect(dead_code, reason = "only forwarding starts some"))]
pub(crate) struct OwnChild {
    pid: Pid,
    pub(crate) child: Child,
    status: Option<ExitStatus>,
}

#[cfg_attr(not(feature = "forward"), expect(dead_code, reason = "only forwarding starts some"))]
impl OwnChild {
    /// Starts one.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        // Another thread that reaps it meanwhile waits for the lock, and then finds it registered.
        let mut children = lock();
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
        children.insert(pid.as_raw_nonzero().get(), None);
        drop(children);
        Ok(Self { pid, child, status: None })
    }

    /// How it ended, if it has.
    pub(crate) fn poll(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let mut children = lock();
            let reaped = children.get(&self.pid.as_raw_nonzero().get()).copied().flatten();
            self.status = match reaped {
                Some(status) => Some(status),
                None => match waitpid(Some(self.pid), WaitOptions::NOHANG) {
                    Ok(ended) => ended.map(|(_, status)| exit_status(status)),
                    // It was reaped just now, and its status comes.
                    Err(Errno::CHILD | Errno::INTR) => None,
                    Err(error) => return Err(error.into()),
                },
            };
            if self.status.is_some() {
                children.remove(&self.pid.as_raw_nonzero().get());
            }
        }
        Ok(self.status)
    }

    /// Sends a signal to it and its group, unless it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let children = lock();
        if children.get(&self.pid.as_raw_nonzero().get()).is_some_and(Option::is_none) {
            // It may not have a group of its own yet. It may have ended, so errors are ignored.
            if kill_process_group(self.pid, signal).is_err() {
                kill_process(self.pid, signal).ok();
            }
        }
        drop(children);
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        lock().remove(&self.pid.as_raw_nonzero().get());
    }
}

/// Takes the status of a child that was reaped. Those of the job are ignored.
pub(crate) fn reaped(pid: Pid, status: WaitStatus) {
    // A stop is not the end.
    if (status.exited() || status.signaled())
        && let Some(known) = lock().get_mut(&pid.as_raw_nonzero().get())
    {
        *known = Some(exit_status(status));
    }
}

/// Whether this is a child of our own.
pub(crate) fn contains(pid: Pid) -> bool {
    lock().contains_key(&pid.as_raw_nonzero().get())
}

fn exit_status(status: WaitStatus) -> ExitStatus {
    ExitStatus::from_raw(status.as_raw())
}

fn lock() -> MutexGuard<'static, BTreeMap<i32, Option<ExitStatus>>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}
