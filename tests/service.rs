//! What the program tells a service manager, over a real socket.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paceline_system_tests::{WAIT_TIMEOUT, program};
use rustix::process::{Pid, Signal, kill_process};

/// The watchdog's time: a message comes at least every second.
const WATCHDOG: Duration = Duration::from_secs(3);

/// A process, killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }
}

/// An allocator of jobs outside containers, which needs no engine. It writes no limit.
fn allocator(folder: &tempfile::TempDir) -> Command {
    let path = |name: &str| folder.path().join(name);
    let mut command = Command::new(program("paceline").unwrap());
    command
        .args(["run", "--runtime", "processes", "--dry-run", "--policy", "none"])
        .args(["--listen", "none", "--state-dir"])
        .arg(path("state"))
        .env("PACELINE_JOBS", path("jobs"))
        .env("PACELINE_LOCKS", path("locks"))
        .env("PACELINE_CONTROL", path("control.sock"))
        .env_remove("PACELINE_LISTEN")
        .stderr(Stdio::null());
    std::fs::create_dir(path("jobs")).unwrap();
    command
}

fn start(mut command: Command, socket: &str) -> Running {
    let micros = WATCHDOG.as_micros().to_string();
    Running(command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", micros).spawn().unwrap())
}

/// The next message; `None` if none comes within `limit`.
fn within(socket: &UnixDatagram, limit: Duration) -> Option<String> {
    socket.set_read_timeout(Some(limit)).unwrap();
    let mut bytes = [0; 4096];
    match socket.recv(&mut bytes) {
        Ok(length) => Some(String::from_utf8(bytes.get(..length).unwrap().to_vec()).unwrap()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            None
        }
    }
}

fn next(socket: &UnixDatagram) -> String {
    within(socket, WAIT_TIMEOUT).expect("a message comes")
}

#[test]
fn run_says_that_it_is_ready_lives_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut run = start(allocator(&folder), path.to_str().unwrap());
    assert_eq!(next(&socket), "READY=1\nSTATUS=policy none, dry run: 0 managed jobs\nWATCHDOG=1");
    for _ in 0..2 {
        assert_eq!(next(&socket), "WATCHDOG=1");
    }
    run.signal(Signal::TERM);
    // A sign of life may be on its way.
    let last = std::iter::repeat_with(|| next(&socket)).find(|message| message != "WATCHDOG=1");
    assert_eq!(last.unwrap(), "STOPPING=1\nSTATUS=restores limits");
    assert!(run.0.wait().unwrap().success());
    assert_eq!(within(&socket, Duration::from_millis(1)), None);
}

#[test]
fn stopped_program_gives_no_sign_of_life() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("paceline-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    let run = start(allocator(&folder), &format!("@{name}"));
    assert!(next(&socket).starts_with("READY=1\n"));
    run.signal(Signal::STOP);
    // What was sent before the stop.
    let sent = std::iter::from_fn(|| within(&socket, WATCHDOG)).take(20).count();
    assert!(sent < 20, "a stopped program sends nothing");
    assert_eq!(within(&socket, WATCHDOG), None);
    run.signal(Signal::CONT);
    assert_eq!(next(&socket), "WATCHDOG=1");
}

#[test]
fn without_an_engine_nothing_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let host = format!("unix://{}/no.sock", folder.path().display());
    let mut command = Command::new(program("paceline").unwrap());
    command.args(["--host", &host, "run", "--state-dir"]).arg(folder.path().join("state"));
    let mut run = start(command, path.to_str().unwrap());
    assert_eq!(run.0.wait().unwrap().code(), Some(3));
    assert_eq!(within(&socket, Duration::from_millis(1)), None);
}

#[test]
fn a_signal_ends_a_run_whose_engine_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let engine = folder.path().join("silent.sock");
    let silent = UnixListener::bind(&engine).unwrap();
    let mut command = Command::new(program("paceline").unwrap());
    command
        .args(["--host", &format!("unix://{}", engine.display()), "run", "--state-dir"])
        .arg(folder.path().join("state"))
        .stderr(Stdio::null());
    let mut run = Running(command.spawn().unwrap());
    let _connected = silent.accept().unwrap();
    run.signal(Signal::TERM);
    // Without the signal it would give the engine up, with another exit code.
    assert_eq!(run.0.wait().unwrap().code(), Some(0));
}
