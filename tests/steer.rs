//! The commands that inspect and control a running allocator.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "steer/fake_engine.rs"]
mod fake_engine;
#[path = "steer/reload.rs"]
mod reload;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use paceline_system_tests::{Allocator, FakeDaemon, example, program, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use tokio::task::JoinSet;

/// Runs one command with that daemon's socket and log.
async fn paceline(daemon: &FakeDaemon, line: &str) -> (Option<i32>, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = Allocator::command(&words).unwrap();
    command
        .env("PACELINE_CONTROL", daemon.socket())
        .env("PACELINE_STATE_DIR", daemon.state())
        .env_remove("DOCKER_HOST");
    let Output { status, stdout, stderr } = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test]
async fn every_order_reaches_the_allocator_and_its_answer_is_shown() {
    let daemon = FakeDaemon::open(example()).unwrap();
    for (line, said) in [
        ("manage vae", "done: manage vae\n"),
        ("release vae", "done: release vae\n"),
        ("pin vae 25%", "done: pin vae at 25.0 %\n"),
        ("set vae --objective -0.5", "done: set vae objective -0.5\n"),
        ("guard vae canary on", "done: switch the canary guard of vae on\n"),
        ("log-level debug", "done: log by the filter debug\n"),
    ] {
        assert_eq!(paceline(&daemon, line).await, (Some(0), said.to_owned(), String::new()));
    }
    let ordered = daemon.ordered();
    assert_eq!(ordered.len(), 6);
    assert!(ordered.iter().all(|(_, uid)| *uid == rustix::process::geteuid().as_raw()));
    let (code, said, _) = paceline(&daemon, "release vae --json").await;
    assert_eq!((code, said.as_str()), (Some(0), "{\"done\":\"done: release vae\"}\n"));
    let (_, said, _) = paceline(&daemon, "audit tail -n 1").await;
    assert!(said.contains("ordered to release vae; done"), "{said}");
}

#[tokio::test]
async fn refused_order_gives_one_line_and_exit_code() {
    let daemon = FakeDaemon::open(example()).unwrap();
    for (line, code, part) in [
        ("pin missing 0.5", 2, "unknown job \"missing\""),
        ("manage never", 2, "never is never to be\\u{1b}[31m"),
    ] {
        let (ended, said, error) = paceline(&daemon, line).await;
        assert_eq!((ended, said.as_str(), error.lines().count()), (Some(code), "", 1), "{error}");
        assert!(error.contains(part), "{error}");
    }
    let (code, said, _) = paceline(&daemon, "pin missing 0.5 --json").await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["refused"]["refusal"]), (Some(2), &Value::from("unknown")));
    for command in ["status", "top"] {
        let words = [command, "--control", "/no/such/socket"];
        let output = Allocator::command(&words).unwrap().output().await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains("no allocator answers at /no/such/socket"), "{error}");
    }
}

#[tokio::test]
async fn concurrent_orders_are_all_done_and_logged() {
    let daemon = Arc::new(FakeDaemon::open(example()).unwrap());
    let mut clients = JoinSet::new();
    for number in 0..12 {
        let daemon = Arc::clone(&daemon);
        clients.spawn(async move { paceline(&daemon, &format!("pin job{number} 0.5")).await.0 });
    }
    assert_eq!(clients.join_all().await, [Some(0); 12]);
    let mut names: Vec<String> = daemon
        .ordered()
        .into_iter()
        .filter_map(|(command, _)| command.name().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12);
    let (_, said, _) = paceline(&daemon, "audit tail -n 100").await;
    assert_eq!(said.lines().filter(|line| line.contains("; done: ")).count(), 12, "{said}");
    let (code, said, error) = paceline(&daemon, "audit verify").await;
    assert_eq!(code, Some(0), "{said}{error}");
}

#[tokio::test]
async fn job_names_cannot_control_the_terminal() {
    let daemon = FakeDaemon::open(example()).unwrap();
    let hostile = example().jobs.pop().unwrap().job;
    for line in ["status", "top --times 1", "audit tail", "status --json", "audit tail --json"] {
        let (code, said, error) = paceline(&daemon, line).await;
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains("owned"), "{line}: {said}");
        let obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!said.chars().any(obeyed), "{line}: {said:?}");
    }
    let mut command = Allocator::command(&["explain", &hostile, "--state-dir"]).unwrap();
    let output = command.arg(daemon.state()).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("is given 50.0 %") && said.lines().count() == 1, "{said:?}");
    assert!(!said.contains('\x1b') && !said.contains('\u{9b}'), "{said:?}");
}

#[tokio::test]
async fn explain_reads_the_log_and_names_unknown_jobs() {
    let daemon = FakeDaemon::open(example()).unwrap();
    let (code, said, error) = paceline(&daemon, "explain vae").await;
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("decision 1: vae is given 50.0 % (CL): converged"), "{said}");
    let (_, json, _) = paceline(&daemon, "explain vae --json").await;
    let entry: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&entry["what"], &entry["seq"]), (&Value::from("decided"), &Value::from(2)));
    let (code, _, error) = paceline(&daemon, "explain mnist").await;
    assert_eq!(code, Some(2));
    assert!(error.contains("no job mnist; it contains vae"), "{error}");
}

#[tokio::test]
async fn tampered_log_is_detected() {
    let daemon = FakeDaemon::open(example()).unwrap();
    let (code, said, _) = paceline(&daemon, "audit verify").await;
    assert_eq!(code, Some(0), "{said}");
    let hash = said.lines().last().unwrap().strip_prefix("last hash ").unwrap().to_owned();
    let (code, _, _) = paceline(&daemon, &format!("audit verify --anchor {hash}")).await;
    assert_eq!(code, Some(0));
    let path = daemon.state().join("audit.jsonl");
    let text = std::fs::read_to_string(&path).unwrap().replacen("converged", "deserved", 1);
    std::fs::write(&path, text).unwrap();
    let (code, said, error) = paceline(&daemon, "audit verify").await;
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    assert!(said.contains("audit.jsonl, line 2: its text does not match its hash"), "{said}");
    let other = format!("audit verify --anchor {}", "0".repeat(64));
    let (code, said, _) = paceline(&daemon, &format!("{other} --json")).await;
    let verdict: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &verdict["anchored"]), (Some(1), &Value::from(false)));
}

#[tokio::test]
async fn the_snapshot_is_given_as_json() {
    let daemon = FakeDaemon::open(example()).unwrap();
    let (_, said, _) = paceline(&daemon, "status --json").await;
    assert_eq!(
        serde_json::from_str::<Value>(&said).unwrap(),
        serde_json::to_value(example()).unwrap()
    );
}

#[tokio::test]
async fn top_draws_in_place_and_restores_the_terminal() {
    let daemon = FakeDaemon::open(example()).unwrap();
    for (key, code) in [(b"q", 0), (b"\x03", 130)] {
        let terminal = Terminal::open();
        let before = terminal.modes();
        let mut child = terminal.command(&["top", "--every", "0.1"], &daemon.socket());
        terminal.shows("vae").await;
        assert!(!terminal.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
        rustix::io::write(&*terminal.master, key).unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(status.code(), Some(code));
        assert_eq!(terminal.modes(), before);
        // The last output may be read after the end of the program.
        for last in ["\x1b[?1049l", "\x1b[?25h"] {
            terminal.shows(last).await;
        }
        let shown = terminal.shown();
        let (enter, leave) =
            (shown.find("\x1b[?1049h").unwrap(), shown.rfind("\x1b[?1049l").unwrap());
        assert!(enter < leave && shown.contains("\x1b[?25h"), "{shown:?}");
        assert!(!shown.contains("\x1b]0;") && !shown.contains("\x1b[31m"), "{shown:?}");
    }
}

/// A pseudo-terminal, and everything written to it.
struct Terminal {
    master: Arc<OwnedFd>,
    slave: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap());
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let master = Arc::new(master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (screen, mut reading) =
            (Arc::clone(&shown), std::fs::File::from(master.try_clone().unwrap()));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read) = reading.read(&mut piece) {
                screen.lock().unwrap().extend_from_slice(piece.get(..read).unwrap());
            }
        });
        Self { master, slave: slave.unwrap().into(), shown }
    }

    fn modes(&self) -> LocalModes {
        tcgetattr(&self.slave).unwrap().local_modes
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    async fn shows(&self, what: &str) {
        let look = || async { Ok(self.shown().contains(what).then_some(())) };
        until(&format!("the terminal shows {what:?}"), look).await.unwrap();
    }

    /// Starts `paceline` on it, as a shell would.
    fn command(&self, words: &[&str], socket: &Path) -> tokio::process::Child {
        let stdio = || Stdio::from(self.slave.try_clone().unwrap());
        tokio::process::Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(program("paceline").unwrap())
            .args(words)
            .env("PACELINE_CONTROL", socket)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }
}
