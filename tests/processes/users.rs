//! Jobs of another user, with and without an allocator of that user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::ensure;
use paceline_cgroup::mounts;
use paceline_system_tests::program;

use super::{Bed, JOB, Running, end};

/// The id of another user, who has no rights.
const OTHER_USER: u32 = 65_534;

/// A command as another user, who may run a copy of the program.
fn as_other_user(bed: &Bed, words: &[&str]) -> anyhow::Result<Command> {
    fs::set_permissions(bed.folder.path(), fs::Permissions::from_mode(0o755))?;
    let copy = bed.path("paceline");
    if !copy.exists() {
        fs::copy(program("paceline")?, &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    }
    let user = OTHER_USER.to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"])
        .arg(copy)
        .args(words);
    command.env("PACELINE_JOBS", bed.path("jobs")).env_remove("XDG_RUNTIME_DIR").current_dir("/");
    command.env("PACELINE_CONTROL", bed.path("control.sock"));
    Ok(command)
}

pub(super) fn user_without_rights() -> anyhow::Result<()> {
    let _one = only_one()?;
    let bed = Bed::new()?;
    chown(bed.path("jobs"), Some(OTHER_USER), None)?;
    let words = ["exec", "--sidecar", "none", "--", "sh", "-c", "echo ran; exit 5"];
    let output = as_other_user(&bed, &words)?.output()?;
    ensure!(output.status.code() == Some(5) && output.stdout == b"ran\n", "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.lines().count() == 1 && said.contains("sh runs unmanaged: "), "{said}");
    ensure!(said.contains("permission denied") && said.contains("run it as root"), "{said}");
    bed.wait_until_nothing_is_left(&[])
}

/// A lock between the tests that depend on what a user may do with the machine's groups.
fn only_one() -> anyhow::Result<fs::File> {
    let file = fs::File::create(program("paceline")?.with_file_name("test-groups.lock"))?;
    file.lock()?;
    Ok(file)
}

/// Folders of control groups in which every user may make groups, as root prepares them. They are removed
/// when this is dropped.
struct Opened(Vec<PathBuf>, #[expect(dead_code, reason = "it holds the lock")] fs::File);

impl Opened {
    fn new() -> anyhow::Result<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mountinfo = fs::read_to_string("/proc/self/mountinfo")?;
        let own = ["cpu", "cpuacct"].map(|it| mounts::v1_folder(it, &groups, &mountinfo));
        let mut folders: Vec<PathBuf> =
            own.into_iter().flatten().map(|own| own.join("paceline")).collect();
        folders.dedup();
        let opened = Self(folders, only_one()?);
        for folder in &opened.0 {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))?;
        }
        Ok(opened)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Another test's jobs may be in it: then it becomes private again, and goes with the last one.
            drop(fs::set_permissions(folder, fs::Permissions::from_mode(0o755)));
            drop(fs::remove_dir(folder));
        }
    }
}

pub(super) fn owner_orders() -> anyhow::Result<()> {
    let opened = Opened::new()?;
    // In version 2 only systemd gives a user a group.
    if opened.0.is_empty() {
        return Ok(());
    }
    let mut bed = Bed::new()?;
    fs::set_permissions(bed.path("jobs"), fs::Permissions::from_mode(0o1777))?;
    bed.job("roots", &[])?;
    let sidecar = bed.path("paceline-sidecar");
    fs::copy(program("paceline-sidecar")?, &sidecar)?;
    fs::set_permissions(&sidecar, fs::Permissions::from_mode(0o755))?;
    let mut users = as_other_user(&bed, &["exec", "--job", "users", "--", "awk", JOB])?;
    bed.jobs.push(users.stdout(Stdio::null()).spawn()?);
    let group = OTHER_USER.to_string();
    let mut allocator = bed.allocator(&["--policy", "none", "--control-group", &group])?;
    bed.wait_until_managed(&["roots", "users"])?;
    ensure!(bed.group("users")?.owner()? == OTHER_USER);
    let order = |words: &[&str]| anyhow::Ok(as_other_user(&bed, words)?.output()?);
    let set = order(&["set", "users", "--acceptable", "2"])?;
    ensure!(set.status.success(), "{set:?}");
    for words in [
        &["set", "roots", "--acceptable", "2"][..],
        &["pin", "users", "1"],
        &["release", "roots"],
        &["log-level", "debug"],
    ] {
        let refused = order(words)?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(refused.status.code() == Some(1) && said.contains("may not give"), "{said}");
    }
    let released = order(&["release", "users"])?;
    ensure!(released.status.success(), "{released:?}");
    let groups = bed.folders()?;
    end(&mut allocator)?;
    ensure!(groups.len() == 2, "{groups:?}");
    bed.end_jobs();
    bed.wait_until_nothing_is_left(&groups)
}

pub(super) fn user_allocator() -> anyhow::Result<()> {
    let opened = Opened::new()?;
    if opened.0.is_empty() {
        return Ok(());
    }
    let mut bed = bed_of_a_user()?;
    bed.job("roots", &[])?;
    let mut own = users_allocator(&bed)?;
    bed.wait("the user's allocator takes orders", || Ok(users_pin(&bed)?.status.success()))?;
    ensure!(bed.quota("users")?.is_some(), "the user's job is limited");
    // Root's allocator leaves the jobs of this user alone, as long as the user's runs.
    let mut roots = roots_allocator(&bed)?;
    bed.wait_until_managed(&["roots"])?;
    end(&mut own)?;
    bed.wait_until_managed(&["roots", "users"])?;
    ensure!(bed.quota("users")?.is_none(), "the user's allocator has restored it");
    let refused = command_output(&mut users_run(&bed)?)?;
    ensure!(refused.contains("an allocator of root manages them"), "{refused}");
    end(&mut roots)?;
    let groups = bed.folders()?;
    bed.end_jobs();
    bed.wait_until_nothing_is_left(&groups)
}

/// Root's allocator is killed, then the user's: neither takes a limit that the other one has left for the
/// owner's.
pub(super) fn killed_allocators() -> anyhow::Result<()> {
    let opened = Opened::new()?;
    if opened.0.is_empty() {
        return Ok(());
    }
    let mut bed = bed_of_a_user()?;
    let roots = roots_allocator(&bed)?;
    bed.wait_until_managed(&["users"])?;
    let roots_pin = || bed.run(&["pin", "users", "0.1"]);
    ensure!(roots_pin()?.status.success());
    let left = bed.quota("users")?;
    ensure!(left.is_some(), "the job is limited");
    // SIGKILL.
    drop(roots);
    let mut own = users_allocator(&bed)?;
    let refused = |pinned: &Output, user: &str| {
        let said = String::from_utf8_lossy(&pinned.stderr);
        pinned.status.code() == Some(1) && said.contains(user) && said.contains("has left limits")
    };
    bed.wait("the user's allocator names root", || Ok(refused(&users_pin(&bed)?, "of user 0 ")))?;
    ensure!(bed.quota("users")? == left, "it leaves the job alone");
    end(&mut own)?;
    ensure!(bed.quota("users")? == left, "it leaves the job alone when it ends");
    let state = roots_state(&bed);
    let restored = bed.run(&["restore", "--runtime", "processes", "--state-dir", &state])?;
    ensure!(restored.status.success() && bed.quota("users")?.is_none(), "{restored:?}");
    let own = users_allocator(&bed)?;
    bed.wait("the user's allocator takes orders", || Ok(users_pin(&bed)?.status.success()))?;
    let left = bed.quota("users")?;
    drop(own);
    let mut roots = roots_allocator(&bed)?;
    let user = format!("of user {OTHER_USER} ");
    bed.wait("root's allocator names the user", || Ok(refused(&roots_pin()?, &user)))?;
    ensure!(left.is_some() && bed.quota("users")? == left, "it leaves the job alone");
    // A restore works beside it.
    let state = users_state(&bed);
    let words = ["restore", "--runtime", "processes", "--state-dir", &state];
    let restored = users_command(&bed, &words)?.output()?;
    ensure!(restored.status.success() && bed.quota("users")?.is_none(), "{restored:?}");
    bed.wait("root's allocator takes orders", || Ok(roots_pin()?.status.success()))?;
    end(&mut roots)?;
    let groups = bed.folders()?;
    ensure!(bed.quota("users")?.is_none(), "the limit is gone");
    bed.end_jobs();
    bed.wait_until_nothing_is_left(&groups)
}

/// A folder of jobs with one of the user, which trains.
fn bed_of_a_user() -> anyhow::Result<Bed> {
    let mut bed = Bed::new()?;
    fs::set_permissions(bed.path("jobs"), fs::Permissions::from_mode(0o1777))?;
    for folder in ["state", "own"] {
        fs::create_dir(bed.path(folder))?;
        chown(bed.path(folder), Some(OTHER_USER), Some(OTHER_USER))?;
    }
    let sidecar = bed.path("paceline-sidecar");
    fs::copy(program("paceline-sidecar")?, &sidecar)?;
    fs::set_permissions(&sidecar, fs::Permissions::from_mode(0o755))?;
    let mut users = as_other_user(&bed, &["exec", "--job", "users", "--", "awk", JOB])?;
    bed.jobs.push(users.stdout(Stdio::null()).spawn()?);
    Ok(bed)
}

/// A command of the user, to the user's own allocator.
fn users_command(bed: &Bed, words: &[&str]) -> anyhow::Result<Command> {
    let mut command = as_other_user(bed, words)?;
    command.env("PACELINE_CONTROL", bed.path("own/control.sock"));
    Ok(command)
}

fn users_state(bed: &Bed) -> String {
    bed.path("state").display().to_string()
}

fn roots_state(bed: &Bed) -> String {
    bed.path("state-root").display().to_string()
}

/// The user's own allocator.
fn users_run(bed: &Bed) -> anyhow::Result<Command> {
    let state = users_state(bed);
    let words = ["run", "--user", "--policy", "none", "--listen", "none", "--state-dir", &state];
    users_command(bed, &words)
}

/// Starts the user's own allocator.
fn users_allocator(bed: &Bed) -> anyhow::Result<Running> {
    let said = fs::File::create(bed.path("said"))?;
    Ok(Running(users_run(bed)?.stderr(said).spawn()?))
}

/// The user pins the job by the user's own allocator.
fn users_pin(bed: &Bed) -> anyhow::Result<Output> {
    Ok(users_command(bed, &["pin", "users", "0.25"])?.output()?)
}

/// Starts an allocator of root.
fn roots_allocator(bed: &Bed) -> anyhow::Result<Running> {
    bed.allocator(&["--policy", "none", "--state-dir", &roots_state(bed)])
}

/// The errors of a command that fails.
fn command_output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    ensure!(!output.status.success(), "{output:?}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
