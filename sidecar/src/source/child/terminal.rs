//! A terminal for the command, so that its bars keep their form and colours.
//!
//! The command runs in a session of its own, with a pseudo-terminal as its controlling terminal.
//! What it draws is passed through and read. If the user has a terminal, its keys and its size reach
//! the command; keys such as Ctrl-C become signals in the command's terminal.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Signal, ioctl_tiocsctty, kill_process, kill_process_group, setsid};
#[cfg(target_os = "linux")]
use rustix::pty::ioctl_tiocgptpeer;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::stdio::dup2_stderr;
use rustix::termios::{
    OptionalActions, OutputModes, Termios, Winsize, isatty, tcgetattr, tcgetpgrp, tcgetsid,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};

use super::signals::is_in_foreground;
use super::start_thread;
use crate::own_program::own_program;
use crate::say;

/// The name of the hidden command that enters the terminal.
pub const ENTER: &str = "enter-terminal";
/// The size where the user has no terminal: wide, so that no bar loses its numbers.
const SIZE: (u16, u16) = (50, 200);
/// The type of terminal where the environment names none.
const TERM: &str = "xterm";
/// Bytes of a read of the user's keys.
const KEYS: usize = 4096;

/// The command's terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    /// Our end.
    ours: File,
    /// The user's terminal and its settings, if its keys go to the command.
    user: Option<(OwnedFd, Termios)>,
}

impl Terminal {
    /// Opens a terminal. Returns it with the command's end of it.
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = pair()?;
        let user = user_terminal();
        if let Some((_, settings)) = &user {
            tcsetattr(&theirs, OptionalActions::Now, settings)?;
        }
        if !isatty(io::stdout()) {
            // A file or a pipe gets the command's own line ends.
            let mut settings = tcgetattr(&theirs)?;
            settings.output_modes.remove(OutputModes::ONLCR);
            tcsetattr(&theirs, OptionalActions::Now, &settings)?;
        }
        Ok((Self { ours: ours.into(), user }, theirs))
    }

    /// The command, in its terminal.
    pub(super) fn command(&self, command: &[OsString], theirs: &OwnedFd) -> io::Result<Command> {
        let end = || theirs.try_clone().map(Stdio::from);
        // Only a process of its own can become the first of a session. It then becomes the command.
        let mut entering = Command::new(own_program()?);
        // Its standard error stays ours until it becomes the command, for what it may have to say.
        entering.arg(ENTER).arg("--").args(command).stdout(end()?);
        if self.user.is_some() {
            entering.stdin(end()?);
        }
        if env::var_os("TERM").is_none_or(|term| term.is_empty()) {
            entering.env("TERM", TERM);
        }
        Ok(entering)
    }

    /// What the command draws.
    pub(super) fn output(&self) -> io::Result<File> {
        self.ours.try_clone()
    }

    /// Passes the user's keys on until the process ends, if the user has a terminal.
    pub(super) fn pass_keys(&self) -> io::Result<()> {
        let Some((user, _)) = &self.user else { return Ok(()) };
        let mut from = File::from(fcntl_dupfd_cloexec(user, 3)?);
        let mut to = self.ours.try_clone()?;
        start_thread("pass keys", move || {
            let mut keys = vec![0; KEYS];
            loop {
                match from.read(&mut keys) {
                    Ok(0) => return,
                    Ok(read) => {
                        if to.write_all(keys.get(..read).unwrap_or_default()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(())
    }

    /// Gives the command's terminal the size of the user's.
    pub(super) fn resize(&self) {
        // A program that asks for the size then gets the one before.
        tcsetwinsize(&self.ours, size()).ok();
    }

    /// Tells the programs in the command's terminal that it is gone, as the kernel does at a hang-up.
    pub(super) fn hang_up(&self) {
        // A program may have ended just now, so errors are ignored.
        if let Ok(leader) = tcgetsid(&self.ours) {
            kill_process(leader, Signal::HUP).ok();
        }
        if let Ok(group) = tcgetpgrp(&self.ours) {
            kill_process_group(group, Signal::HUP).ok();
        }
    }

    /// Takes the user's terminal and its size over: at the start, and after the shell had it.
    pub(super) fn resume(&self) {
        // A background process that changed the settings would be stopped.
        if let Some((user, settings)) = &self.user
            && is_in_foreground()
        {
            let mut raw = settings.clone();
            raw.make_raw();
            say::set_raw(tcsetattr(user, OptionalActions::Now, &raw).is_ok());
        }
        self.resize();
    }
}

/// The user's terminal, which is taken over for the command and given back when this is dropped.
#[derive(Debug)]
pub(super) struct Borrowed(Arc<Terminal>);

impl Borrowed {
    /// Takes the user's terminal over, before the command draws.
    pub(super) fn new(terminal: Terminal) -> Self {
        terminal.resume();
        Self(Arc::new(terminal))
    }

    /// The command's terminal.
    pub(super) fn terminal(&self) -> &Arc<Terminal> {
        &self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some((user, settings)) = &self.0.user
            && is_in_foreground()
        {
            // It had these settings when we came, so they are valid.
            tcsetattr(user, OptionalActions::Drain, settings).ok();
            say::set_raw(false);
        }
    }
}

/// Becomes a command that has its standard output as its controlling terminal, and draws its errors
/// there, too. Returns only the error, with standard error as it was.
pub fn enter(command: &[OsString]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    let entered = setsid()
        .and_then(|_| ioctl_tiocsctty(io::stdout()))
        .and_then(|()| fcntl_dupfd_cloexec(io::stderr(), 3))
        .and_then(|before| dup2_stderr(io::stdout()).map(|()| before));
    match entered {
        Err(error) => error.into(),
        Ok(before) => {
            let error = Command::new(program).args(arguments).exec();
            dup2_stderr(&before).ok();
            // The user's terminal is in raw mode meanwhile.
            let is_raw = |modes: Termios| !modes.output_modes.contains(OutputModes::OPOST);
            say::set_raw(tcgetattr(&before).is_ok_and(is_raw));
            error
        }
    }
}

/// The user's terminal, if standard input is one. A background process must not read its keys.
fn user_terminal() -> Option<(OwnedFd, Termios)> {
    let input = io::stdin();
    if !is_in_foreground() {
        return None;
    }
    let settings = tcgetattr(&input).ok()?;
    Some((input.as_fd().try_clone_to_owned().ok()?, settings))
}

/// Both ends of a new terminal.
#[cfg(target_os = "linux")]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    // By its name where the kernel is older than 4.13.
    let theirs = match ioctl_tiocgptpeer(&ours, flags) {
        Ok(theirs) => theirs,
        Err(_) => by_name(&ours)?,
    };
    Ok((ours, theirs))
}

#[cfg(not(target_os = "linux"))]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = by_name(&ours)?;
    Ok((ours, theirs))
}

fn by_name(ours: &OwnedFd) -> io::Result<OwnedFd> {
    let name = ptsname(ours, Vec::new())?;
    let path = OsStr::from_bytes(name.as_bytes());
    Ok(OpenOptions::new().read(true).write(true).open(path)?.into())
}

/// The size of the user's terminal, else that of the environment, else a wide one.
fn size() -> Winsize {
    let sizes = [tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr()), tcgetwinsize(io::stdin())];
    let known = sizes.into_iter().flatten().find(|size| size.ws_row > 0 && size.ws_col > 0);
    known.unwrap_or_else(|| {
        let number = |name| env::var(name).ok()?.parse().ok().filter(|number| *number > 0);
        let (rows, columns) = SIZE;
        Winsize {
            ws_row: number("LINES").unwrap_or(rows),
            ws_col: number("COLUMNS").unwrap_or(columns),
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    })
}
