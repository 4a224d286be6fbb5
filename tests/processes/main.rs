//! Jobs outside containers: real commands in real control groups. They need root, and control groups
//! in which root may write; elsewhere they are reported as ignored.

#![expect(clippy::indexing_slicing, reason = "a test fails by a panic")]

mod systemd;
mod users;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_cgroup::job_group::JobGroup;
use paceline_system_tests::{program, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A job that uses a CPU, and whose loss falls.
const JOB: &str = "BEGIN { l = 10; for (i = 1; ; i++) { for (j = 0; j < 300000; j++) x += j; \
                   l = 1 + (l - 1) * 0.9; printf \"step %d loss %f\\n\", i, l; fflush() } }";

/// Ends a process, which may have ended by itself.
fn kill(pid: Option<Pid>) {
    if let Some(Err(error)) = pid.map(|pid| kill_process(pid, Signal::KILL)) {
        assert_eq!(error, rustix::io::Errno::SRCH, "{pid:?}");
    }
}

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let writable = rustix::process::geteuid().is_root()
        && paceline_cgroup::probe::probe(Path::new("/proc")).is_ok();
    let systemd = Path::new("/run/systemd/system").exists();
    let version_2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let trial = |name: &str, test: fn() -> anyhow::Result<()>, able: bool| {
        Trial::test(name, move || test().map_err(|error| format!("{error:#}").into()))
            .with_ignored_flag(!(writable && able))
    };
    let scopes = systemd && version_2;
    let any = |name: &str, test| trial(name, test, scopes || !systemd);
    let scope = |name: &str, test| trial(name, test, scopes);
    let users = |name: &str, test| trial(name, test, scopes && systemd::has_users());
    let trials = vec![
        any("three_jobs_are_limited_and_leave_nothing", three_jobs),
        any("killed_allocator_leaves_what_restore_puts_back", killed_allocator),
        any("command_keeps_its_code_signals_and_folder", command_is_itself),
        any("group_stays_until_the_last_child_ends", double_fork),
        any("killed_command_leaves_no_group", killed_command),
        trial("user_without_rights_runs_unmanaged", users::user_without_rights, !systemd),
        trial("owner_orders_about_an_own_job_only", users::owner_orders, !systemd),
        trial("user_manages_own_jobs_without_root", users::user_allocator, !systemd),
        trial("limit_that_another_user_left_is_no_original", users::killed_allocators, !systemd),
        scope("scope_keeps_its_limit_over_a_reload_and_ends", scope_of_systemd),
        scope("slice_goes_with_the_last_job", systemd::slice_goes_with_the_last_job),
        users(
            "user_without_session_gets_a_scope_or_advice",
            systemd::user_without_session_gets_a_scope_or_advice,
        ),
        users("user_manages_own_jobs_by_the_users_systemd", systemd::user_manages_own_jobs),
        users("root_manages_jobs_of_two_users", systemd::root_manages_jobs_of_two_users),
    ];
    libtest_mimic::run(&args, trials).exit_code()
}

/// A folder of jobs and of an allocator's files, for one test.
struct Bed {
    folder: tempfile::TempDir,
    jobs: Vec<Child>,
    /// Whether the records of ended jobs stay for a while.
    keeps_records: bool,
}

/// An allocator, killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.end_jobs();
    }
}

impl Bed {
    /// Kills all jobs with their children.
    fn end_jobs(&mut self) {
        for job in &mut self.jobs {
            drop(job.kill());
            drop(job.wait());
        }
        // The children of a killed command end here, too.
        for group in self.groups().unwrap_or_default().values() {
            for pid in group.processes() {
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                kill(pid);
            }
        }
    }
}

impl Bed {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let keeps_records = Path::new("/run/systemd/system").exists();
        let bed = Self { folder, jobs: Vec::new(), keeps_records };
        fs::create_dir(bed.path("jobs"))?;
        Ok(bed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn paceline(&self, words: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program("paceline")?);
        command.args(words).env("PACELINE_JOBS", self.path("jobs"));
        command.env("PACELINE_LOCKS", self.path("locks")).env_remove("PACELINE_LISTEN");
        command.env("PACELINE_CONTROL", self.path("control.sock"));
        Ok(command)
    }

    /// Starts a job that trains.
    fn job(&mut self, name: &str, options: &[&str]) -> anyhow::Result<()> {
        let mut command = self.paceline(&["exec", "--job", name])?;
        command.args(options).args(["--", "awk", JOB]).stdout(Stdio::null());
        self.jobs.push(command.spawn()?);
        Ok(())
    }

    fn allocator(&self, more: &[&str]) -> anyhow::Result<Running> {
        let mut command = self.paceline(&["run", "--runtime", "processes", "--listen", "none"])?;
        if !more.contains(&"--state-dir") {
            command.arg("--state-dir").arg(self.path("state"));
        }
        command.args(more);
        command.stderr(fs::File::options().create(true).append(true).open(self.path("said"))?);
        Ok(Running(command.spawn()?))
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<Output> {
        Ok(self.paceline(words)?.output()?)
    }

    /// The groups of all recorded jobs, by the job's name.
    fn groups(&self) -> anyhow::Result<BTreeMap<String, JobGroup>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(self.path("jobs"))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(".json") else { continue };
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let record: Value = serde_json::from_str(&text)?;
            let groups = record["groups"].as_str().unwrap_or_default();
            if let Ok(group) = JobGroup::from_text(Path::new("/proc"), id, groups) {
                found.insert(record["name"].as_str().unwrap_or_default().to_owned(), group);
            }
        }
        Ok(found)
    }

    fn group(&self, job: &str) -> anyhow::Result<JobGroup> {
        self.groups()?.remove(job).with_context(|| format!("job {job} has a group"))
    }

    /// Microseconds of CPU time in a period; `None` means no limit.
    fn quota(&self, job: &str) -> anyhow::Result<Option<u64>> {
        Ok(self.group(job)?.cgroup().quota()?.quota)
    }

    fn snapshot(&self) -> anyhow::Result<Value> {
        let output = self.run(&["status", "--json"])?;
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// Waits until these jobs, and no others, are managed.
    fn wait_until_managed(&self, names: &[&str]) -> anyhow::Result<()> {
        self.wait("the jobs are managed", || {
            let snapshot = self.snapshot()?;
            let jobs = snapshot["jobs"].as_array().cloned().unwrap_or_default();
            let managed: Vec<&str> = jobs
                .iter()
                .filter(|job| job["standing"] == "managed")
                .filter_map(|job| job["job"].as_str())
                .collect();
            Ok(managed == names)
        })
    }

    /// Waits until a fact holds.
    fn wait(&self, what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let holds = || async { Ok(holds()?.then_some(())) };
        let waited = runtime.block_on(until(what, holds));
        waited.with_context(|| fs::read_to_string(self.path("said")).unwrap_or_default())
    }

    /// Waits until no job, no group and no record is left.
    fn wait_until_nothing_is_left(&self, groups: &[PathBuf]) -> anyhow::Result<()> {
        self.wait("nothing is left", || {
            let records = fs::read_dir(self.path("jobs"))?
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with("job-"));
            // Under systemd the next job or an allocator removes a record.
            let kept = self.keeps_records || records.count() == 0;
            Ok(kept && groups.iter().all(|group| !group.exists()))
        })
    }

    fn folders(&self) -> anyhow::Result<Vec<PathBuf>> {
        let groups = self.groups()?;
        Ok(groups.values().map(|group| group.cgroup().cpu_folder().to_owned()).collect())
    }
}

fn end(allocator: &mut Running) -> anyhow::Result<()> {
    let pid = i32::try_from(allocator.0.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.context("a process has an id")?, Signal::TERM)?;
    let status = allocator.0.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

fn three_jobs() -> anyhow::Result<()> {
    let mut bed = Bed::new()?;
    bed.job("a", &["--max-cpus", "0.5"])?;
    bed.job("b", &["--acceptable", "2", "--objective", "1.5"])?;
    bed.job("c", &[])?;
    let mut allocator = bed.allocator(&["--policy", "paceline"])?;
    bed.wait_until_managed(&["a", "b", "c"])?;
    bed.wait("the owner's cap is in force", || Ok(bed.quota("a")? == Some(50_000)))?;
    let pinned = bed.run(&["pin", "b", "0.25"])?;
    ensure!(pinned.status.success(), "{pinned:?}");
    let cpus = bed.snapshot()?["node"]["cpus"].as_f64().context("the node has CPUs")?;
    let quarter = bed.quota("b")?.context("b is limited")?;
    ensure!((f64::from(u32::try_from(quarter)?) - 25_000.0 * cpus).abs() < 1000.0, "{quarter}");
    // Each job's loss arrives by its own socket.
    bed.wait("every job has reported", || {
        let snapshot = bed.snapshot()?;
        let jobs = snapshot["jobs"].as_array().cloned().unwrap_or_default();
        Ok(jobs.len() == 3 && jobs.iter().all(|job| job["last_loss"].is_f64()))
    })?;
    end(&mut allocator)?;
    for job in ["a", "b", "c"] {
        ensure!(bed.quota(job)?.is_none(), "{job} has its limit still");
        ensure!(bed.group(job)?.cgroup().weight()? == default_weight(&bed.group(job)?), "{job}");
    }
    let groups = bed.folders()?;
    ensure!(groups.len() == 3 && groups.iter().all(|group| group.exists()), "{groups:?}");
    for job in &mut bed.jobs {
        let pid = i32::try_from(job.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a job has an id")?, Signal::TERM)?;
        job.wait()?;
    }
    bed.wait_until_nothing_is_left(&groups)
}

/// The kernel's weight of a new group.
fn default_weight(group: &JobGroup) -> u64 {
    if group.cgroup().version() == 1 { 1024 } else { 100 }
}

fn killed_allocator() -> anyhow::Result<()> {
    let mut bed = Bed::new()?;
    bed.job("a", &[])?;
    bed.job("b", &[])?;
    let allocator = bed.allocator(&["--policy", "none"])?;
    bed.wait_until_managed(&["a", "b"])?;
    for job in ["a", "b"] {
        let pinned = bed.run(&["pin", job, "0.1"])?;
        ensure!(pinned.status.success(), "{pinned:?}");
        ensure!(bed.quota(job)?.is_some(), "{job} has a limit");
    }
    // SIGKILL.
    drop(allocator);
    ensure!(bed.quota("a")?.is_some(), "the limit outlives the allocator");
    // One of the jobs ends meanwhile.
    let ended = bed.group("b")?.cgroup().cpu_folder().to_owned();
    if let Some(job) = bed.jobs.last_mut() {
        job.kill()?;
        job.wait()?;
    }
    for pid in bed.groups()?.get("b").map(JobGroup::processes).unwrap_or_default() {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        kill(pid);
    }
    bed.wait("the ended job's group is gone", || Ok(!ended.exists()))?;
    let state = bed.path("state").display().to_string();
    let words = ["restore", "--runtime", "processes", "--state-dir", &state];
    let restored = bed.run(&words)?;
    ensure!(restored.status.success(), "{restored:?}");
    ensure!(bed.quota("a")?.is_none(), "the limit is gone");
    let again = bed.run(&words)?;
    ensure!(String::from_utf8_lossy(&again.stdout).contains("nothing to restore"), "{again:?}");
    Ok(())
}

fn command_is_itself() -> anyhow::Result<()> {
    let bed = Bed::new()?;
    for sidecar in ["none", "auto"] {
        let script = "pwd; cat; exit 7";
        let mut command =
            bed.paceline(&["exec", "--sidecar", sidecar, "--", "sh", "-c", script])?;
        let mut child = command
            .current_dir("/usr")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("the input is piped")?;
        std::io::Write::write_all(&mut { input }, b"given\n")?;
        let output = child.wait_with_output()?;
        ensure!(output.status.code() == Some(7), "{sidecar}: {output:?}");
        ensure!(output.stdout == b"/usr\ngiven\n", "{sidecar}: {output:?}");
        let killed = bed.run(&["exec", "--sidecar", sidecar, "--", "sh", "-c", "kill -TERM $$"])?;
        let signal = std::os::unix::process::ExitStatusExt::signal(&killed.status);
        let code = killed.status.code();
        ensure!(signal == Some(15) || code == Some(128 + 15), "{sidecar}: {killed:?}");
        let missing = bed.run(&["exec", "--sidecar", sidecar, "--", "/no/program"])?;
        ensure!(missing.status.code() == Some(127), "{sidecar}: {missing:?}");
        let folder = bed.run(&["exec", "--sidecar", sidecar, "--", "/usr"])?;
        ensure!(folder.status.code() == Some(126), "{sidecar}: {folder:?}");
    }
    let paceline = program("paceline")?.display().to_string();
    let nested = ["exec", "--", &paceline, "exec", "--", "sh", "-c", "exit 6"];
    let nested = bed.run(&nested)?;
    let said = String::from_utf8_lossy(&nested.stderr);
    ensure!(nested.status.code() == Some(6) && said.contains("part of the job"), "{nested:?}");
    // A limit on the size of files ends neither it nor its command, and leaves nothing.
    let line = format!("ulimit -f 0; exec {paceline} exec --sidecar none -- sh -c 'exit 3'");
    let mut limited = Command::new("sh");
    let set = bed.paceline(&[])?;
    limited.args(["-c", &line]);
    limited.envs(set.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let limited = limited.output()?;
    let said = String::from_utf8_lossy(&limited.stderr);
    ensure!(limited.status.code() == Some(3) && said.contains("File too large"), "{limited:?}");
    ensure!(fs::read_dir(bed.path("jobs"))?.count() == 0, "nothing of a record is left");
    let groups = fs::read_to_string("/proc/self/mountinfo")?;
    let folders = groups
        .lines()
        .filter(|line| line.contains(" cgroup"))
        .filter_map(|line| line.split(' ').nth(4));
    let left =
        folders.flat_map(|folder| fs::read_dir(format!("{folder}/paceline"))).flatten().flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("sh-job-"))
        .collect();
    ensure!(left.is_empty(), "{left:?}");
    let usage = bed.run(&["exec", "--weight", "0", "--", "true"])?;
    ensure!(usage.status.code() == Some(2), "{usage:?}");
    bed.wait_until_nothing_is_left(&[])
}

fn double_fork() -> anyhow::Result<()> {
    let bed = Bed::new()?;
    let fifo = bed.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )?;
    // The grandchild lives until the pipe is written to.
    let script = format!("(setsid cat {} >/dev/null 2>&1 &); exit 3", fifo.display());
    let words = ["exec", "--job", "forks", "--sidecar", "none", "--", "sh", "-c", &script];
    let status = bed.paceline(&words)?.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.code() == Some(3), "{status}");
    let group = bed.group("forks")?;
    ensure!(!group.is_empty(), "the grandchild is in the group");
    let inside = bed.run(&["status"]);
    drop(inside);
    fs::write(&fifo, "end")?;
    bed.wait_until_nothing_is_left(&[group.cgroup().cpu_folder().to_owned()])
}

fn killed_command() -> anyhow::Result<()> {
    let mut bed = Bed::new()?;
    bed.job("killed", &["--sidecar", "none"])?;
    bed.wait("the job is recorded", || Ok(bed.groups()?.contains_key("killed")))?;
    let groups = bed.folders()?;
    let job = bed.jobs.last_mut().context("a job runs")?;
    job.kill()?;
    let status = job.wait()?;
    ensure!(std::os::unix::process::ExitStatusExt::signal(&status) == Some(9), "{status}");
    bed.wait_until_nothing_is_left(&groups)
}

fn systemctl(words: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("systemctl").args(words).output()?;
    ensure!(output.status.success(), "systemctl {words:?}: {output:?}");
    Ok(())
}

/// With systemd the group lies in a scope, which systemd removes.
fn scope_of_systemd() -> anyhow::Result<()> {
    let mut bed = Bed::new()?;
    bed.job("scoped", &[])?;
    let mut allocator = bed.allocator(&["--policy", "none"])?;
    bed.wait_until_managed(&["scoped"])?;
    let folder = bed.group("scoped")?.cgroup().cpu_folder().to_owned();
    let scope = folder.parent().and_then(Path::file_name).context("it is in a scope")?;
    let scope = scope.to_string_lossy().into_owned();
    ensure!(
        scope.starts_with("paceline-scoped-") && scope.strip_suffix(".scope").is_some(),
        "{scope}"
    );
    let pinned = bed.run(&["pin", "scoped", "0.25"])?;
    ensure!(pinned.status.success(), "{pinned:?}");
    let limit = bed.quota("scoped")?;
    ensure!(limit.is_some(), "the job is limited");
    systemctl(&["daemon-reload"])?;
    systemctl(&["set-property", "--runtime", &scope, "CPUQuota=137%"])?;
    ensure!(bed.quota("scoped")? == limit, "systemd leaves the delegated group alone");
    systemctl(&["stop", &scope])?;
    // The allocator removes the record, and systemd the scope with all groups in it.
    bed.keeps_records = false;
    bed.wait_until_nothing_is_left(&[folder])?;
    end(&mut allocator)
}
