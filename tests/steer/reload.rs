//! A run that reloads its configuration at SIGHUP, and other effects of a configuration.
//!
//! For a user other than root, commands run in a container, which the fake engine cannot start:
//! then these tests do nothing.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use paceline_system_tests::{Allocator, LOCKS, program, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::fake_engine::FakeEngine;

/// A folder with everything that a run needs, and a fake engine.
struct RunEnv {
    folder: TempDir,
    engine: FakeEngine,
}

impl RunEnv {
    /// `None` unless this process is root's.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let engine = FakeEngine::listen(&folder.path().join("engine.sock"));
        Some(Self { folder, engine })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the configuration atomically, as an editor does.
    fn configure(&self, text: &str) {
        std::fs::write(self.file("new"), text).unwrap();
        std::fs::rename(self.file("new"), self.file("paceline.toml")).unwrap();
    }

    /// Sets the environment of every command.
    fn with_env(&self, mut command: Command) -> Command {
        command
            .env("DOCKER_HOST", format!("unix://{}", self.file("engine.sock").display()))
            .env("PACELINE_STATE_DIR", self.file("state"))
            .env("PACELINE_CONTROL", self.file("control.sock"))
            .env_remove("PACELINE_LOG")
            .env_remove("PACELINE_LOG_FORMAT");
        command
    }

    fn run(&self, words: &[&str]) -> Allocator {
        let mut command = self.with_env(Allocator::command(&["run", "--listen", "none"]).unwrap());
        command.args(words);
        Allocator::spawn(command).unwrap()
    }

    fn run_configured(&self, words: &[&str]) -> Allocator {
        let path = self.file("paceline.toml");
        self.run(&[&["--config", path.to_str().unwrap()], words].concat())
    }

    async fn said(&self, words: &[&str]) -> String {
        let output: Output =
            self.with_env(Allocator::command(words).unwrap()).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the run's status has a policy for which `holds` is true.
    async fn shows(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let look = || async {
            let said = self.said(&["status", "--json"]).await;
            let status: Option<Value> = serde_json::from_str(&said).ok();
            Ok(status.filter(|status| holds(&status["policy"])).map(drop))
        };
        until(what, look).await.unwrap();
    }
}

#[tokio::test]
async fn reload_applies_a_valid_file_and_ignores_an_invalid_one() {
    let Some(env) = RunEnv::new() else { return };
    env.configure("policy = 'none'\n[params]\ninterval = 600\n");
    let run = env.run_configured(&["--enforcement", "quota"]);
    env.shows("the first policy", |policy| policy["name"] == "none").await;

    env.configure(
        "policy = 'tradl'\nvariant = 'published'\nactuator = 'engine'\nlog_level = 'debug'\n\
         [limiter]\nenforcement = 'shares'\nfairness = {}\n[web]\nlisten = 'none'\n",
    );
    run.signal(Signal::HUP).unwrap();
    env.shows("the second policy", |policy| policy["name"] == "tradl").await;
    env.shows("what is in force", |policy| {
        policy["params"]["confirm"] == 1.0
            && policy["guards"] == serde_json::json!(["fairness"])
            && policy["enforcement"] == "quota"
            && policy["actuator"] == "auto"
    })
    .await;
    run.says(&["the change of actuator", "takes effect at the next start"]).await.unwrap();
    run.says(&["is reloaded", "policy: none -> tradl", "log_level: info -> debug"]).await.unwrap();
    assert!(!run.said().contains("change of web.listen"), "the command line rules: {}", run.said());

    let path = env.file("paceline.toml").display().to_string();
    for (bad, parts) in [
        ("policy = 'tradle'", ["\"tradle\"", "did you mean \"tradl\"?"]),
        ("policy = 'none'\n[params]\ninterval = 'long'", ["line 3: interval = 'long'", "string"]),
        ("policy = 'none'\n[params]\ninterval = 0", ["parameter interval", "above 0"]),
        ("on-drift = 'yield'", ["line 1", "did you mean \"on_drift\"?"]),
        ("[limiter.slew]\nmax_decrease = 2", ["limiter setting slew.max_decrease", "at most 1"]),
    ] {
        env.configure(bad);
        run.signal(Signal::HUP).unwrap();
        run.says(&[&path, parts[0], parts[1], "keeping the current settings"]).await.unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    run.signal(Signal::HUP).unwrap();
    run.says(&[&path, "No such file", "keeping the current settings"]).await.unwrap();
    env.shows("the policy as it was", |policy| policy["name"] == "tradl").await;

    env.configure("policy = 'dqoes'\nactuator = 'auto'\n");
    run.signal(Signal::HUP).unwrap();
    env.shows("the third policy", |policy| policy["name"] == "dqoes").await;
    run.end().await.unwrap();
    let audit = env.said(&["audit", "tail", "-n", "100"]).await;
    let read = audit.lines().filter(|line| line.contains("the configuration was read again: "));
    let read: Vec<&str> = read.collect();
    assert_eq!(read.len(), 2, "{audit}");
    assert!(read[0].contains("policy: none -> tradl"), "{audit}");
    assert!(read[1].contains("policy: tradl -> dqoes"), "{audit}");
}

#[tokio::test]
async fn reload_that_needs_other_nodes_is_refused() {
    let Some(env) = RunEnv::new() else { return };
    env.configure("policy = 'none'\n");
    let run = env.run_configured(&[]);
    env.shows("the first policy", |policy| policy["name"] == "none").await;
    env.configure("policy = 'specon'\nnodes = { a = '0', b = '1' }\n");
    run.signal(Signal::HUP).unwrap();
    let path = env.file("paceline.toml").display().to_string();
    let why = "cannot run specon on one node";
    let restart = "only a restart applies the change of nodes";
    run.says(&[&path, why, restart, "keeping the current settings"]).await.unwrap();
    env.shows("the policy as it was", |policy| policy["name"] == "none").await;
    run.end().await.unwrap();
}

#[tokio::test]
async fn reload_without_a_file_is_logged_and_ignored() {
    let Some(env) = RunEnv::new() else { return };
    let run = env.run(&["--policy", "none"]);
    env.shows("the policy", |policy| policy["name"] == "none").await;
    run.signal(Signal::HUP).unwrap();
    run.says(&["SIGHUP", "no file is given by --config"]).await.unwrap();
    env.shows("the policy as it was", |policy| policy["name"] == "none").await;
    run.end().await.unwrap();
}

#[tokio::test]
async fn restore_after_a_crash_is_in_the_audit_log() {
    let Some(env) = RunEnv::new() else { return };
    env.configure("state_dir = 'elsewhere'\n");
    let originals = env.file("elsewhere").join(env.engine.folder());
    std::fs::create_dir_all(&originals).unwrap();
    let host =
        serde_json::json!({"nano_cpus": 0, "cpu_quota": 0, "cpu_period": 0, "cpu_shares": 0});
    let left = serde_json::json!({"format": 2, "id": "4f2a", "name": "vae", "host_config": host});
    std::fs::write(originals.join("4f2a.json"), left.to_string()).unwrap();
    let path = env.file("paceline.toml");
    let restore = || async {
        let words = ["restore", "--log-format", "json", "--config"];
        let mut restore = env.with_env(Allocator::command(&words).unwrap());
        restore.arg(&path).env_remove("PACELINE_STATE_DIR").output().await.unwrap()
    };
    // The engine does not know the container, which is not known to be gone.
    let output = restore().await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("vae: NOT restored") && said.contains("4f2a.json"), "{said}");
    env.engine.removed("4f2a");
    let output = restore().await;
    assert!(output.status.success(), "{output:?}");
    let output = restore().await;
    let said = String::from_utf8_lossy(&output.stdout);
    let folder = originals.display().to_string();
    assert!(output.status.success() && said.contains(&folder), "{said}");
    let state = env.file("elsewhere");
    let audit = env.said(&["audit", "tail", "--state-dir", state.to_str().unwrap()]).await;
    assert!(
        audit.contains("container 4f2a: by `paceline restore`, the container is gone"),
        "{audit}"
    );
}

/// A pipe that is full: every further write waits for a reader.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write_all(&[b'x'; 1024]).is_ok() {}
    while writer.write_all(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

#[tokio::test]
async fn run_whose_log_is_not_read_goes_on_and_ends_well() {
    let Some(env) = RunEnv::new() else { return };
    let (unread, writer) = full_pipe();
    let words = ["run", "--policy", "none", "--listen", "none"];
    let mut command = env.with_env(Allocator::command(&words).unwrap());
    let mut run = command.stderr(writer).kill_on_drop(true).spawn().unwrap();
    drop(command);
    env.shows("the policy", |policy| policy["name"] == "none").await;
    let id = Pid::from_raw(i32::try_from(run.id().unwrap()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let ended = tokio::time::timeout(Duration::from_mins(1), run.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    let audit = env.said(&["audit", "tail"]).await;
    assert!(audit.contains("the run ended, every limit is restored"), "{audit}");
    drop(unread);
}

#[tokio::test]
async fn pipe_in_place_of_a_record_or_log_is_refused() {
    let Some(env) = RunEnv::new() else { return };
    let mode = Mode::RUSR | Mode::WUSR;
    let pipe = env.file("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
    for (option, code) in [("--record", 2), ("--samples", 2), ("", 1)] {
        let mut command = env.with_env(Allocator::command(&["run", "--listen", "none"]).unwrap());
        if option.is_empty() {
            std::fs::remove_file(env.file("state/audit.jsonl")).unwrap();
            std::fs::rename(&pipe, env.file("state/audit.jsonl")).unwrap();
        } else {
            command.arg(option).arg(&pipe);
        }
        let output = tokio::time::timeout(Duration::from_mins(1), command.output()).await;
        let Output { status, stderr, .. } = output.expect("it does not wait").unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{option}: {said}");
        assert!(said.contains("it is not a regular file"), "{option}: {said}");
    }
}

#[tokio::test]
async fn unreadable_original_stops_no_run_and_is_named_at_the_end() {
    let Some(env) = RunEnv::new() else { return };
    let originals = env.file("state").join(env.engine.folder());
    std::fs::create_dir_all(&originals).unwrap();
    std::fs::write(originals.join("77aa.json"), "").unwrap();
    let mut run = env.run(&["--policy", "none"]);
    env.shows("the policy", |policy| policy["name"] == "none").await;
    run.says(&["container 77aa is left alone", "77aa.json"]).await.unwrap();
    run.signal(Signal::TERM).unwrap();
    assert_eq!(run.ended().await.unwrap().code(), Some(1), "{}", run.said());
    run.says(&["cannot restore the limits of 1 containers (77aa)"]).await.unwrap();
    assert!(originals.join("77aa.json").exists());
}

/// A terminal: the user's end, and the program's.
fn terminal() -> (OwnedFd, std::fs::File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap());
    (master, slave.unwrap())
}

/// Runs the words after it in this terminal.
fn in_terminal(env: &RunEnv, slave: &std::fs::File) -> Command {
    let stdio = || Stdio::from(slave.try_clone().unwrap());
    let mut command = env.with_env(Command::new("setsid"));
    command.args(["--ctty", "--wait"]).env(LOCKS, Allocator::locks().unwrap());
    command.stdin(stdio()).stdout(stdio()).stderr(stdio()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn closing_the_terminal_ends_the_run_well() {
    let Some(env) = RunEnv::new() else { return };
    let (master, slave) = terminal();
    let mut command = in_terminal(&env, &slave);
    command.arg(program("paceline").unwrap()).args(["run", "--policy", "none", "--listen", "none"]);
    let mut child = command.spawn().unwrap();
    drop((command, slave));
    env.shows("the policy", |policy| policy["name"] == "none").await;
    drop(master);
    let ended = tokio::time::timeout(Duration::from_mins(1), child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    let audit = env.said(&["audit", "tail"]).await;
    assert!(audit.contains("the run ended, every limit is restored"), "{audit}");
}

#[tokio::test]
async fn run_under_nohup_outlives_its_terminal() {
    let Some(env) = RunEnv::new() else { return };
    env.configure("policy = 'none'\n");
    let (master, slave) = terminal();
    let mut command = in_terminal(&env, &slave);
    let (process, config) = (env.file("process"), env.file("paceline.toml"));
    command.args(["sh", "-c", "echo $$ >\"$0\"; exec nohup \"$@\""]).arg(&process);
    command.arg(program("paceline").unwrap()).args(["run", "--listen", "none", "--config"]);
    let mut child = command.arg(&config).current_dir(env.folder.path()).spawn().unwrap();
    drop((command, slave));
    env.shows("the policy", |policy| policy["name"] == "none").await;
    // The signal of the closing terminal is one to reload, as from a service manager.
    env.configure("policy = 'tradl'\n");
    drop(master);
    env.shows("the other policy", |policy| policy["name"] == "tradl").await;
    let process = std::fs::read_to_string(process).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(process).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(Duration::from_mins(1), child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn signals_that_end_a_program_end_a_run_in_order() {
    let Some(env) = RunEnv::new() else { return };
    for signal in [Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::XCPU] {
        let mut run = env.run(&["--policy", "none"]);
        run.says(&["allocator runs"]).await.unwrap();
        // It stands for a file that would grow beyond a limit, and ends nothing.
        run.signal(Signal::XFSZ).unwrap();
        run.signal(signal).unwrap();
        let status = run.ended().await.unwrap();
        assert_eq!(status.code(), Some(0), "{signal:?}: {}", run.said());
        assert!(run.said().contains("restored"), "{signal:?}: {}", run.said());
    }
}
