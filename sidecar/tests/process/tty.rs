//! `exec --tty`: the command's own terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use paceline_reporter::wire::State;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::program::{Bench, Running, line, wait_for};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline-sidecar");

fn in_terminal(bench: &Bench, script: &str) -> Command {
    let mut command = bench.command(&["exec", "--tty", "--", "sh", "-c", script]);
    command.stdin(Stdio::null());
    command
}

#[test]
fn command_has_a_terminal_of_the_given_size() {
    let bench = Bench::new();
    let script = "test -t 1 && test -t 2 && echo both; stty size </dev/tty; echo \"$TERM\"; exit 5";
    let mut command = in_terminal(&bench, script);
    command.env("COLUMNS", "77").env("LINES", "33").env_remove("TERM");
    let output = command.output().unwrap();
    // No terminal is here, so the line ends are those of the command.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "both\n33 77\nxterm\n");
    assert_eq!(output.status.code(), Some(5));
    let missing = bench.run(&["exec", "--tty", "--", "/no/such/program"]);
    assert_eq!((missing.status.code(), missing.stdout), (Some(127), Vec::new()));
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("cannot run /no/such/program: "), "{said}");
}

#[test]
fn command_in_a_terminal_is_read_and_gets_signals() {
    let bench = Bench::new();
    let script = format!(
        "trap 'exit 5' TERM; printf %s '{}{}'; while true; do sleep 0.05; done",
        line(1),
        line(2)
    );
    let mut command = in_terminal(&bench, &script);
    let mut running = Running(command.stdout(Stdio::null()).spawn().unwrap());
    bench.until(|progress| {
        (progress.state, progress.step, progress.eval.count) == (State::Running, Some(2), 2)
    });
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(5));
}

#[test]
fn reader_that_goes_away_hangs_the_terminal_up() {
    // One command ends by the hang-up, another one ignores it and goes on to its end.
    for (trap, code) in [("", 129), ("trap '' HUP;", 7)] {
        let bench = Bench::new();
        let script = format!(
            "{trap} i=0; while [ $i -lt 4000 ]; do i=$((i+1)); \
             echo {}; done; exit 7",
            "x".repeat(200)
        );
        let mut command = in_terminal(&bench, &script);
        let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut output = running.0.stdout.take().unwrap();
        output.read_exact(&mut [0; 100]).unwrap();
        drop(output);
        assert_eq!(running.0.wait().unwrap().code(), Some(code), "{trap}");
    }
}

/// A user's terminal with a program in its foreground.
pub(crate) struct User {
    keys: File,
    shown: Arc<Mutex<String>>,
    /// The program's end, which stays open so that what was shown can be read.
    pub(crate) theirs: OwnedFd,
    /// The terminal's modes before the program began.
    pub(crate) before: LocalModes,
    pub(crate) program: Running,
}

impl User {
    /// Runs a command.
    pub(crate) fn runs(bench: &Bench, command: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        let before = tcgetattr(&theirs).unwrap().local_modes;
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let words = [&["enter-terminal", "--"], command].concat();
        let mut command = bench.command(&words);
        command.stdin(end()).stdout(end()).stderr(end()).env("LC_ALL", "C");
        let program = Running(command.spawn().unwrap());
        let shown = Arc::<Mutex<String>>::default();
        let (mut from, to) = (File::from(ours.try_clone().unwrap()), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = from.read(&mut bytes) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap()));
            }
        });
        Self { keys: ours.into(), shown, theirs, before, program }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn sees(&self, text: &str) {
        wait_for(|| self.shown.lock().unwrap().contains(text).then_some(()));
    }
}

#[test]
fn keys_and_size_of_the_users_terminal_reach_the_command() {
    let bench = Bench::new();
    let script = "trap 'echo interrupted' INT; trap 'stty size' WINCH; echo ready; \
                  while true; do if read -r word; then echo \"got $word\"; \
                  [ \"$word\" != end ] || exit 6; fi; done";
    let mut user = User::runs(&bench, &[PROGRAM, "exec", "--tty", "--", "sh", "-c", script]);
    user.sees("ready\r\n");
    user.types("hello\r");
    user.sees("got hello\r\n");
    user.types("\u{3}");
    user.sees("interrupted\r\n");
    let size = Winsize { ws_row: 21, ws_col: 43, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&user.keys, size).unwrap();
    user.sees("21 43\r\n");
    user.types("end\r");
    assert_eq!(user.program.0.wait().unwrap().code(), Some(6));
    let after = tcgetattr(&user.theirs).unwrap().local_modes;
    assert_eq!(after, user.before, "the terminal is given back");
}

#[test]
fn signal_of_a_process_reaches_the_command_in_the_foreground() {
    let bench = Bench::new();
    let script =
        "trap 'echo got $((6 * 7)); exit 3' INT; echo ready; while true; do sleep 0.05; done";
    let mut user = User::runs(&bench, &[PROGRAM, "exec", "--", "sh", "-c", script]);
    user.sees("ready\r\n");
    user.program.signal(Signal::INT);
    user.sees("got 42\r\n");
    assert_eq!(user.program.0.wait().unwrap().code(), Some(3));
}

#[test]
fn key_reaches_a_command_in_a_process_group_of_its_own_once() {
    let bench = Bench::new();
    // `set -m` gives the command of the inner shell a group of its own.
    let inner =
        "trap 'echo got $((6 * 7)); exit 4' INT; echo ready; while true; do sleep 0.05; done";
    let leads =
        format!("import os, sys; os.setpgid(0, 0); os.execvp('sh', ['sh', '-c', {inner:?}])");
    let mut user = User::runs(&bench, &[PROGRAM, "exec", "--", "python3", "-c", &leads]);
    user.sees("ready\r\n");
    user.types("\u{3}");
    user.sees("got 42\r\n");
    assert_eq!(user.program.0.wait().unwrap().code(), Some(4));
}

#[test]
fn command_that_a_key_stops_gives_the_terminal_to_the_shell() {
    stop_by_a_key("");
}

#[test]
fn command_with_another_input_is_stopped_by_a_key_as_well() {
    stop_by_a_key("</dev/null");
}

fn stop_by_a_key(input: &str) {
    let bench = Bench::new();
    let mut user = User::runs(&bench, &["sh", "-i"]);
    // It starts no process: a shell that is stopped while it starts one by `vfork` stays in the kernel.
    let script = "echo loop$((1))ing; while [ ! -e go ]; do :; done; echo went on";
    let folder = bench.path("");
    user.types(&format!("cd {}; {PROGRAM} exec -- sh -c '{script}' {input}\r", folder.display()));
    user.sees("loop1ing");
    user.types("\u{1a}");
    user.sees("Stopped");
    user.types("touch go; echo to$((1))uched; fg\r");
    user.sees("to1uched");
    user.sees("went on\r\n");
    user.types("exit $((40 + 2))\r");
    assert_eq!(user.program.0.wait().unwrap().code(), Some(42));
}
