//! Runs a shell command for events.
//!
//! The command is a session of its own: it has no terminal, and gets neither the job's signals nor the
//! keys of the user's terminal. It never holds the job's output.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::ioctl_fionbio;
use rustix::process::{Signal, setsid};

use super::{Ending, Event, EventSet, Item, Outcome, Takes, Target};
use crate::clock::Clock;
use crate::own_children::OwnChild;
use crate::own_program::own_program;

/// The name of the hidden command that begins a session.
pub const RUN: &str = "run-hook";
/// The time that a command may take where no other is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// A command that gets SIGTERM ends within this time, or gets SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_millis(300);
/// The most bytes of its standard error that are kept: the last ones.
const MAX_KEPT: usize = 1024;
/// The most characters of it in a message.
const MAX_SHOWN: usize = 200;

/// Which command runs for which events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    events: EventSet,
    command: String,
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected EVENTS=COMMAND, for example finished,failed='notify-send done'";
        let (events, command) = text.split_once('=').ok_or(expected)?;
        let events = events.parse()?;
        if command.trim().is_empty() {
            return Err(expected.to_owned());
        }
        Ok(Self { events, command: command.to_owned() })
    }
}

/// A command for events. Runs one at a time.
#[derive(Debug)]
pub struct Hook {
    rule: Rule,
    timeout: Duration,
    clock: Clock,
}

impl Hook {
    /// The command of a rule, which may take so long.
    pub fn new(rule: Rule, timeout: Duration) -> Self {
        Self { rule, timeout, clock: Clock::start() }
    }

    fn start(&self, event: &Event) -> io::Result<OwnChild> {
        let mut command = Command::new(own_program()?);
        command.args([RUN, "--", "sh", "-c", &self.rule.command]);
        // A command that runs the sidecar again would otherwise run itself again.
        command.env("PACELINE_EVENT", event.kind.name()).env_remove("PACELINE_ON");
        command.stdin(input(event)?).stdout(Stdio::null()).stderr(Stdio::piped());
        OwnChild::spawn(&mut command)
    }

    /// Waits for the end, and sees to it.
    fn watch(&self, child: &mut OwnChild, ending: &Ending) -> Result<(), String> {
        let mut errors = child.child.stderr.take().map(Errors::new);
        let began = self.clock.elapsed();
        let mut asked_at = None;
        loop {
            if let Some(errors) = &mut errors {
                errors.read();
            }
            let ended = child.poll().map_err(|error| format!("cannot wait for it: {error}"))?;
            if let Some(status) = ended {
                let shown = errors.map(Errors::last_line).unwrap_or_default();
                return self.judge(status, asked_at.is_some(), &shown);
            }
            let now = self.clock.elapsed();
            let left = ending.remaining(self.timeout.saturating_sub(now.saturating_sub(began)));
            match asked_at {
                None if left.is_zero() => {
                    child.signal(Signal::TERM);
                    asked_at = Some(now);
                }
                Some(at) if now.saturating_sub(at) >= TERM_TIMEOUT => child.signal(Signal::KILL),
                _ => {}
            }
            thread::park_timeout(LOOK);
        }
    }

    fn judge(&self, status: ExitStatus, was_ended: bool, shown: &str) -> Result<(), String> {
        if was_ended {
            let limit = self.timeout.as_secs_f64();
            return Err(format!(
                "the command took too long and was ended; it may take {limit} s (--on-timeout), and \
                 what --flush-timeout allows after the job's end"
            ));
        }
        if status.success() {
            Ok(())
        } else {
            Err(format!("the command ended with {status}{shown}"))
        }
    }
}

impl Target for Hook {
    fn name(&self) -> String {
        format!("on:{}", self.rule.events)
    }

    fn takes(&self) -> Takes {
        Takes::Events(self.rule.events)
    }

    fn send(&mut self, item: &Item, ending: &Ending) -> Result<Outcome, String> {
        let Item::Event(event) = item else { return Ok(Outcome::Nothing) };
        let mut child = self.start(event).map_err(|error| format!("cannot run sh: {error}"))?;
        self.watch(&mut child, ending)?;
        Ok(Outcome::Sent)
    }
}

/// Becomes a command in a session of its own. Returns only if that fails.
pub fn become_command(command: &[std::ffi::OsString]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = setsid() {
        return error.into();
    }
    Command::new(program).args(arguments).exec()
}

/// A file in memory with the event, so that the command may ignore it, and nothing waits for a pipe.
fn input(event: &Event) -> io::Result<File> {
    let mut file = File::from(memfd_create("event", MemfdFlags::CLOEXEC)?);
    file.write_all(event.json().as_bytes())?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file)
}

/// The last bytes of a command's standard error.
#[derive(Debug)]
struct Errors {
    from: ChildStderr,
    kept: Vec<u8>,
}

impl Errors {
    fn new(from: ChildStderr) -> Self {
        // If it fails, a read may wait for the command's end, within its time.
        ioctl_fionbio(&from, true).ok();
        Self { from, kept: Vec::new() }
    }

    /// Takes what has come, but at most so much that a flood does not hold us.
    fn read(&mut self) {
        let mut piece = [0; 4096];
        for _ in 0..16 {
            let Ok(length @ 1..) = self.from.read(&mut piece) else { return };
            self.kept.extend_from_slice(piece.get(..length).unwrap_or_default());
            let too_many = self.kept.len().saturating_sub(MAX_KEPT);
            self.kept.drain(..too_many);
        }
    }

    fn last_line(mut self) -> String {
        self.read();
        let text = String::from_utf8_lossy(&self.kept);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let last: String =
            last.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect();
        if last.is_empty() { last } else { format!(": {last}") }
    }
}
