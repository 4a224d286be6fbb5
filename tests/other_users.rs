//! Tests that need root: they become another user, or fill a disk.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_api::audit::verify::verify;
use paceline_api::audit::{Audit, Entry, read};
use paceline_system_tests::{FakeDaemon, example, program};
use rustix::process::Uid;
use tokio::runtime::Runtime;

/// The id of another user, who has no rights.
const OTHER_USER: &str = "65534";
/// How many connections another user opens.
const CROWD: usize = 600;

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let root = rustix::process::geteuid().is_root();
    let trial = |name: &str, test: fn() -> anyhow::Result<()>| {
        Trial::test(name, move || Ok(test()?)).with_ignored_flag(!root)
    };
    let trials = vec![
        trial("another_user_gets_one_clear_line", another_user_gets_one_clear_line),
        trial("permitted_user_may_look_but_not_order", permitted_user_may_look_but_not_order),
        trial(
            "crowd_of_another_user_does_not_delay_root",
            crowd_of_another_user_does_not_delay_root,
        ),
        trial("a_full_disk_ends_nothing", a_full_disk_ends_nothing),
    ];
    libtest_mimic::run(&args, trials).exit_code()
}

/// A daemon whose folder every user may enter, and a copy of the program that every user may run.
fn daemon(runtime: &Runtime) -> anyhow::Result<(FakeDaemon, PathBuf)> {
    let daemon = runtime.block_on(async { FakeDaemon::open(example()) })?;
    set_mode(&daemon.state(), 0o755)?;
    let copy = daemon.state().join("paceline");
    std::fs::copy(program("paceline")?, &copy)?;
    set_mode(&copy, 0o755)?;
    Ok((daemon, copy))
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    Ok(std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?)
}

/// Runs `paceline` as another user; returns exit code, output and errors.
fn as_other_user(
    program: &Path,
    daemon: &FakeDaemon,
    words: &[&str],
) -> anyhow::Result<(i32, String, String)> {
    let Output { status, stdout, stderr } = Command::new("setpriv")
        .args(["--reuid", OTHER_USER, "--regid", OTHER_USER, "--clear-groups", "--"])
        .arg(program)
        .args(words)
        .env("PACELINE_CONTROL", daemon.socket())
        .env("XDG_STATE_HOME", "/nonexistent")
        .output()?;
    let code = status.code().context("it was killed")?;
    Ok((code, String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

fn another_user_gets_one_clear_line() -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let (daemon, paceline) = daemon(&runtime)?;
    for words in [&["pin", "vae", "0.5"][..], &["release", "vae"], &["status"], &["top"]] {
        let (code, said, error) = as_other_user(&paceline, &daemon, words)?;
        ensure!((code, said.as_str(), error.lines().count()) == (1, "", 1), "{code} {said}{error}");
        ensure!(error.contains("as root or as the user who runs the allocator"), "{error}");
    }
    ensure!(daemon.ordered().is_empty(), "{:?}", daemon.ordered());
    Ok(())
}

fn permitted_user_may_look_but_not_order() -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let (daemon, paceline) = daemon(&runtime)?;
    set_mode(&daemon.socket(), 0o666)?;
    let (code, said, error) = as_other_user(&paceline, &daemon, &["status"])?;
    ensure!(code == 0 && said.contains("vae"), "{error}");
    // This user's command does not find the log by itself: it asks the allocator.
    let (code, said, error) = as_other_user(&paceline, &daemon, &["explain", "vae"])?;
    ensure!(code == 0 && said.contains("vae is given 50.0 %"), "{error}");
    let (code, _, error) = as_other_user(&paceline, &daemon, &["release", "vae"])?;
    ensure!(code == 1 && error.lines().count() == 1, "{code} {error}");
    ensure!(error.contains("only root") && error.contains(OTHER_USER), "{error}");
    ensure!(daemon.ordered().is_empty(), "{:?}", daemon.ordered());
    Ok(())
}

/// Connects to the socket as another user, as often as possible; the connections stay open and silent.
fn crowd(socket: &Path) -> anyhow::Result<Vec<UnixStream>> {
    let socket = socket.to_owned();
    let connects = move || {
        let other = Uid::from_raw(OTHER_USER.parse()?);
        // Only this thread becomes another user.
        rustix::thread::set_thread_res_uid(other, other, other)?;
        anyhow::Ok((0..CROWD).filter_map(|_| UnixStream::connect(&socket).ok()).collect())
    };
    std::thread::spawn(connects).join().map_err(|_| anyhow::anyhow!("the thread panicked"))?
}

fn crowd_of_another_user_does_not_delay_root() -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let (daemon, paceline) = daemon(&runtime)?;
    set_mode(&daemon.socket(), 0o666)?;
    let silent = crowd(&daemon.socket())?;
    ensure!(silent.len() > CROWD / 2, "only {} could connect", silent.len());
    let status = Command::new(&paceline)
        .args(["status"])
        .env("PACELINE_CONTROL", daemon.socket())
        .output()?;
    ensure!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    // Those that got a place are still served or waiting, so root did not wait for them.
    let open = silent.iter().filter(|client| is_open(client)).count();
    ensure!(open > 16, "only {open} are still connected");
    Ok(())
}

/// Whether the other end has not closed the connection.
fn is_open(client: &UnixStream) -> bool {
    let nonblocking = client.set_nonblocking(true);
    let mut client = client;
    nonblocking.is_ok()
        && client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// A small disk, unmounted when this is dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> anyhow::Result<Self> {
        let place = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(place.path());
        ensure!(mount.status()?.success(), "a small disk cannot be mounted");
        Ok(Self(place))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the thread that syncs the log may not have closed it yet. If unmounting fails, the
        // temporary folder stays.
        drop(Command::new("umount").arg("--lazy").arg(self.0.path()).status());
    }
}

fn a_full_disk_ends_nothing() -> anyhow::Result<()> {
    let disk = Disk::mount()?;
    let folder = &disk.0.path().join("state");
    let mut log = Audit::open(folder)?;
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 32 * 1024])?;
    let entry = Entry::Restored { container: "4f2a".to_owned(), how: "x".repeat(700) };
    let written = 100_u64;
    (0..written).for_each(|_| log.write(&entry));
    let full = verify(folder, None)?;
    ensure!(full.holds() && !full.torn && full.entries < 50, "the log is not intact: {full:?}");
    std::fs::remove_file(&ballast)?;
    log.write(&Entry::Ended { left: 0 });
    let after = verify(folder, None)?;
    ensure!(after.holds() && after.entries == full.entries + 2, "{after:?}");
    // The log's first entry is its own: from then on it has a head.
    let missed = Entry::Missed { count: written + 1 - full.entries };
    let last: Vec<Entry> = read::last(folder, 2)?.into_iter().map(|record| record.entry).collect();
    ensure!(last == [missed, Entry::Ended { left: 0 }], "{last:?}");
    drop(log);
    Ok(())
}
