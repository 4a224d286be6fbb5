//! Signals to the sidecar, which are meant for the command.

use std::fs::{self, File};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;
use signal_hook::iterator::{Handle, SignalsInfo};

use super::terminal::Terminal;
use super::{family, start_thread};

/// Signals that are forwarded to the command: all whose default is to end or to stop a program, or
/// that programs use for messages. The others are
///
/// - those that cannot be caught (`KILL`, `STOP`), or that a fault of our own causes (`SEGV`, `BUS`,
///   `ILL`, `FPE`, `ABRT`, `TRAP`, `SYS`);
/// - those that the kernel sends for our own doing: `CHLD`, `PIPE`, `TTIN`, `TTOU`, `XFSZ`;
/// - real-time signals, which have no names.
const FORWARDED: &[Signal] = &[
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::URG,
    #[cfg(target_os = "linux")]
    Signal::POWER,
    Signal::XCPU,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];
/// Signals that a terminal sends for keys and size changes.
const TERMINAL: [Signal; 4] = [Signal::INT, Signal::QUIT, Signal::WINCH, Signal::TSTP];
/// Signals that ask for the end.
const ENDING: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// Registers the signals, before the command exists, so that none is missed. One that is ignored stays
/// ignored, for this process and for the command: `nohup` relies on it, and `&` in a script.
pub(super) fn register() -> io::Result<SignalsInfo<WithRawSiginfo>> {
    let ignored = ignored();
    let is_taken = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    SignalsInfo::new(FORWARDED.iter().map(|signal| signal.as_raw()).filter(is_taken))
}

/// Makes the ends of children known where the program that started this one ignores them. The kernel would
/// drop their exit codes.
pub fn heed_children() {
    if ignored() >> (SIGCHLD - 1) & 1 == 1 {
        // Any handler will do. Programs that this one starts have the default again.
        drop(signal_hook::flag::register(SIGCHLD, Arc::default()));
    }
}

/// The signals that are ignored now: bit 0 for signal 1, and so on. None where Linux does not show them.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

/// The command's process, which gets the signals.
#[derive(Debug)]
pub(super) struct Target {
    pid: Pid,
    /// It names the process also after its number was given to another one.
    #[cfg(target_os = "linux")]
    descriptor: Option<OwnedFd>,
    ended: AtomicBool,
    /// Whether the end was asked for when no process of ours was left.
    given_up: AtomicBool,
}

impl Target {
    /// The process with this number.
    pub(super) fn new(pid: Pid) -> Self {
        Self {
            pid,
            #[cfg(target_os = "linux")]
            descriptor: pidfd_open(pid, PidfdFlags::empty()).ok(),
            ended: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        }
    }

    /// The command has ended: processes that it left behind get the signals now.
    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the command is in the process group of this process. It may have set up another one.
    fn is_in_our_group(&self) -> bool {
        getpgid(Some(self.pid)).is_ok_and(|group| group == getpgrp())
    }

    /// Whether the end was asked for when no process of ours was left.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn send(&self, signal: Signal) {
        // A process may have ended just now, so errors are ignored.
        if !self.ended.load(Ordering::Relaxed) {
            self.send_to_command(signal).ok();
            return;
        }
        let orphans = family::children();
        for orphan in &orphans {
            kill_process(orphan.pid, signal).ok();
        }
        if orphans.is_empty() && ENDING.contains(&signal) {
            self.given_up.store(true, Ordering::Relaxed);
        }
    }
}

impl Target {
    #[cfg(target_os = "linux")]
    fn send_to_command(&self, signal: Signal) -> rustix::io::Result<()> {
        match &self.descriptor {
            Some(descriptor) => pidfd_send_signal(descriptor, signal),
            None => kill_process(self.pid, signal),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send_to_command(&self, signal: Signal) -> rustix::io::Result<()> {
        kill_process(self.pid, signal)
    }
}

/// Starts the thread that forwards signals once there is a command.
pub(super) fn forward(
    mut signals: SignalsInfo<WithRawSiginfo>,
    begun: Receiver<Arc<Target>>,
    terminal: Option<Arc<Terminal>>,
) -> io::Result<Handle> {
    let handle = signals.handle();
    start_thread("signals", move || {
        let Ok(target) = begun.recv() else { return };
        for info in signals.forever() {
            let Some(signal) = Signal::from_named_raw(info.si_signo) else { continue };
            match &terminal {
                // The kernel tells the programs in the command's terminal.
                Some(terminal) if signal == Signal::WINCH => {
                    terminal.resize();
                    continue;
                }
                Some(terminal) if signal == Signal::CONT => terminal.resume(),
                // The terminal signals the whole foreground group. If the command is in it, a second
                // signal would be harmful: many programs abort on a second Ctrl-C.
                None if TERMINAL.contains(&signal)
                    && is_from_kernel(info.si_code)
                    && is_in_foreground()
                    && target.is_in_our_group() =>
                {
                    continue;
                }
                _ => {}
            }
            target.send(signal);
        }
    })?;
    Ok(handle)
}

/// Whether the kernel has sent a signal, as for a key of the terminal: a process has codes of at most 0.
#[cfg(target_os = "linux")]
const fn is_from_kernel(code: i32) -> bool {
    code > 0
}

/// Elsewhere the codes differ.
#[cfg(not(target_os = "linux"))]
const fn is_from_kernel(_: i32) -> bool {
    true
}

/// Whether this process is in the foreground group of its terminal. The standard streams may be files.
pub(super) fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}
