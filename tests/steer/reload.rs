//! A run that is told by SIGHUP to read its configuration again, and what else a configuration does.
//!
//! Another user's commands run in a container, which a stand-in for the engine has not: then there is
//! nothing to be seen here.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use paceline_system_tests::{Allocator, program, until};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::stand_in::StandIn;

/// A folder with all that a run needs.
struct Desk {
    folder: TempDir,
    _engine: StandIn,
}

impl Desk {
    /// Nothing where the run would not be by this very process's user.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let engine = StandIn::listen(&folder.path().join("engine.sock"));
        Some(Self { folder, _engine: engine })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration as an editor does: all of it at once.
    fn configure(&self, text: &str) {
        std::fs::write(self.file("new"), text).unwrap();
        std::fs::rename(self.file("new"), self.file("paceline.toml")).unwrap();
    }

    /// The environment of every command.
    fn at_home(&self, mut command: Command) -> Command {
        command
            .env("DOCKER_HOST", format!("unix://{}", self.file("engine.sock").display()))
            .env("PACELINE_STATE_DIR", self.file("state"))
            .env("PACELINE_CONTROL", self.file("control.sock"))
            .env_remove("PACELINE_LOG")
            .env_remove("PACELINE_LOG_FORMAT");
        command
    }

    fn run(&self, words: &[&str]) -> Allocator {
        let mut command = self.at_home(Allocator::command(&["run", "--listen", "none"]).unwrap());
        command.args(words);
        Allocator::spawn(command).unwrap()
    }

    fn run_configured(&self, words: &[&str]) -> Allocator {
        let path = self.file("paceline.toml");
        self.run(&[&["--config", path.to_str().unwrap()], words].concat())
    }

    async fn said(&self, words: &[&str]) -> String {
        let output: Output =
            self.at_home(Allocator::command(words).unwrap()).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the run shows a policy of which this holds.
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
async fn a_run_takes_a_good_file_up_and_a_bad_one_leaves_it_as_it_was() {
    let Some(desk) = Desk::new() else { return };
    desk.configure("policy = 'none'\n[params]\ninterval = 600\n");
    let run = desk.run_configured(&["--enforcement", "quota"]);
    desk.shows("the first policy", |policy| policy["name"] == "none").await;

    desk.configure(
        "policy = 'tradl'\nvariant = 'published'\nactuator = 'cgroup'\nlog_level = 'debug'\n\
         [limiter]\nenforcement = 'shares'\nfairness = {}\n[web]\nlisten = 'none'\n",
    );
    run.signal(Signal::HUP).unwrap();
    desk.shows("the second policy", |policy| policy["name"] == "tradl").await;
    desk.shows("what is in force", |policy| {
        policy["params"]["confirm"] == 1.0
            && policy["guards"] == serde_json::json!(["fairness"])
            && policy["enforcement"] == "quota"
            && policy["actuator"] == "engine"
    })
    .await;
    run.says(&["actuator has changed", "takes effect at the next start"]).await.unwrap();
    run.says(&["was read again", "policy: none -> tradl", "log_level: info -> debug"])
        .await
        .unwrap();
    assert!(!run.said().contains("web.listen has"), "the command line rules: {}", run.said());

    let path = desk.file("paceline.toml").display().to_string();
    for (bad, parts) in [
        ("policy = 'tradle'", ["\"tradle\"", "did you mean \"tradl\"?"]),
        ("policy = 'none'\n[params]\ninterval = 'long'", ["line 3: interval = 'long'", "string"]),
        ("policy = 'none'\n[params]\ninterval = 0", ["interval is 0", "above 0"]),
        ("on-drift = 'yield'", ["line 1", "did you mean \"on_drift\"?"]),
        ("[limiter.slew]\nmax_decrease = 2", ["slew.max_decrease is 2", "at most 1"]),
    ] {
        desk.configure(bad);
        run.signal(Signal::HUP).unwrap();
        run.says(&[&path, parts[0], parts[1], "the run goes on as it was"]).await.unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    run.signal(Signal::HUP).unwrap();
    run.says(&[&path, "No such file", "the run goes on as it was"]).await.unwrap();
    desk.shows("the policy as it was", |policy| policy["name"] == "tradl").await;

    desk.configure("policy = 'dqoes'\nactuator = 'engine'\n");
    run.signal(Signal::HUP).unwrap();
    desk.shows("the third policy", |policy| policy["name"] == "dqoes").await;
    run.end().await.unwrap();
    let audit = desk.said(&["audit", "tail", "-n", "100"]).await;
    let read = audit.lines().filter(|line| line.contains("the configuration was read again: "));
    let read: Vec<&str> = read.collect();
    assert_eq!(read.len(), 2, "{audit}");
    assert!(read[0].contains("policy: none -> tradl"), "{audit}");
    assert!(read[1].contains("policy: tradl -> dqoes"), "{audit}");
}

#[tokio::test]
async fn a_run_without_a_file_says_that_there_is_nothing_to_read_and_goes_on() {
    let Some(desk) = Desk::new() else { return };
    let run = desk.run(&["--policy", "none"]);
    desk.shows("the policy", |policy| policy["name"] == "none").await;
    run.signal(Signal::HUP).unwrap();
    run.says(&["SIGHUP", "none is given by --config"]).await.unwrap();
    desk.shows("the policy as it was", |policy| policy["name"] == "none").await;
    run.end().await.unwrap();
}

#[tokio::test]
async fn what_is_put_back_after_a_crash_stands_in_the_runs_audit_log() {
    let Some(desk) = Desk::new() else { return };
    desk.configure("state_dir = 'elsewhere'\n");
    let originals = desk.file("elsewhere/stand-in");
    std::fs::create_dir_all(&originals).unwrap();
    let host =
        serde_json::json!({"nano_cpus": 0, "cpu_quota": 0, "cpu_period": 0, "cpu_shares": 0});
    let left = serde_json::json!({"format": 2, "id": "4f2a", "name": "vae", "host_config": host});
    std::fs::write(originals.join("4f2a.json"), left.to_string()).unwrap();
    let path = desk.file("paceline.toml");
    let mut restore =
        desk.at_home(Allocator::command(&["restore", "--log-format", "json", "--config"]).unwrap());
    let output = restore.arg(path).env_remove("PACELINE_STATE_DIR").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let state = desk.file("elsewhere");
    let audit = desk.said(&["audit", "tail", "--state-dir", state.to_str().unwrap()]).await;
    assert!(
        audit.contains("container 4f2a: by `paceline restore`, the container is gone"),
        "{audit}"
    );
}

#[tokio::test]
async fn whoever_closes_the_terminal_of_a_run_ends_it_well() {
    let Some(desk) = Desk::new() else { return };
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap());
    let stdio = || Stdio::from(slave.as_ref().unwrap().try_clone().unwrap());
    let mut command = desk.at_home(Command::new("setsid"));
    command.args(["--ctty", "--wait"]).arg(program("paceline").unwrap());
    command.args(["run", "--policy", "none", "--listen", "none"]).kill_on_drop(true);
    let mut child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
    drop((command, slave));
    desk.shows("the policy", |policy| policy["name"] == "none").await;
    drop(master);
    let ended = tokio::time::timeout(Duration::from_mins(1), child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    let audit = desk.said(&["audit", "tail"]).await;
    assert!(audit.contains("the run ended, every limit is back"), "{audit}");
}
