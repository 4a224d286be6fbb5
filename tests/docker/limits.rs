//! The ways to write a limit, and to put back the original.

use std::sync::Arc;

use bollard::models::HostConfig;
use paceline_cgroup::Quota;
use paceline_system_tests::{Allocator, Job, TestEnv, until};

use crate::flowcon::{QUICK, all_cpus, flat, growing, until_cut};
use crate::parent::Parent;

/// These tests are about what the engine keeps.
const BY_ENGINE: [&str; 2] = ["--actuator", "engine"];

/// Manages a flat job created with `host` beside a growing one until its limit is `cut`. Then ends
/// the allocator and checks that the limits are as they were.
async fn cut_and_back(env: &TestEnv, host: HostConfig, cut: Quota) -> anyhow::Result<()> {
    let flat = env.start(Job { host, ..flat() }).await?;
    env.start(growing()).await?;
    let before = env.limits(&flat).await?;
    let allocator = Allocator::run(env, &[&QUICK[..], &BY_ENGINE].concat())?;
    until(&format!("the flat job has {cut:?}"), || async {
        Ok((env.limits(&flat).await?.kernel == Some(cut)).then_some(()))
    })
    .await?;
    allocator.end().await?;
    let after = env.limits(&flat).await?;
    anyhow::ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}

pub(crate) async fn a_container_made_with_a_quota_gets_its_quota_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let cpus = u64::try_from(all_cpus(&env).await? / 1_000_000_000)?;
    let host =
        HostConfig { cpu_period: Some(50_000), cpu_quota: Some(45_000), ..HostConfig::default() };
    cut_and_back(&env, host, Quota { quota: Some(cpus * 50_000 / 4), period: 50_000 }).await
}

pub(crate) async fn a_container_made_with_cpus_gets_its_cpus_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let all = all_cpus(&env).await?;
    let host = HostConfig { nano_cpus: Some(all / 5 * 3), ..HostConfig::default() };
    let cut = Quota { quota: Some(u64::try_from(all / 40_000)?), period: 100_000 };
    cut_and_back(&env, host, cut).await
}

pub(crate) async fn under_a_parent_group_with_a_quota_no_limit_is_put_back_too(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let all = all_cpus(&env).await?;
    // Three quarters of the machine: version 1 refuses a larger quota below it.
    let parent = Parent::make(&env, all / 40_000 * 3).await?;
    let host = HostConfig { cgroup_parent: Some(parent.path()), ..HostConfig::default() };
    let flat = env.start(Job { host, ..flat() }).await?;
    env.start(growing()).await?;
    let before = env.limits(&flat).await?;
    let allocator = Allocator::run(&env, &[&QUICK[..], &BY_ENGINE].concat())?;
    until("the flat job is cut", || async {
        let kernel = env.limits(&flat).await?.kernel;
        Ok(kernel.and_then(|quota| quota.quota))
    })
    .await?;
    allocator.end().await?;
    let after = env.limits(&flat).await?;
    env.clear().await?;
    // Version 1 refuses all CPUs below such a group, so the engine keeps a quota of -1 there.
    after.ensure_back(&before, all)
}

pub(crate) async fn weights_take_the_place_of_caps_and_are_put_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(env.start(flat()), env.start(growing()))?;
    let words = [&QUICK[..6], &["--enforcement", "shares"], &BY_ENGINE].concat();
    let allocator = Allocator::run(&env, &words)?;
    // The flat job has a quarter of what the other one may have. Together they keep the weight of two
    // containers, so that others keep their part.
    until("the weights are divided", || async {
        let (flat, growing) = tokio::try_join!(env.limits(&flat), env.limits(&growing))?;
        let (flat, growing) = (flat.host.cpu_shares, growing.host.cpu_shares);
        Ok((flat < 512 && flat + growing == 2048).then_some(()))
    })
    .await?;
    for name in [&flat, &growing] {
        let limits = env.limits(name).await?;
        anyhow::ensure!(limits.host.nano_cpus == 0, "{name} is capped: {limits:?}");
    }
    allocator.end().await?;
    for name in [&flat, &growing] {
        let limits = env.limits(name).await?;
        anyhow::ensure!(matches!(limits.host.cpu_shares, 0 | 1024 | 2598), "{name} has {limits:?}");
    }
    Ok(())
}

pub(crate) async fn by_default_limits_change_and_the_engine_learns_nothing(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(env.start(flat()), env.start(growing()))?;
    let before = (env.limits(&flat).await?, env.limits(&growing).await?);
    let free = before.0;
    for (enforcement, cut) in [("quota", true), ("shares", false)] {
        let words = ["--enforcement", enforcement];
        let allocator = Allocator::run(&env, &[&QUICK[..6], &words].concat())?;
        let now = until("the flat job has less", || async {
            let now = env.limits(&flat).await?;
            let less = if cut { now.kernel != free.kernel } else { now.weight < free.weight };
            Ok(less.then_some(now))
        })
        .await?;
        anyhow::ensure!(now.host == free.host, "the engine's limits changed: {now:?}");
        allocator.end().await?;
        let after = (env.limits(&flat).await?, env.limits(&growing).await?);
        anyhow::ensure!(after == before, "{before:?} became {after:?}");
    }
    Ok(())
}

pub(crate) async fn orchestrated_container_is_left_alone_unless_adopted(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let labels = vec![("io.kubernetes.pod.name", "flat")];
    let flat = env.start(Job { labels, ..flat() }).await?;
    env.start(growing()).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    allocator.says(&[&flat, "is not managed", "Kubernetes", "--adopt kubernetes"]).await?;
    allocator.end().await?;
    let allocator = Allocator::run(&env, &[&QUICK[..], &["--adopt", "swarm,kubernetes"]].concat())?;
    until_cut(&env, &flat).await?;
    allocator.end().await
}
