//! The command's process, and those that it leaves behind.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::set_child_subreaper;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::flow::Flow;
use super::signals::{Target, is_in_foreground};
use crate::own_children;
use crate::say::say;

/// Time between two looks at what still runs.
const LOOK: Duration = Duration::from_millis(10);
/// The same once the user knows that we wait.
const PATIENT_LOOK: Duration = Duration::from_millis(100);
/// After so many looks without a byte, output is silent.
const SILENT_LOOKS: u32 = 100;
/// The most processes that a message names.
const MAX_NAMED: usize = 5;
/// Signals by which a terminal stops programs.
const STOPPING: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// Makes processes whose parent ends children of ours, so that signals still reach them and none
/// stays as a zombie.
pub(super) fn adopt() {
    // Linux has it since 3.4; without it, orphans go to the first process as usual.
    #[cfg(target_os = "linux")]
    set_child_subreaper(Some(getpid())).ok();
}

/// Leaves such processes to the system again.
pub(super) fn disown() {
    #[cfg(target_os = "linux")]
    set_child_subreaper(None).ok();
}

/// Waits for the command's end. Reaps orphans meanwhile.
pub(super) fn wait_for(launcher: Pid) -> io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) if pid == launcher && status.stopped() => {
                stopped(status.stopping_signal().and_then(Signal::from_named_raw));
            }
            Ok(Some((pid, status))) if pid == launcher => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(Some((pid, status))) => own_children::reaped(pid, status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The command was stopped. By a key of the terminal, the shell waits for us to stop as well.
fn stopped(by: Option<Signal>) {
    if by.is_some_and(|signal| STOPPING.contains(&signal)) && is_in_foreground() {
        // It cannot fail: we send it to ourselves.
        kill_process(getpid(), Signal::STOP).ok();
    }
}

/// Waits until no process holds the command's output any more. A process that outlives the command
/// would be killed by its next line if that were not read.
///
/// The first process of a container takes all others with it. There, a command that has failed ends
/// its container after a second of silence, so that a worker that hangs does not hide the failure.
pub(super) fn wait_for_outputs(
    closed: &Receiver<()>,
    flow: &Flow,
    target: &Target,
    status: ExitStatus,
) {
    let ends_all = std::process::id() == 1 && !status.success();
    let (mut silent, mut passed, mut said) = (0, flow.bytes(), false);
    while !target.is_given_up() {
        let look = if said { PATIENT_LOOK } else { LOOK };
        if closed.recv_timeout(look) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        reap();
        let bytes = flow.bytes();
        let flows = bytes != passed || flow.is_writing();
        silent = if flows { 0 } else { silent + 1 };
        passed = bytes;
        if silent < SILENT_LOOKS || said {
            continue;
        }
        if ends_all {
            return;
        }
        said = true;
        say(format_args!(
            "the command has ended ({status}), but {} still holds its output; reading on until that ends",
            named(&children()),
        ));
    }
}

/// Reaps orphans that have ended.
fn reap() {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        own_children::reaped(pid, status);
    }
}

/// A process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    name: String,
}

/// Our children, except those that have ended and those that do not belong to the job. Only Linux lists them.
pub(super) fn children() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ours = getpid();
    let processes = entries.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, parent) = parse(&stat)?;
        (Pid::from_raw(parent) == Some(ours)).then_some((pid, name.to_owned()))
    });
    let pids = processes.filter_map(|(pid, name)| Some(Process { pid: Pid::from_raw(pid)?, name }));
    pids.filter(|process| !own_children::contains(process.pid)).collect()
}

/// The name and the parent of a process that has not ended, from `/proc/PID/stat`.
fn parse(stat: &str) -> Option<(&str, i32)> {
    // The name may contain anything, also brackets.
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some((name, parent))
}

/// Processes in a message.
fn named(processes: &[Process]) -> String {
    let mut text = String::new();
    for (at, process) in processes.iter().take(MAX_NAMED).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let name: String = process.name.chars().filter(|c| !c.is_control()).collect();
        // Writing to a string cannot fail.
        write!(text, "{comma}process {} ({name})", process.pid.as_raw_nonzero()).ok();
    }
    match processes.len() {
        0 => "another process".to_owned(),
        all if all > MAX_NAMED => format!("{text} or one of {} more", all - MAX_NAMED),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_read_whatever_its_name_contains() {
        assert_eq!(parse("12 (python3) S 7 12 12 0 -1"), Some(("python3", 7)));
        assert_eq!(parse("12 (a) R 1 (b)) S 7 12"), Some(("a) R 1 (b)", 7)));
        assert_eq!(parse("12 (gone) Z 7 12"), None);
        assert_eq!(parse("12 (cut"), None);
    }

    #[test]
    fn own_child_is_listed_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        let is_listed = || children().iter().any(|process| process.pid == pid);
        assert!(is_listed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_listed());
    }

    #[test]
    fn message_names_few_processes_and_counts_the_others() {
        let process = |pid| Process { pid: Pid::from_raw(pid).unwrap(), name: "worker".to_owned() };
        assert_eq!(named(&[]), "another process");
        assert_eq!(named(&[process(4), process(5)]), "process 4 (worker), process 5 (worker)");
        let many: Vec<_> = (1..=8).map(process).collect();
        assert!(named(&many).ends_with("process 5 (worker) or one of 3 more"));
    }
}
