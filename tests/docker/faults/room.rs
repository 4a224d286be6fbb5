//! Too little room: a full disk where the original limits and the audit log are kept, and a process that
//! may open hardly any more files.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use paceline_api::audit::verify::verify;
use paceline_api::audit::{Entry, read};
use paceline_api::live::Command;
use paceline_policy::Share;
use paceline_system_tests::{Allocator, Job, LOCKS, TestEnv, until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::flowcon::{QUICK, ensure_unlimited, flat, flat_and_growing, growing, until_cut};
use crate::orders::{order, until_quota};

/// An allocator that keeps everything on a small file system, mounted for it alone.
struct Cramped {
    allocator: Allocator,
    /// That file system, seen from here.
    disk: PathBuf,
}

impl Cramped {
    /// Starts it on a disk of `size` KiB, `filled` bytes of which are used.
    fn run(env: &TestEnv, size: u32, filled: u32) -> anyhow::Result<Self> {
        let state = Allocator::state(env);
        fs::create_dir_all(&state)?;
        let script = "mount -t tmpfs -o \"size=$1k,mode=0700\" none \"$3\" && \
                      head -c \"$2\" /dev/zero >\"$3/ballast\" && shift 3 && exec \"$@\"";
        let mut command = tokio::process::Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", script, "sh"]);
        command.args([size.to_string(), filled.to_string()]).arg(&state);
        let paceline = Allocator::running(env)?;
        command.arg(paceline.as_std().get_program()).args(paceline.as_std().get_args());
        command.args(["--listen", "none"]).args(QUICK).kill_on_drop(true);
        command.env(LOCKS, Allocator::locks()?);
        let allocator = Allocator::spawn(command)?;
        let disk = format!("/proc/{}/root{}", allocator.id()?, state.display());
        Ok(Self { allocator, disk: disk.into() })
    }

    /// Uses all free space.
    fn fill(&self) -> anyhow::Result<()> {
        let mut ballast = File::options().append(true).create(true).open(self.ballast())?;
        loop {
            match ballast.write(&[0; 512]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn make_room(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.disk.join("ballast")
    }
}

pub(crate) async fn without_room_for_the_originals_nothing_is_limited(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let before = env.limits(&flat).await?;
    // All is filled but one page, which the lock takes. Later the audit log needs some of the space
    // that is freed, too.
    let cramped = Cramped::run(&env, 128, 126_976)?;
    cramped.allocator.says(&["flat", "cannot record", "No space left"]).await?;
    anyhow::ensure!(env.limits(&flat).await? == before, "it was limited without a way back");
    // As soon as there is space, limits are written.
    cramped.make_room()?;
    until_cut(&env, &flat).await?;
    cramped.allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn full_audit_disk_stops_neither_limits_nor_restore(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let cramped = Cramped::run(&env, 1024, 0)?;
    until_cut(&env, &flat).await?;
    cramped.fill()?;
    // Many orders: the last page of the log may still have space for some.
    for turn in 0..20 {
        let share = if turn % 2 == 0 { 0.3 } else { 0.4 };
        pin(&env, share).await?;
        until_quota(&env, &flat, share).await?;
    }
    cramped.allocator.says(&["audit", "cannot write", "No space left"]).await?;
    cramped.make_room()?;
    pin(&env, 0.5).await?;
    // The allocator is still running: an incomplete line may be one that it is writing.
    until("the log's last line is whole", || async {
        let verdict = verify(&cramped.disk, None)?;
        anyhow::ensure!(verdict.holds(), "{verdict:?}");
        Ok((!verdict.torn).then_some(()))
    })
    .await?;
    let entries = read::last(&cramped.disk, usize::MAX)?;
    let missed = entries.iter().any(|one| matches!(one.entry, Entry::Missed { count: 1.. }));
    anyhow::ensure!(missed, "no entry counts the missing ones: {entries:?}");
    cramped.fill()?;
    cramped.allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn every_limit_comes_back_with_few_descriptors(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let mut flat_jobs = Vec::new();
    for name in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        flat_jobs.push(env.start(Job { name, ..flat() }).await?);
    }
    let growing = env.start(growing()).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    for name in &flat_jobs {
        until("every flat job is cut", || async {
            let kernel = env.limits(name).await?.kernel;
            Ok(kernel.and_then(|quota| quota.quota).map(|_| ()))
        })
        .await?;
    }
    let id = allocator.id()?;
    let open = fs::read_dir(format!("/proc/{id}/fd"))?.count();
    let most = Some(u64::try_from(open)? + 1);
    let pid = Pid::from_raw(i32::try_from(id)?);
    prlimit(pid, Resource::Nofile, Rlimit { current: most, maximum: most })?;
    allocator.end().await?;
    for name in flat_jobs.iter().chain([&growing]) {
        ensure_unlimited(&env, name).await?;
    }
    Ok(())
}

/// Pins the flat job at a share; fails unless the order is carried out.
async fn pin(env: &TestEnv, share: f64) -> anyhow::Result<()> {
    let name = "flat".to_owned();
    order(env, Command::Pin { name, share: Share::new(share)? }).await?;
    Ok(())
}
