//! FlowCon on real containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::{RestartContainerOptionsBuilder, StopContainerOptionsBuilder};
use paceline_allocator::audit::{Entry, Record, read};
use paceline_allocator::observe::cgroup::Quota;
use paceline_system_tests::{Allocator, Bed, Job, until};

/// FlowCon, quick enough for a test: a flat job is cut after two measurements, and gets nothing of
/// what the other leaves. With this `alpha`, [`growing`] grows for longer than any test takes, by its
/// steps for each second of CPU and not by the clock; a job that stands still has no growth at all.
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

/// A job whose loss stands still: it is cut to 1/(beta·n).
pub(crate) fn flat() -> Job {
    Job { name: "flat", ..Job::default() }
}

/// Starts both. Returns the flat one's name.
pub(crate) async fn flat_and_growing(bed: &Bed) -> anyhow::Result<String> {
    let (flat, _) = tokio::try_join!(bed.start(flat()), bed.start(growing()))?;
    Ok(flat)
}

/// The engine's CPUs, in billionths.
pub(crate) async fn all_cpus(bed: &Bed) -> anyhow::Result<i64> {
    let cpus = bed.docker().info().await?.ncpu.unwrap_or_default();
    Ok(cpus * 1_000_000_000)
}

/// Waits until the flat one of two jobs has its quarter of the machine, by the engine and by the
/// kernel.
pub(crate) async fn until_cut(bed: &Bed, flat: &str) -> anyhow::Result<()> {
    let quarter = all_cpus(bed).await? / 4;
    let quota = Quota { quota: Some(u64::try_from(quarter / 10_000)?), period: 100_000 };
    until("the flat job has a quarter of the machine", || async {
        let limits = bed.limits(flat).await?;
        Ok((limits.host.nano_cpus == quarter && limits.kernel == Some(quota)).then_some(()))
    })
    .await
}

/// A flat job that is cut beside a growing one, and the allocator, told `words` beside [`QUICK`],
/// that has cut it.
pub(crate) async fn cut_job(bed: &Bed, words: &[&str]) -> anyhow::Result<(String, Allocator)> {
    let flat = flat_and_growing(bed).await?;
    let allocator = Allocator::run(bed, &[&QUICK[..], words].concat())?;
    until_cut(bed, &flat).await.with_context(|| allocator.said())?;
    // It is in force a moment before the engine has answered. Until then the allocator takes a foreign write
    // for its own failed one.
    allocator.says(&["job=flat", "-> 25.0 %"]).await?;
    Ok((flat, allocator))
}

/// Whether a container that was made without a limit is without one again.
pub(crate) async fn ensure_unlimited(bed: &Bed, name: &str) -> anyhow::Result<()> {
    let (limits, all) = (bed.limits(name).await?, all_cpus(bed).await?);
    let host = limits.host;
    anyhow::ensure!(
        (host.nano_cpus == 0 || host.nano_cpus == all) && host.cpu_quota == 0,
        "the engine keeps {host:?}"
    );
    anyhow::ensure!(limits.kernel.is_none_or(|quota| quota.quota.is_none()), "{limits:?}");
    Ok(())
}

pub(crate) async fn cpu_moves_to_the_growing_job_and_every_limit_is_put_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(bed.start(flat()), bed.start(growing()))?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    // A machine that stands still for a moment makes every job look flat: it may have been cut once,
    // and have all CPUs back, which is a quota that is none.
    let all = u64::try_from(all_cpus(&bed).await? / 10_000)?;
    until("the growing job has the machine", || async {
        let kernel = bed.limits(&growing).await?.kernel;
        let quota = kernel.and_then(|quota| quota.quota);
        Ok(quota.is_none_or(|quota| quota == all).then_some(()))
    })
    .await?;
    ensure_flat_is_cut_alone(&bed)?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await?;
    ensure_unlimited(&bed, &growing).await
}

/// By the audit log: there is a decision that cuts the job that stands still, and no other one.
fn ensure_flat_is_cut_alone(bed: &Bed) -> anyhow::Result<()> {
    let mut cut: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for record in read::last(&Allocator::state(bed), usize::MAX)? {
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
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&bed, &[]).await?;
    let now = StopContainerOptionsBuilder::default().t(0).build();
    bed.docker().stop_container(&flat, Some(now)).await?;
    // Stopped, it would start again with whatever the engine keeps.
    until("the stopped container's limit is lifted", || async {
        Ok(ensure_unlimited(&bed, &flat).await.ok())
    })
    .await?;
    allocator.end().await
}

pub(crate) async fn a_restarted_container_is_managed_anew(bed: Arc<Bed>) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&bed, &[]).await?;
    let before = bed.inspect(&flat).await?.started_at;
    let now = RestartContainerOptionsBuilder::default().t(0).build();
    bed.docker().restart_container(&flat, Some(now)).await?;
    anyhow::ensure!(bed.inspect(&flat).await?.started_at != before, "it was not restarted");
    // It may be cut anew before it is looked at: the log does not forget.
    until("the limit of its last life is put back", || async {
        let records = read::last(&Allocator::state(&bed), usize::MAX)?;
        let back = |record: &Record| matches!(record.entry, Entry::Restored { .. });
        Ok(records.iter().any(back).then_some(()))
    })
    .await?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}

pub(crate) async fn a_dry_run_writes_nothing(bed: Arc<Bed>) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let before = bed.limits(&flat).await?;
    let allocator = Allocator::run(&bed, &[&QUICK[..], &["--dry-run"]].concat())?;
    allocator.says(&["dry run", "flat", "25.0 %"]).await?;
    anyhow::ensure!(bed.limits(&flat).await? == before, "it was written to");
    anyhow::ensure!(!Allocator::state(&bed).exists(), "a dry run keeps no originals");
    allocator.end().await
}
