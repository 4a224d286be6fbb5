//! Whoever else has to do with a container: its owner, who stops and removes it, and those who write
//! limits of their own.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::{RemoveContainerOptionsBuilder, RestartContainerOptionsBuilder};
use paceline_allocator::actuate::originals::Originals;
use paceline_allocator::actuate::{Actuator, LimitError, Restored};
use paceline_allocator::audit::{Entry, read};
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_policy::Share;
use paceline_policy::limiter::Setting;
use paceline_system_tests::{Allocator, Bed, until};

use super::update;
use crate::flowcon::{all_cpus, cut_job, ensure_unlimited, flat, until_cut};

/// An actuator of this process, with originals in the bed's folder.
async fn actuator(bed: &Bed) -> anyhow::Result<Actuator> {
    let cpus = u32::try_from(all_cpus(bed).await? / 1_000_000_000)?;
    let originals = Originals::open(&bed.file("own"), "engine", "a test")?;
    Ok(Actuator::new(bed.docker().clone(), originals, "/proc".into(), f64::from(cpus)))
}

pub(crate) async fn a_container_that_changes_in_mid_update_gets_its_limits_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let actuator = actuator(&bed).await?;
    let name = bed.start(flat()).await?;
    let id = bed.inspect(&name).await?.id;
    let before = bed.limits(&name).await?;
    let cap = |percent: u32| Setting::Cap(Share::nearest(f64::from(percent) / 100.0));
    for percent in [20, 30, 40] {
        let (set, paused) =
            tokio::join!(actuator.set(&id, cap(percent)), bed.docker().pause_container(&name),);
        paused?;
        anyhow::ensure!(set? == cap(percent), "a paused container is limited like any other");
        let unpaused = bed.docker().unpause_container(&name);
        let (set, unpaused) = tokio::join!(actuator.set(&id, cap(percent + 5)), unpaused);
        unpaused?;
        set?;
    }
    for percent in [25, 35, 45] {
        let options = RestartContainerOptionsBuilder::default().t(0).build();
        let (set, restarted) = tokio::join!(
            actuator.set(&id, cap(percent)),
            bed.docker().restart_container(&name, Some(options)),
        );
        restarted?;
        // Whether the write came before its end, after its start, or between.
        drop(set);
    }
    actuator.restore(&id).await?;
    bed.limits(&name).await?.ensure_back(&before, all_cpus(&bed).await?)?;
    actuator.set(&id, cap(20)).await?;
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    let (set, removed) = tokio::join!(
        actuator.set(&id, cap(30)),
        bed.docker().remove_container(&name, Some(force)),
    );
    removed?;
    drop(set);
    let late = actuator.set(&id, cap(40)).await;
    anyhow::ensure!(matches!(late, Err(LimitError::Gone(_))), "{late:?}");
    anyhow::ensure!(actuator.restore(&id).await? == Some(Restored::Gone), "it is gone");
    anyhow::ensure!(actuator.pending()?.is_empty(), "something is still to be put back");
    Ok(())
}

pub(crate) async fn somebody_elses_update_is_overruled_and_comes_back_at_the_end(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&bed, &[]).await?;
    let (cpus, quota) = update(&bed, &flat).await?;
    allocator.says(&["flat", "by somebody else's doing", "reassert"]).await?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

pub(crate) async fn somebody_elses_update_stays_where_the_allocator_yields(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&bed, &["--on-drift", "yield"]).await?;
    let (cpus, quota) = update(&bed, &flat).await?;
    allocator.says(&["is left alone until"]).await?;
    // Two more runs of the policy, which would cut it.
    let now = decisions(&bed)?;
    until("the policy runs twice more", || async {
        Ok((decisions(&bed)? >= now + 2).then_some(()))
    })
    .await?;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    allocator.end().await?;
    let limits = bed.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

/// How many runs of the policy the audit log tells of.
fn decisions(bed: &Bed) -> anyhow::Result<u64> {
    let records = read::last(&Allocator::state(bed), usize::MAX)?.into_iter();
    let numbers = records.filter_map(|record| {
        let Entry::Decided { number, .. } = record.entry else { return None };
        Some(number)
    });
    Ok(numbers.max().unwrap_or(0))
}

pub(crate) async fn a_limit_that_was_changed_past_the_engine_is_written_again(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&bed, &[]).await?;
    let pid = bed.inspect(&flat).await?.pid.context("it runs")?;
    let lost = Quota { quota: None, period: 100_000 };
    Cgroup::of(Path::new("/proc"), pid)?.set_quota(lost)?;
    allocator.says(&["flat", "is 100.0 %", "reassert"]).await?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}
