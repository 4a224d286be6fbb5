//! What only root can try: to be another user, and to fill a disk.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_allocator::audit::verify::verify;
use paceline_allocator::audit::{Audit, Entry, read};
use paceline_system_tests::{Office, example, program};
use tokio::runtime::Runtime;

/// Nobody in particular.
const SOMEBODY: &str = "65534";

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let root = rustix::process::geteuid().is_root();
    let trial = |name: &str, test: fn() -> anyhow::Result<()>| {
        Trial::test(name, move || Ok(test()?)).with_ignored_flag(!root)
    };
    let trials = vec![
        trial("another_user_gets_one_clear_line", another_user_gets_one_clear_line),
        trial("who_is_let_in_may_look_and_not_order", who_is_let_in_may_look_and_not_order),
        trial("a_full_disk_ends_nothing", a_full_disk_ends_nothing),
    ];
    libtest_mimic::run(&args, trials).exit_code()
}

/// An office that somebody may walk up to, and the program where he may run it.
fn office(runtime: &Runtime) -> anyhow::Result<(Office, PathBuf)> {
    let office = runtime.block_on(async { Office::open(example()) })?;
    set_mode(&office.state(), 0o755)?;
    let copy = office.state().join("paceline");
    std::fs::copy(program("paceline")?, &copy)?;
    set_mode(&copy, 0o755)?;
    Ok((office, copy))
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    Ok(std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?)
}

/// Runs `paceline` as somebody: exit code, output, errors.
fn by_somebody(
    program: &Path,
    office: &Office,
    words: &[&str],
) -> anyhow::Result<(i32, String, String)> {
    let Output { status, stdout, stderr } = Command::new("setpriv")
        .args(["--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups", "--"])
        .arg(program)
        .args(words)
        .env("PACELINE_CONTROL", office.socket())
        .env("XDG_STATE_HOME", "/nonexistent")
        .output()?;
    let code = status.code().context("it was killed")?;
    Ok((code, String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

fn another_user_gets_one_clear_line() -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let (office, paceline) = office(&runtime)?;
    for words in [&["pin", "vae", "0.5"][..], &["release", "vae"], &["status"], &["top"]] {
        let (code, said, error) = by_somebody(&paceline, &office, words)?;
        ensure!((code, said.as_str(), error.lines().count()) == (1, "", 1), "{code} {said}{error}");
        ensure!(error.contains("only root, and the user who runs the allocator"), "{error}");
    }
    ensure!(office.ordered().is_empty(), "{:?}", office.ordered());
    Ok(())
}

fn who_is_let_in_may_look_and_not_order() -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let (office, paceline) = office(&runtime)?;
    set_mode(&office.socket(), 0o666)?;
    let (code, said, error) = by_somebody(&paceline, &office, &["status"])?;
    ensure!(code == 0 && said.contains("vae"), "{error}");
    // The log lies where this user would not look for it: the allocator is asked.
    let (code, said, error) = by_somebody(&paceline, &office, &["explain", "vae"])?;
    ensure!(code == 0 && said.contains("vae is given 50.0 %"), "{error}");
    let (code, _, error) = by_somebody(&paceline, &office, &["release", "vae"])?;
    ensure!(code == 1 && error.lines().count() == 1, "{code} {error}");
    ensure!(error.contains("only root") && error.contains(SOMEBODY), "{error}");
    ensure!(office.ordered().is_empty(), "{:?}", office.ordered());
    Ok(())
}

/// A small disk, taken away when this is dropped.
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
        // Where it cannot be taken away, the temporary folder stays, and says so by itself. The thread that
        // brings the log to the disk may not have closed it yet.
        drop(Command::new("umount").arg("--lazy").arg(self.0.path()).status());
    }
}

fn a_full_disk_ends_nothing() -> anyhow::Result<()> {
    let disk = Disk::mount()?;
    let folder = disk.0.path();
    let mut log = Audit::open(folder)?;
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 32 * 1024])?;
    let entry = Entry::Restored { container: "4f2a".to_owned(), how: "x".repeat(700) };
    let written = 100_u64;
    (0..written).for_each(|_| log.write(&entry));
    let full = verify(folder, None)?;
    ensure!(full.holds() && !full.torn && full.entries < 50, "what is there is whole: {full:?}");
    std::fs::remove_file(&ballast)?;
    log.write(&Entry::Ended { left: 0 });
    let after = verify(folder, None)?;
    ensure!(after.holds() && after.entries == full.entries + 2, "{after:?}");
    let missed = Entry::Missed { count: written - full.entries };
    let last: Vec<Entry> = read::last(folder, 2)?.into_iter().map(|record| record.entry).collect();
    ensure!(last == [missed, Entry::Ended { left: 0 }], "{last:?}");
    drop(log);
    Ok(())
}
