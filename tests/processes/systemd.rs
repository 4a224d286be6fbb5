//! Jobs of root and of two other users under systemd, with control groups of version 2: `make test-cgroup2
//! PART=processes` makes such a machine. The programs use their usual folders, as on a real machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, ensure};
use paceline_cgroup::job_group::JobGroup;
use paceline_system_tests::{program, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{default_weight, kill, systemctl};

/// The variable with the names of two users, who have nothing else to do.
const USERS: &str = "PACELINE_TEST_USERS";
/// The groups of the machine.
const GROUPS: &str = "/sys/fs/cgroup";

/// Whether the machine has the two users.
pub(crate) fn has_users() -> bool {
    users().is_ok()
}

fn users() -> anyhow::Result<[String; 2]> {
    let names = std::env::var(USERS)?;
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    names.try_into().ok().context("two users")
}

/// The machine, and what one test has started on it.
struct Machine {
    folder: tempfile::TempDir,
    started: Vec<Child>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        for child in &mut self.started {
            drop(child.kill());
            drop(child.wait());
        }
        for group in Self::groups().unwrap_or_default().values() {
            for pid in group.processes() {
                kill(i32::try_from(pid).ok().and_then(Pid::from_raw));
            }
        }
        for user in users().unwrap_or_default() {
            drop(Command::new("loginctl").args(["disable-linger", &user]).status());
        }
    }
}

impl Machine {
    fn new() -> anyhow::Result<Self> {
        let machine = Self { folder: tempfile::tempdir()?, started: Vec::new() };
        fs::set_permissions(
            machine.folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o1777),
        )?;
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives a user a manager of systemd that needs no session.
    fn linger(&self, user: &str) -> anyhow::Result<()> {
        let output = Command::new("loginctl").args(["enable-linger", user]).output()?;
        ensure!(output.status.success(), "{output:?}");
        let bus = PathBuf::from(format!("/run/user/{}/bus", uid(user)?));
        self.wait("the user's manager runs", || Ok(bus.exists()))
    }

    /// Starts a program in the background; its standard error is kept, and its id returned.
    fn start(&mut self, user: &str, name: &str, words: &[&str]) -> anyhow::Result<Pid> {
        let (pids, said) = (self.path(&format!("{name}.pid")), self.path(&format!("{name}.said")));
        drop(fs::remove_file(&pids));
        let line =
            format!("echo $$ >{0}.new; mv {0}.new {0}; exec {1}", pids.display(), shell(words)?);
        let mut command = as_user(user, &line);
        command.stdout(Stdio::null()).stderr(File::create(said)?).stdin(Stdio::null());
        self.started.push(command.spawn()?);
        self.wait("the program has started", || Ok(pids.exists()))?;
        let pid = fs::read_to_string(&pids)?.trim().parse()?;
        Pid::from_raw(pid).context("a process has an id")
    }

    /// Starts a job that reports.
    fn job(&mut self, user: &str, name: &str) -> anyhow::Result<Pid> {
        let job = job()?;
        let command = job.iter().map(String::as_str);
        let words: Vec<&str> =
            ["exec", "--job", name, "--sidecar", "none", "--"].into_iter().chain(command).collect();
        let pid = self.start(user, name, &words)?;
        self.wait("the job is recorded", || Ok(Self::groups()?.contains_key(name)))?;
        Ok(pid)
    }

    /// The groups of all recorded jobs, by the job's name.
    fn groups() -> anyhow::Result<BTreeMap<String, JobGroup>> {
        let mut folders = vec![PathBuf::from("/run/paceline/jobs")];
        for user in users()? {
            folders.push(format!("/run/user/{}/paceline/jobs", uid(&user)?).into());
        }
        let mut found = BTreeMap::new();
        for entry in folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten()) {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(".json") else { continue };
            let path = folders.iter().map(|it| it.join(&name)).find(|it| it.exists());
            let Some(text) = path.and_then(|path| fs::read_to_string(path).ok()) else { continue };
            let record: Value = serde_json::from_str(&text)?;
            let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
            if let Ok(group) = JobGroup::from_text(Path::new("/proc"), id, text("groups")) {
                found.insert(text("name").to_owned(), group);
            }
        }
        Ok(found)
    }

    fn group(job: &str) -> anyhow::Result<JobGroup> {
        Self::groups()?.remove(job).with_context(|| format!("job {job} has a group"))
    }

    /// Whether jobs have a limit.
    fn are_limited(jobs: &[&str]) -> anyhow::Result<Vec<bool>> {
        let limited = |job: &&str| Ok(Self::group(job)?.cgroup().quota()?.quota.is_some());
        jobs.iter().map(limited).collect()
    }

    fn ensure_as_before(jobs: &[&str]) -> anyhow::Result<()> {
        for job in jobs {
            let group = Self::group(job)?;
            ensure!(group.cgroup().quota()?.quota.is_none(), "{job} has its limit still");
            ensure!(group.cgroup().weight()? == default_weight(&group), "{job} has a weight");
        }
        Ok(())
    }

    /// Waits until these jobs, and no others, are managed by the allocator of `user`.
    fn wait_until_managed(&self, user: &str, names: &[&str]) -> anyhow::Result<()> {
        self.wait(&format!("{names:?} are managed"), || {
            let status = paceline(user, &["status", "--json"])?;
            let snapshot: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            let jobs = snapshot.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default();
            let text = |job: &Value, key| job.get(key).and_then(Value::as_str).map(str::to_owned);
            let managed = jobs.iter().filter(|job| {
                matches!(text(job, "standing").as_deref(), Some("managed" | "pinned"))
            });
            let managed: Vec<String> = managed.filter_map(|job| text(job, "job")).collect();
            Ok(managed == names)
        })
    }

    /// Sends a signal to an allocator, and waits for its end: then its locks are free.
    fn end(&self, allocator: Pid, signal: Signal) -> anyhow::Result<()> {
        kill_process(allocator, signal)?;
        let stat = format!("/proc/{}/stat", allocator.as_raw_nonzero());
        self.wait("the allocator has ended", || {
            // Its parent may not have taken note.
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            Ok(stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z')))
        })
    }

    fn wait(&self, what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let holds = || async { Ok(holds()?.then_some(())) };
        runtime.block_on(until(what, holds)).with_context(|| self.said())
    }

    /// What all programs of the test have said.
    fn said(&self) -> String {
        let files = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let said = files.filter(|file| file.path().extension().is_some_and(|it| it == "said"));
        let mut all = String::new();
        for file in said {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            all = format!("{all}{}:\n{text}", file.file_name().display());
        }
        all
    }

    /// Waits until systemd has no unit and the kernel no group of a job.
    fn wait_until_nothing_is_left(&self) -> anyhow::Result<()> {
        self.wait("no unit is left", || Ok(units("root")?.is_empty()))?;
        self.wait("no group is left", || Ok(groups_below(Path::new(GROUPS)).is_empty()))
            .with_context(|| format!("{:?}", groups_below(Path::new(GROUPS))))
    }
}

/// A job that reports and uses almost no CPU: an emulated machine has little.
fn job() -> anyhow::Result<[String; 3]> {
    let program = program("toy-job")?.display().to_string();
    Ok([program, "--sleep".to_owned(), "100000".to_owned()])
}

fn uid(user: &str) -> anyhow::Result<u32> {
    let output = Command::new("id").args(["-u", user]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// `paceline` with these words, for a shell.
fn shell(words: &[&str]) -> anyhow::Result<String> {
    let program = program("paceline")?.display().to_string();
    let all = std::iter::once(program.as_str()).chain(words.iter().copied());
    Ok(shlex::try_join(all)?)
}

/// A line of a shell in a session of a user.
fn as_user(user: &str, line: &str) -> Command {
    if user == "root" {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        return command;
    }
    let mut command = Command::new("su");
    // A login has none of this process's variables.
    let patient = format!("export SYSTEMD_BUS_TIMEOUT=600; {line}");
    command.args(["--login", user, "--command", &patient]);
    command
}

fn paceline(user: &str, words: &[&str]) -> anyhow::Result<Output> {
    Ok(as_user(user, &shell(words)?).output()?)
}

fn succeeds(user: &str, words: &[&str]) -> anyhow::Result<String> {
    let output = paceline(user, words)?;
    ensure!(output.status.success(), "{words:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The scopes and slices of jobs that a manager of systemd has.
fn units(user: &str) -> anyhow::Result<String> {
    let of = if user == "root" { "--system" } else { "--user" };
    let line = format!(
        "systemctl {of} list-units --all --plain --no-legend --type=scope,slice 'paceline*'"
    );
    Ok(String::from_utf8(as_user(user, &line).output()?.stdout)?)
}

fn systemctl_of(user: &str, words: &str) -> anyhow::Result<()> {
    let output = as_user(user, &format!("systemctl --user {words}")).output()?;
    ensure!(output.status.success(), "{words}: {output:?}");
    Ok(())
}

/// All groups of jobs, and slices of them.
fn groups_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    let is_of_jobs = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("paceline") && !name.contains(".service")
    };
    folders
        .flat_map(|path| if is_of_jobs(&path) { vec![path] } else { groups_below(&path) })
        .collect()
}

/// The scope that a job's group lies in.
fn scope(group: &JobGroup) -> anyhow::Result<String> {
    let scope = group.cgroup().cpu_folder().parent().and_then(Path::file_name);
    let scope = scope.context("it is in a scope")?.to_string_lossy().into_owned();
    ensure!(scope.starts_with("paceline-") && scope.contains(".scope"), "{scope}");
    Ok(scope)
}

/// The level of what doctor has found about one thing.
fn level(report: &[u8], what: &str) -> anyhow::Result<String> {
    let report: Value = serde_json::from_slice(report)?;
    let findings = report.get("findings").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_it = |finding: &&Value| finding.get("what").and_then(Value::as_str) == Some(what);
    let level = findings.iter().find(is_it).and_then(|finding| finding.get("level")?.as_str());
    Ok(level.with_context(|| format!("{what} in {findings:?}"))?.to_owned())
}

pub(crate) fn user_manages_own_jobs() -> anyhow::Result<()> {
    let [user, _] = users()?;
    let mut machine = Machine::new()?;
    machine.linger(&user)?;
    let doctor = paceline(&user, &["doctor", "--user", "--json"])?;
    ensure!(doctor.status.success() && level(&doctor.stdout, "exec")? == "ok", "{doctor:?}");
    machine.job(&user, "own")?;
    let run = ["run", "--user", "--policy", "none", "--listen", "none"];
    let allocator = machine.start(&user, "allocator", &run)?;
    machine.wait_until_managed(&user, &["own"])?;
    succeeds(&user, &["pin", "own", "0.25"])?;
    let group = Machine::group("own")?;
    let limit = group.cgroup().quota()?;
    ensure!(limit.quota.is_some(), "{limit}");
    let folder = group.cgroup().cpu_folder().to_owned();
    let own = format!("user@{}.service/paceline.slice/", uid(&user)?);
    ensure!(folder.to_string_lossy().contains(&own), "{}", folder.display());
    systemctl(&["daemon-reload"])?;
    systemctl_of(&user, "daemon-reload")?;
    let scope = scope(&group)?;
    systemctl_of(&user, &format!("set-property --runtime {scope} CPUQuota=137%"))?;
    systemctl_of(&user, "daemon-reload")?;
    ensure!(group.cgroup().quota()? == limit, "systemd leaves the delegated group alone");
    machine.end(allocator, Signal::TERM)?;
    machine.wait("the limit is gone", || Ok(group.cgroup().quota()?.quota.is_none()))?;
    Machine::ensure_as_before(&["own"])?;
    systemctl_of(&user, &format!("stop {scope}"))?;
    machine.wait("the user's manager has no unit of it", || Ok(units(&user)?.is_empty()))?;
    machine.wait_until_nothing_is_left()
}

pub(crate) fn root_manages_jobs_of_two_users() -> anyhow::Result<()> {
    let [first, second] = users()?;
    let (first, second) = (first.as_str(), second.as_str());
    let mut machine = Machine::new()?;
    machine.linger(first)?;
    machine.linger(second)?;
    let all = ["of-first", "of-root", "of-second"];
    machine.job(first, "of-first")?;
    machine.job("root", "of-root")?;
    // This command ends, and leaves a child behind.
    let job = shlex::try_join(job()?.iter().map(String::as_str))?;
    let forks = format!("(setsid {job} >/dev/null 2>&1 &); exit 0");
    let words = ["exec", "--job", "of-second", "--sidecar", "none", "--", "sh", "-c", &forks];
    machine.start(second, "of-second", &words)?;
    machine.wait("the job is recorded", || Ok(Machine::groups()?.contains_key("of-second")))?;

    let run = ["run", "--runtime", "processes", "--policy", "none", "--listen", "none"];
    let restore = ["restore", "--runtime", "processes"];
    let mut allocator = machine.start("root", "allocator", &run)?;
    machine.wait_until_managed("root", &all)?;
    for job in all {
        succeeds("root", &["pin", job, "0.2"])?;
    }
    let limits = || -> anyhow::Result<Vec<_>> {
        all.iter().map(|job| Ok(Machine::group(job)?.cgroup().quota()?)).collect()
    };
    let before = limits()?;
    systemctl(&["daemon-reload"])?;
    systemctl(&[
        "set-property",
        "--runtime",
        &scope(&Machine::group("of-root")?)?,
        "CPUQuota=137%",
    ])?;
    let of_first = scope(&Machine::group("of-first")?)?;
    systemctl_of(first, &format!("set-property --runtime {of_first} CPUQuota=90%"))?;
    ensure!(limits()? == before, "systemd leaves the delegated groups alone");
    ensure!(Machine::are_limited(&all)? == [true; 3], "{before:?}");

    machine.end(allocator, Signal::KILL)?;
    ensure!(Machine::are_limited(&all)? == [true; 3], "the limits outlive the allocator");
    succeeds("root", &restore)?;
    Machine::ensure_as_before(&all)?;
    let again = succeeds("root", &restore)?;
    ensure!(again.contains("nothing to restore"), "{again}");

    // The allocator is killed, and the first user logs out.
    allocator = machine.start("root", "allocator", &run)?;
    machine.wait_until_managed("root", &all)?;
    for job in all {
        succeeds("root", &["pin", job, "0.2"])?;
    }
    machine.end(allocator, Signal::KILL)?;
    let gone = Machine::group("of-first")?.cgroup().cpu_folder().to_owned();
    log_out(first)?;
    machine.wait("the user's job has ended", || Ok(!gone.exists()))?;
    succeeds("root", &restore)?;
    Machine::ensure_as_before(&["of-root", "of-second"])?;

    // The scope of one job is stopped, and the last process of the other ends.
    allocator = machine.start("root", "allocator", &run)?;
    machine.wait_until_managed("root", &["of-root", "of-second"])?;
    succeeds("root", &["pin", "of-second", "0.2"])?;
    systemctl(&["stop", &scope(&Machine::group("of-root")?)?])?;
    machine.wait_until_managed("root", &["of-second"])?;
    log_out(second)?;
    machine.wait_until_managed("root", &[])?;
    machine.end(allocator, Signal::TERM)?;
    let restored = succeeds("root", &restore)?;
    ensure!(restored.contains("nothing to restore"), "{restored}");
    machine.wait_until_nothing_is_left()
}

/// Ends all sessions of a user, and the user's manager.
fn log_out(user: &str) -> anyhow::Result<()> {
    for words in [["disable-linger", user], ["terminate-user", user]] {
        let output = Command::new("loginctl").args(words).output()?;
        // The user may have no session any more.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let gone = said.contains("not logged in") || said.contains("No user");
        ensure!(output.status.success() || gone, "{words:?}: {output:?}");
    }
    Ok(())
}

/// A command as cron starts it: by the user, without a session and without any variable.
fn without_session(user: &str, words: &[&str]) -> anyhow::Result<Output> {
    let id = uid(user)?.to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .arg(program("paceline")?);
    command.args(words).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.env("SYSTEMD_BUS_TIMEOUT", "600");
    Ok(command.output()?)
}

pub(crate) fn user_without_session_gets_a_scope_or_advice() -> anyhow::Result<()> {
    let [_, user] = users()?;
    let machine = Machine::new()?;
    log_out(&user)?;
    let runtime = PathBuf::from(format!("/run/user/{}", uid(&user)?));
    machine.wait("the user has no manager", || Ok(!runtime.exists()))?;
    let words = ["exec", "--sidecar", "none", "--", "sh", "-c", "cat /proc/self/cgroup; exit 5"];
    let output = without_session(&user, &words)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(5), "{output:?}");
    ensure!(said.lines().count() == 1 && said.contains("enable-linger"), "{said}");
    let doctor = without_session(&user, &["doctor", "--user", "--json"])?;
    ensure!(!doctor.status.success() && level(&doctor.stdout, "exec")? == "error", "{doctor:?}");
    machine.linger(&user)?;
    let output = without_session(&user, &words)?;
    let group = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(5) && output.stderr.is_empty(), "{output:?}");
    ensure!(group.contains("/paceline.slice/paceline-sh-"), "{group}");
    let doctor = without_session(&user, &["doctor", "--user", "--json"])?;
    ensure!(level(&doctor.stdout, "exec")? == "ok", "{doctor:?}");
    machine.wait("the user's manager has no unit of it", || Ok(units(&user)?.is_empty()))?;
    machine.wait_until_nothing_is_left()
}

/// Several jobs begin and end at once: the slice of all jobs comes and goes with them.
pub(crate) fn slice_goes_with_the_last_job() -> anyhow::Result<()> {
    let machine = Machine::new()?;
    let words = ["exec", "--sidecar", "none", "--", "cat", "/proc/self/cgroup"];
    let mut running = Vec::new();
    for _ in 0..4 {
        let mut command = as_user("root", &shell(&words)?);
        running.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    }
    for job in running {
        let output = job.wait_with_output()?;
        let group = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(group.contains("/paceline.slice/paceline-cat-"), "{output:?}");
    }
    machine.wait_until_nothing_is_left()
}
