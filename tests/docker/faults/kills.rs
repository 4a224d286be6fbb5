//! The allocator killed: at each step of a plan, and at any moment.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use futures_util::future::try_join_all;
use paceline_allocator::audit::{Entry, read};
use paceline_system_tests::{Allocator, Bed, Job, Limits, until};
use rustix::process::Signal;

use super::{all_limits, ensure_back};
use crate::flowcon::{QUICK, all_cpus, flat, growing};
use crate::limits::Parent;

/// The steps of a plan, and of putting back, at which the allocator can be killed.
const STEPS: [&str; 6] = [
    "before-snapshot",
    "after-snapshot",
    "between-writes",
    "before-audit",
    "between-writes:1",
    "before-forgetting",
];

/// How many containers the allocator of a bed has something to put back for.
fn left_behind(bed: &Bed) -> usize {
    let engines = fs::read_dir(Allocator::state(bed)).into_iter().flatten().flatten();
    let files = engines.flat_map(|engine| fs::read_dir(engine.path()).into_iter().flatten());
    files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "json")).count()
}

pub(crate) async fn killed_at_any_step_the_allocator_leaves_a_way_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let level = Job { name: "level", ..flat() };
    let names: [String; 3] =
        tokio::try_join!(bed.start(flat()), bed.start(level), bed.start(growing()))?.into();
    let before = all_limits(&bed, &names).await?;
    for (round, step) in STEPS.iter().enumerate() {
        for means in ["engine", "cgroup"] {
            let mut command = Allocator::command(&["run", "--with-label", &bed.label()])?;
            command.args(["--listen", "none", "--control", "none"]);
            command.arg("--state-dir").arg(Allocator::state(&bed));
            command.args(QUICK).args(["--actuator", means]).env("PACELINE_CRASH_AT", step);
            let mut allocator = Allocator::spawn(command)?;
            if *step == "before-forgetting" {
                until_any_cut(&bed, &names).await?;
                allocator.signal(Signal::TERM)?;
            }
            let status = allocator.ended().await?;
            anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
            let kept = left_behind(&bed);
            anyhow::ensure!((kept > 0) == (*step != "before-snapshot"), "{step}: {kept} are kept");
            // Two ways to come back, in turn: the command, and the next run.
            if round % 2 == 0 {
                Allocator::restore(&bed).await?;
            } else {
                let next = Allocator::run(&bed, &["--policy", "none"])?;
                next.says(&["allocator runs"]).await?;
                next.end().await?;
            }
            ensure_back(&bed, &names, &before).await.with_context(|| format!("{step}, {means}"))?;
            anyhow::ensure!(left_behind(&bed) == 0, "{step}: something is still to be put back");
        }
    }
    Ok(())
}

/// Waits until the kernel has a quota for one of these containers.
async fn until_any_cut(bed: &Bed, names: &[String]) -> anyhow::Result<()> {
    until("a job is cut", || async {
        let limits = all_limits(bed, names).await?;
        let cut = |limits: &Limits| limits.kernel.is_some_and(|quota| quota.quota.is_some());
        Ok(limits.iter().any(cut).then_some(()))
    })
    .await
}

/// Limits of every kind on an engine with `all` billionths of a CPU, and none below `parent`.
fn of_every_kind(all: i64, parent: &Parent) -> Vec<(&'static str, HostConfig)> {
    let none = HostConfig::default;
    let mib = 1 << 20;
    vec![
        ("cpus", HostConfig { nano_cpus: Some(all / 5 * 3), ..none() }),
        ("quota", HostConfig { cpu_period: Some(50_000), cpu_quota: Some(45_000), ..none() }),
        ("shares", HostConfig { cpu_shares: Some(700), ..none() }),
        ("memory", HostConfig { memory: Some(256 * mib), memory_swap: Some(300 * mib), ..none() }),
        ("below", HostConfig { cgroup_parent: Some(parent.path()), ..none() }),
        ("free", none()),
    ]
}

/// A growing job, and one for each kind of limit.
async fn one_of_each(bed: &Bed, parent: &Parent) -> anyhow::Result<Vec<String>> {
    let kinds = of_every_kind(all_cpus(bed).await?, parent).into_iter();
    let jobs = kinds.map(|(name, host)| Job { name, host, ..flat() });
    try_join_all(jobs.chain([growing()]).map(|job| bed.start(job))).await
}

/// Kills the allocator twenty times after a while that is different each time, and starts it again. Every
/// other time, the while begins once it has written.
async fn kill_and_kill_again(bed: &Bed, means: &str) -> anyhow::Result<()> {
    let mut wait = 17_u64;
    let mut interrupted = 0;
    for round in 0..20 {
        let before = writes(bed)?;
        let words = ["--param", "interval=0.25", "--actuator", means];
        let mut allocator = Allocator::run(bed, &[&QUICK[..], &words].concat())?;
        wait = wait * 1_103 % 3_989;
        let longest = if round % 2 == 0 {
            let wrote = || async { Ok((writes(bed)? > before).then_some(())) };
            until("it writes", wrote).await.with_context(|| allocator.said())?;
            200
        } else {
            1_500
        };
        tokio::time::sleep(Duration::from_millis(wait % longest)).await;
        allocator.signal(Signal::KILL)?;
        allocator.ended().await?;
        interrupted += usize::from(left_behind(bed) > 0);
    }
    anyhow::ensure!(interrupted >= 5, "only {interrupted} runs of 20 had written when killed");
    Ok(())
}

/// How many limits the audit log says were written.
fn writes(bed: &Bed) -> anyhow::Result<usize> {
    let folder = Allocator::state(bed);
    if !folder.exists() {
        return Ok(0);
    }
    let records = read::last(&folder, usize::MAX)?;
    Ok(records.iter().filter(|one| matches!(one.entry, Entry::Limited { .. })).count())
}

pub(crate) async fn twenty_kills_later_every_value_is_what_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let parent = Parent::make(bed.name("parent"), all_cpus(&bed).await? / 40_000 * 3)?;
    let names = one_of_each(&bed, &parent).await?;
    let before = all_limits(&bed, &names).await?;
    let killed = kill_and_kill_again(&bed, "engine").await;
    let restored = Allocator::restore(&bed).await;
    let back = ensure_back(&bed, &names, &before).await;
    bed.clear().await?;
    drop(parent);
    killed.and(restored.map(drop)).and(back)
}

pub(crate) async fn twenty_kills_of_the_cgroup_actuator_leave_no_trace(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let parent = Parent::make(bed.name("parent"), all_cpus(&bed).await? / 40_000 * 3)?;
    let names = one_of_each(&bed, &parent).await?;
    let before = all_limits(&bed, &names).await?;
    let killed = kill_and_kill_again(&bed, "cgroup").await;
    let restored = Allocator::restore(&bed).await;
    let after = all_limits(&bed, &names).await?;
    bed.clear().await?;
    drop(parent);
    killed.and(restored.map(drop))?;
    anyhow::ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}
