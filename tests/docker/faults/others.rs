//! Other users of a container: its owner, who stops and removes it, and programs that write limits
//! of their own.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::{RemoveContainerOptionsBuilder, RestartContainerOptionsBuilder};
use paceline_api::audit::{Entry, read};
use paceline_cgroup::{Cgroup, Quota};
use paceline_node::limits::originals::Originals;
use paceline_node::limits::{Actuator, ActuatorBackend, LimitError, OnDrift, Restored};
use paceline_policy::Share;
use paceline_policy::limiter::Setting;
use paceline_system_tests::{Allocator, TestEnv, until};

use super::update;
use crate::flowcon::{all_cpus, cut_job, ensure_unlimited, flat, until_cut};

/// An actuator in this process, with its originals in the test's folder.
async fn actuator(env: &TestEnv) -> anyhow::Result<Actuator> {
    let cpus = u32::try_from(all_cpus(env).await? / 1_000_000_000)?;
    let originals = Originals::open(&env.file("own"), "engine", "a test")?;
    let actuator =
        Actuator::new(env.docker().clone().into(), originals, "/proc".into(), f64::from(cpus));
    Ok(actuator.with_backend(ActuatorBackend::Engine, OnDrift::default()))
}

/// Pauses a container. On a busy machine the kernel may not freeze it in the time that runc allows.
async fn pause(env: &TestEnv, name: &str) -> anyhow::Result<()> {
    until("the container is paused", || async {
        match env.docker().pause_container(name).await {
            Ok(()) => Ok(Some(())),
            Err(error) if error.to_string().contains("unable to freeze") => Ok(None),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

pub(crate) async fn a_container_that_changes_in_mid_update_gets_its_limits_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let actuator = actuator(&env).await?;
    let name = env.start(flat()).await?;
    let id = env.inspect(&name).await?.id;
    let before = env.limits(&name).await?;
    let cap = |percent: u32| Setting::Cap(Share::nearest(f64::from(percent) / 100.0));
    for percent in [20, 30, 40] {
        let (set, paused) = tokio::join!(actuator.set(&id, cap(percent)), pause(&env, &name));
        paused?;
        anyhow::ensure!(set? == cap(percent), "a paused container is limited like any other");
        let unpaused = env.docker().unpause_container(&name);
        let (set, unpaused) = tokio::join!(actuator.set(&id, cap(percent + 5)), unpaused);
        unpaused?;
        set?;
    }
    for percent in [25, 35, 45] {
        let options = RestartContainerOptionsBuilder::default().t(0).build();
        let (set, restarted) = tokio::join!(
            actuator.set(&id, cap(percent)),
            env.docker().restart_container(&name, Some(options)),
        );
        restarted?;
        // It may fail: the write may come before the container's end, after its start, or between.
        drop(set);
    }
    actuator.restore(&id).await?;
    env.limits(&name).await?.ensure_back(&before, all_cpus(&env).await?)?;
    actuator.set(&id, cap(20)).await?;
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    let (set, removed) = tokio::join!(
        actuator.set(&id, cap(30)),
        env.docker().remove_container(&name, Some(force)),
    );
    removed?;
    drop(set);
    let late = actuator.set(&id, cap(40)).await;
    anyhow::ensure!(matches!(late, Err(LimitError::Gone(_))), "{late:?}");
    anyhow::ensure!(actuator.restore(&id).await? == Some(Restored::Gone), "it is gone");
    anyhow::ensure!(actuator.pending().is_empty(), "something is still to be put back");
    Ok(())
}

pub(crate) async fn outside_update_is_overruled_and_restored_at_the_end(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&env, &[]).await?;
    let (cpus, quota) = update(&env, &flat).await?;
    allocator.says(&["flat", "changed outside Paceline", "reassert"]).await?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    let limits = env.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

pub(crate) async fn outside_update_stays_where_the_allocator_yields(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&env, &["--on-drift", "yield"]).await?;
    let (cpus, quota) = update(&env, &flat).await?;
    allocator.says(&["is not managed any more, until"]).await?;
    // Two more runs of the policy, which would cut it.
    let now = decisions(&env)?;
    until("the policy runs twice more", || async {
        Ok((decisions(&env)? >= now + 2).then_some(()))
    })
    .await?;
    let limits = env.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    allocator.end().await?;
    let limits = env.limits(&flat).await?;
    anyhow::ensure!(limits.host.nano_cpus == cpus && limits.kernel == Some(quota), "{limits:?}");
    Ok(())
}

/// How many runs of the policy the audit log has.
pub(crate) fn decisions(env: &TestEnv) -> anyhow::Result<u64> {
    let records = read::last(&Allocator::state(env), usize::MAX)?.into_iter();
    let numbers = records.filter_map(|record| {
        let Entry::Decided { number, .. } = record.entry else { return None };
        Some(number)
    });
    Ok(numbers.max().unwrap_or(0))
}

pub(crate) async fn a_limit_that_was_changed_past_the_engine_is_written_again(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, allocator) = cut_job(&env, &[]).await?;
    let pid = env.inspect(&flat).await?.pid.context("it runs")?;
    let lost = Quota { quota: None, period: 100_000 };
    Cgroup::for_process(Path::new("/proc"), pid)?.set_quota(lost)?;
    allocator.says(&["flat", "found 100.0 %", "reassert"]).await?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}
