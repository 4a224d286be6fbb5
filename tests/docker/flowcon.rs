//! FlowCon on real containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::{RestartContainerOptionsBuilder, StopContainerOptionsBuilder};
use paceline_api::audit::{Entry, Record, read};
use paceline_cgroup::Quota;
use paceline_system_tests::{Allocator, Job, TestEnv, until};

/// FlowCon, quick enough for a test: a flat job is cut after two measurements, and is lent nothing.
/// With this `alpha`, [`growing`] counts as growing for longer than any test takes: growth is
/// measured per second of CPU and not by the clock. A flat loss has no growth at all.
pub(crate) const QUICK: [&str; 8] = [
    "--policy",
    "flowcon",
    "--param",
    "interval=0.5",
    "--param",
    "alpha=0.00001",
    "--enforcement",
    "quota",
];

/// A job whose loss falls for as long as the test lasts.
pub(crate) fn growing() -> Job {
    Job { name: "growing", args: vec!["--half-life", "40000"], ..Job::default() }
}

/// A job whose loss is constant: it is cut to 1/(beta·n).
pub(crate) fn flat() -> Job {
    Job { name: "flat", ..Job::default() }
}

/// Starts both. Returns the flat one's name.
pub(crate) async fn flat_and_growing(env: &TestEnv) -> anyhow::Result<String> {
    let (flat, _) = tokio::try_join!(env.start(flat()), env.start(growing()))?;
    Ok(flat)
}

/// The engine's CPUs, in billionths.
pub(crate) async fn all_cpus(env: &TestEnv) -> anyhow::Result<i64> {
    let cpus = env.docker().info().await?.ncpu.unwrap_or_default();
    Ok(cpus * 1_000_000_000)
}

/// Waits until the flat one of two jobs has its quarter of the machine.
pub(crate) async fn until_cut(env: &TestEnv, flat: &str) -> anyhow::Result<()> {
    let quarter = all_cpus(env).await? / 4;
    let quota = Quota { quota: Some(u64::try_from(quarter / 10_000)?), period: 100_000 };
    until("the flat job has a quarter of the machine", || async {
        Ok((env.limits(flat).await?.kernel == Some(quota)).then_some(()))
    })
    .await
}

/// Starts a flat and a growing job, and an allocator with [`QUICK`] and `words`. Returns the flat
/// job's name and the allocator once it has cut that job.
pub(crate) async fn cut_job(env: &TestEnv, words: &[&str]) -> anyhow::Result<(String, Allocator)> {
    let flat = flat_and_growing(env).await?;
    let allocator = Allocator::run(env, &[&QUICK[..], words].concat())?;
    until_cut(env, &flat).await.with_context(|| allocator.said())?;
    // It is in force a moment before the engine has answered. Until then the allocator takes another
    // program's write for its own failed one.
    allocator.says(&["job=flat", "-> 25.0 %"]).await?;
    Ok((flat, allocator))
}

/// Fails unless a container that was created without a limit has none again.
pub(crate) async fn ensure_unlimited(env: &TestEnv, name: &str) -> anyhow::Result<()> {
    let (limits, all) = (env.limits(name).await?, all_cpus(env).await?);
    let host = limits.host;
    anyhow::ensure!(
        (host.nano_cpus == 0 || host.nano_cpus == all) && host.cpu_quota == 0,
        "the engine keeps {host:?}"
    );
    anyhow::ensure!(limits.kernel.is_none_or(|quota| quota.quota.is_none()), "{limits:?}");
    Ok(())
}

pub(crate) async fn cpu_moves_to_the_growing_job_and_every_limit_is_put_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(env.start(flat()), env.start(growing()))?;
    let allocator = Allocator::run(&env, &QUICK)?;
    until_cut(&env, &flat).await?;
    // A machine that stalls for a moment makes every job look flat. The growing job may have been
    // cut once and have all CPUs back, which the kernel shows as a quota of the whole machine.
    let all = u64::try_from(all_cpus(&env).await? / 10_000)?;
    until("the growing job has the machine", || async {
        let kernel = env.limits(&growing).await?.kernel;
        let quota = kernel.and_then(|quota| quota.quota);
        Ok(quota.is_none_or(|quota| quota == all).then_some(()))
    })
    .await?;
    ensure_flat_is_cut_alone(&env)?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await?;
    ensure_unlimited(&env, &growing).await
}

/// Fails unless the audit log has a decision that cuts the flat job alone.
fn ensure_flat_is_cut_alone(env: &TestEnv) -> anyhow::Result<()> {
    let mut cut: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for record in read::last(&Allocator::state(env), usize::MAX)? {
        if let Entry::Decided { number, job, chosen, .. } = record.entry
            && chosen < 1.0
        {
            cut.entry(number).or_default().push(job);
        }
    }
    anyhow::ensure!(cut.values().any(|jobs| jobs == &["flat"]), "{cut:?}");
    Ok(())
}

pub(crate) async fn a_job_that_ends_leaves_its_container_without_our_limit(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&env, &["--actuator", "engine"]).await?;
    let now = StopContainerOptionsBuilder::default().t(0).build();
    env.docker().stop_container(&flat, Some(now)).await?;
    // A stopped container would start again with the limit that the engine keeps.
    until("the stopped container's limit is lifted", || async {
        Ok(ensure_unlimited(&env, &flat).await.ok())
    })
    .await?;
    allocator.end().await
}

pub(crate) async fn a_restarted_container_is_managed_again(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&env, &[]).await?;
    let before = env.inspect(&flat).await?.started_at;
    let now = RestartContainerOptionsBuilder::default().t(0).build();
    env.docker().restart_container(&flat, Some(now)).await?;
    anyhow::ensure!(env.inspect(&flat).await?.started_at != before, "it was not restarted");
    // It may be cut again before this test reads its limits; the log keeps both events.
    until("the limit of its last life is put back", || async {
        let records = read::last(&Allocator::state(&env), usize::MAX)?;
        let back = |record: &Record| matches!(record.entry, Entry::Restored { .. });
        Ok(records.iter().any(back).then_some(()))
    })
    .await?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}

pub(crate) async fn a_dry_run_writes_nothing(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let before = env.limits(&flat).await?;
    let allocator = Allocator::run(&env, &[&QUICK[..], &["--dry-run"]].concat())?;
    allocator.says(&["dry run", "flat", "25.0 %"]).await?;
    anyhow::ensure!(env.limits(&flat).await? == before, "it was written to");
    anyhow::ensure!(!Allocator::state(&env).exists(), "a dry run keeps no originals");
    allocator.end().await
}
