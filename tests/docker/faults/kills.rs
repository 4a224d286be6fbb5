//! The allocator is killed: at each step of a plan, and at any moment.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use futures_util::future::try_join_all;
use paceline_api::audit::{Entry, read};
use paceline_system_tests::{Allocator, Job, Limits, TestEnv, until};
use rustix::process::Signal;

use super::{all_limits, ensure_back};
use crate::flowcon::{QUICK, all_cpus, flat, growing};
use crate::limits::Parent;

/// The steps of a plan, and of a restore, at which the allocator can be killed.
const STEPS: [&str; 6] = [
    "before-snapshot",
    "after-snapshot",
    "between-writes",
    "before-audit",
    "between-writes:1",
    "before-forgetting",
];

/// How many containers this test's allocator has limits to put back for.
fn left_behind(env: &TestEnv) -> usize {
    let engines = fs::read_dir(Allocator::state(env)).into_iter().flatten().flatten();
    let files = engines.flat_map(|engine| fs::read_dir(engine.path()).into_iter().flatten());
    files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "json")).count()
}

pub(crate) async fn killed_at_any_step_the_allocator_leaves_a_way_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let level = Job { name: "level", ..flat() };
    let names: [String; 3] =
        tokio::try_join!(env.start(flat()), env.start(level), env.start(growing()))?.into();
    let before = all_limits(&env, &names).await?;
    for (round, step) in STEPS.iter().enumerate() {
        for actuator in ["engine", "cgroup"] {
            let mut command = Allocator::command(&["run", "--with-label", &env.label()])?;
            command.args(["--listen", "none", "--control", "none"]);
            command.arg("--state-dir").arg(Allocator::state(&env));
            command.args(QUICK).args(["--actuator", actuator]).env("PACELINE_CRASH_AT", step);
            let mut allocator = Allocator::spawn(command)?;
            if *step == "before-forgetting" {
                until_any_cut(&env, &names).await?;
                allocator.signal(Signal::TERM)?;
            }
            let status = allocator.ended().await?;
            anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
            let kept = left_behind(&env);
            anyhow::ensure!((kept > 0) == (*step != "before-snapshot"), "{step}: {kept} are kept");
            // There are two ways to put limits back; take turns: the command, and the next run.
            if round % 2 == 0 {
                Allocator::restore(&env).await?;
            } else {
                let next = Allocator::run(&env, &["--policy", "none"])?;
                next.says(&["allocator runs"]).await?;
                next.end().await?;
            }
            ensure_back(&env, &names, &before)
                .await
                .with_context(|| format!("{step}, {actuator}"))?;
            anyhow::ensure!(left_behind(&env) == 0, "{step}: something is still to be put back");
        }
    }
    Ok(())
}

/// Waits until the kernel has a quota for one of these containers.
async fn until_any_cut(env: &TestEnv, names: &[String]) -> anyhow::Result<()> {
    until("a job is cut", || async {
        let limits = all_limits(env, names).await?;
        let cut = |limits: &Limits| limits.kernel.is_some_and(|quota| quota.quota.is_some());
        Ok(limits.iter().any(cut).then_some(()))
    })
    .await
}

/// Containers with each kind of limit on an engine with `all` billionths of a CPU; one without a
/// limit is below the control group `parent`.
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
async fn one_of_each(env: &TestEnv, parent: &Parent) -> anyhow::Result<Vec<String>> {
    let kinds = of_every_kind(all_cpus(env).await?, parent).into_iter();
    let jobs = kinds.map(|(name, host)| Job { name, host, ..flat() });
    try_join_all(jobs.chain([growing()]).map(|job| env.start(job))).await
}

/// Starts the allocator and kills it twenty times, each after a different wait. Every other wait
/// begins once it has written.
async fn kill_and_kill_again(env: &TestEnv, actuator: &str) -> anyhow::Result<()> {
    let mut wait = 17_u64;
    let mut interrupted = 0;
    for round in 0..20 {
        let before = writes(env)?;
        let words = ["--param", "interval=0.25", "--actuator", actuator];
        let mut allocator = Allocator::run(env, &[&QUICK[..], &words].concat())?;
        wait = wait * 1_103 % 3_989;
        let longest = if round % 2 == 0 {
            let wrote = || async { Ok((writes(env)? > before).then_some(())) };
            until("it writes", wrote).await.with_context(|| allocator.said())?;
            200
        } else {
            1_500
        };
        tokio::time::sleep(Duration::from_millis(wait % longest)).await;
        allocator.signal(Signal::KILL)?;
        allocator.ended().await?;
        interrupted += usize::from(left_behind(env) > 0);
    }
    anyhow::ensure!(interrupted >= 5, "only {interrupted} runs of 20 had written when killed");
    Ok(())
}

/// How many written limits the audit log has.
fn writes(env: &TestEnv) -> anyhow::Result<usize> {
    let folder = Allocator::state(env);
    if !folder.exists() {
        return Ok(0);
    }
    let records = read::last(&folder, usize::MAX)?;
    Ok(records.iter().filter(|one| matches!(one.entry, Entry::Limited { .. })).count())
}

pub(crate) async fn values_are_unchanged_after_twenty_kills(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let parent = Parent::make(env.name("parent"), all_cpus(&env).await? / 40_000 * 3)?;
    let names = one_of_each(&env, &parent).await?;
    let before = all_limits(&env, &names).await?;
    let killed = kill_and_kill_again(&env, "engine").await;
    let restored = Allocator::restore(&env).await;
    let back = ensure_back(&env, &names, &before).await;
    env.clear().await?;
    drop(parent);
    killed.and(restored.map(drop)).and(back)
}

pub(crate) async fn twenty_kills_of_the_cgroup_actuator_leave_no_trace(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let parent = Parent::make(env.name("parent"), all_cpus(&env).await? / 40_000 * 3)?;
    let names = one_of_each(&env, &parent).await?;
    let before = all_limits(&env, &names).await?;
    let killed = kill_and_kill_again(&env, "cgroup").await;
    let restored = Allocator::restore(&env).await;
    let after = all_limits(&env, &names).await?;
    env.clear().await?;
    drop(parent);
    killed.and(restored.map(drop))?;
    anyhow::ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}
