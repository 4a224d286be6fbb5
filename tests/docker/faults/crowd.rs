//! Hundreds of containers that appear as fast as the engine can start them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use paceline_allocator::audit::{Entry, read};
use paceline_system_tests::{Allocator, Bed, Job, Limits, until_within};

use super::{all_limits, ensure_back};
use crate::flowcon::all_cpus;

/// Containers in all.
const ALL: usize = 200;
/// Those of them that are to be limited.
const LIMITED: usize = 20;
/// How long the crowd may take for anything: two hundred endpoints beside their engine, on a
/// machine that has other work.
const PATIENCE: Duration = Duration::from_mins(4);

/// A job that sleeps, at a loss of 4. It needs no network.
fn sleeper(acceptable: &'static str) -> Job {
    Job {
        args: vec!["--sleep", "100000"],
        labels: vec![("paceline.acceptable", acceptable), ("paceline.min-cpus", "0.1")],
        host: HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() },
        ..Job::default()
    }
}

pub(crate) async fn two_hundred_containers_at_once_are_all_seen_and_all_put_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let names: Vec<String> = (0..ALL).map(|number| bed.name(&format!("crowd-{number}"))).collect();
    let (cut, free) = names.split_at(LIMITED);
    // Whatever is used of the machine, TRADL caps what is acceptable beside what is not: here at as
    // little as it may get, a tenth of a CPU.
    let words = ["--policy", "tradl", "--param", "alpha=0", "--param", "interval=2"];
    let allocator = Allocator::run(&bed, &[&words[..], &["--enforcement", "quota"]].concat())?;
    allocator.says(&["allocator runs"]).await?;
    let [acceptable, other] = ["5", "1"].map(sleeper);
    tokio::try_join!(bed.start_at_once(cut, &acceptable), bed.start_at_once(free, &other))?;
    until_within(PATIENCE, "all are managed", || async {
        Ok((appeared(&bed)? == ALL).then_some(()))
    })
    .await?;
    // Whoever was cut while there were few may be so near to that already that it is not worth a write:
    // within a hundredth of the machine (`LEAST_CHANGE`).
    let about_a_tenth = 100_000_000..100_000_000 + all_cpus(&bed).await? / 100;
    let is_cut = |limits: &Limits| {
        let quota = limits.kernel.and_then(|kernel| kernel.quota);
        let microseconds = u64::try_from(limits.host.nano_cpus / 10_000).ok();
        about_a_tenth.contains(&limits.host.nano_cpus) && quota == microseconds
    };
    until_within(PATIENCE, "those that are acceptable are cut", || async {
        Ok(all_limits(&bed, cut).await?.iter().all(is_cut).then_some(()))
    })
    .await?;
    let unlimited = |limits: &Limits| limits.kernel.is_some_and(|kernel| kernel.quota.is_none());
    let others = all_limits(&bed, free).await?;
    anyhow::ensure!(others.iter().all(unlimited), "others were limited, too");
    allocator.end().await?;
    // They were all made alike: those that were never written to are as all were.
    let untouched = others.first().copied().context("there are others")?;
    ensure_back(&bed, &names, &vec![untouched; ALL]).await
}

/// How many jobs the audit log says have appeared.
fn appeared(bed: &Bed) -> anyhow::Result<usize> {
    let entries = read::last(&Allocator::state(bed), usize::MAX)?;
    Ok(entries.iter().filter(|one| matches!(one.entry, Entry::Appeared { .. })).count())
}
