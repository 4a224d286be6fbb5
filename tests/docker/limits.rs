//! The ways to write a limit, and the way back of each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::models::HostConfig;
use paceline_allocator::actuate::originals::Originals;
use paceline_allocator::actuate::{Actuator, Means, OnDrift, memory};
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_system_tests::{Allocator, Bed, Job, until};

use crate::flowcon::{QUICK, all_cpus, flat, growing, until_cut};

/// Manages a flat job made with `host` beside a growing one, until its limit is `cut`; ends the
/// allocator, and makes sure that the limits are as they were.
async fn cut_and_back(bed: &Bed, host: HostConfig, cut: Quota) -> anyhow::Result<()> {
    let flat = bed.start(Job { host, ..flat() }).await?;
    bed.start(growing()).await?;
    let before = bed.limits(&flat).await?;
    let allocator = Allocator::run(bed, &QUICK)?;
    until(&format!("the flat job has {cut:?}"), || async {
        Ok((bed.limits(&flat).await?.kernel == Some(cut)).then_some(()))
    })
    .await?;
    allocator.end().await?;
    let after = bed.limits(&flat).await?;
    anyhow::ensure!(after == before, "{before:?} became {after:?}");
    Ok(())
}

pub(crate) async fn a_container_made_with_a_quota_gets_its_quota_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let cpus = u64::try_from(all_cpus(&bed).await? / 1_000_000_000)?;
    let host =
        HostConfig { cpu_period: Some(50_000), cpu_quota: Some(45_000), ..HostConfig::default() };
    cut_and_back(&bed, host, Quota { quota: Some(cpus * 50_000 / 4), period: 50_000 }).await
}

pub(crate) async fn a_container_made_with_cpus_gets_its_cpus_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let all = all_cpus(&bed).await?;
    let host = HostConfig { nano_cpus: Some(all / 5 * 3), ..HostConfig::default() };
    let cut = Quota { quota: Some(u64::try_from(all / 40_000)?), period: 100_000 };
    cut_and_back(&bed, host, cut).await
}

/// A control group with a quota, above a container's own. Removed when it is dropped.
pub(crate) struct Parent {
    name: String,
    folder: PathBuf,
}

impl Parent {
    /// Made beside the groups that the engine makes, with room for `us` of a 100 ms period.
    pub(crate) fn make(name: String, us: i64) -> anyhow::Result<Self> {
        let own = Cgroup::of(Path::new("/proc"), std::process::id())?;
        let all = Path::new("/sys/fs/cgroup");
        // Version 1 has a folder for each controller there, version 2 has the groups themselves.
        let mut above = own.cpu_folder().ancestors();
        let controller = above.find(|folder| own.version() == 1 && folder.parent() == Some(all));
        let folder = controller.unwrap_or(all).join(&name);
        std::fs::create_dir(&folder)?;
        let parent = Self { name, folder };
        if parent.folder.join("cpu.max").exists() {
            std::fs::write(parent.folder.join("cpu.max"), format!("{us} 100000"))?;
        } else {
            std::fs::write(parent.folder.join("cpu.cfs_quota_us"), us.to_string())?;
        }
        Ok(parent)
    }

    /// As a container is told of it.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        // The engine has made the same group for its other controllers.
        let siblings = self.folder.parent().and_then(Path::parent).into_iter();
        let siblings = siblings.flat_map(|mounts| std::fs::read_dir(mounts).into_iter().flatten());
        for mount in siblings.flatten() {
            // Most controllers have no such group.
            drop(std::fs::remove_dir(mount.path().join(&self.name)));
        }
        drop(std::fs::remove_dir(&self.folder));
    }
}

pub(crate) async fn under_a_parent_group_with_a_quota_no_limit_is_put_back_too(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let all = all_cpus(&bed).await?;
    // Three quarters of the machine: version 1 refuses all of it to what is below.
    let parent = Parent::make(bed.name("parent"), all / 40_000 * 3)?;
    let host = HostConfig { cgroup_parent: Some(parent.path()), ..HostConfig::default() };
    let flat = bed.start(Job { host, ..flat() }).await?;
    bed.start(growing()).await?;
    let before = bed.limits(&flat).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until("the flat job is cut", || async {
        let kernel = bed.limits(&flat).await?.kernel;
        Ok(kernel.and_then(|quota| quota.quota))
    })
    .await?;
    allocator.end().await?;
    let after = bed.limits(&flat).await?;
    bed.clear().await?;
    // Version 1 refuses all CPUs below such a group, so there the engine keeps a quota of -1.
    after.ensure_back(&before, all)
}

pub(crate) async fn weights_take_the_place_of_caps_and_are_put_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(bed.start(flat()), bed.start(growing()))?;
    let allocator = Allocator::run(&bed, &[&QUICK[..6], &["--enforcement", "shares"]].concat())?;
    // A quarter of the machine, where an equal share of two jobs has the weight 1024.
    until("the flat job has half the usual weight", || async {
        Ok((bed.limits(&flat).await?.host.cpu_shares == 512).then_some(()))
    })
    .await?;
    for name in [&flat, &growing] {
        let limits = bed.limits(name).await?;
        anyhow::ensure!(limits.host.nano_cpus == 0, "{name} is capped: {limits:?}");
    }
    allocator.end().await?;
    for name in [&flat, &growing] {
        let limits = bed.limits(name).await?;
        anyhow::ensure!(matches!(limits.host.cpu_shares, 0 | 1024), "{name} has {limits:?}");
    }
    Ok(())
}

pub(crate) async fn the_cgroup_actuator_limits_and_the_engine_learns_nothing(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, growing) = tokio::try_join!(bed.start(flat()), bed.start(growing()))?;
    let before = (bed.limits(&flat).await?, bed.limits(&growing).await?);
    let free = before.0;
    for (enforcement, cut) in [("quota", true), ("shares", false)] {
        let words = ["--actuator", "cgroup", "--enforcement", enforcement];
        let allocator = Allocator::run(&bed, &[&QUICK[..6], &words].concat())?;
        let now = until("the flat job has less", || async {
            let now = bed.limits(&flat).await?;
            let less = if cut { now.kernel != free.kernel } else { now.weight < free.weight };
            Ok(less.then_some(now))
        })
        .await?;
        anyhow::ensure!(now.host == free.host, "the engine was told: {now:?}");
        allocator.end().await?;
        let after = (bed.limits(&flat).await?, bed.limits(&growing).await?);
        anyhow::ensure!(after == before, "{before:?} became {after:?}");
    }
    Ok(())
}

pub(crate) async fn memory_is_never_limited_under_its_peak_and_comes_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let mib: i64 = 1 << 20;
    let limited = HostConfig {
        memory: Some(256 * mib),
        memory_swap: Some(300 * mib),
        ..HostConfig::default()
    };
    let cpus = f64::from(u32::try_from(all_cpus(&bed).await? / 1_000_000_000)?);
    for (name, host) in [("free", HostConfig::default()), ("limited", limited)] {
        let name = bed.start(Job { name, host, ..flat() }).await?;
        let (id, before) = (bed.inspect(&name).await?.id, bed.limits(&name).await?);
        for means in [Means::Engine, Means::Cgroup] {
            let originals = Originals::open(&bed.file("own"), "engine", "a test")?;
            let actuator = Actuator::new(bed.docker().clone(), originals, "/proc".into(), cpus)
                .by(means, OnDrift::Reassert);
            let peak = Cgroup::of(Path::new("/proc"), bed.inspect(&name).await?.pid.unwrap_or(0))?
                .memory_peak()?;
            let written = actuator.limit_memory(&id, 1).await?;
            anyhow::ensure!(
                written >= memory::floor(peak),
                "{written} is under {peak} and a fifth"
            );
            let now = bed.limits(&name).await?;
            let kernel = now.memory.and_then(|limit| limit.memory);
            anyhow::ensure!(kernel == Some(written), "{now:?}");
            anyhow::ensure!(bed.runs(&name).await?, "the limit has ended the job");
            actuator.restore(&id).await?;
            let after = bed.limits(&name).await?;
            anyhow::ensure!(after.memory == before.memory, "{before:?} became {after:?}");
            let kept = after.host_memory == before.host_memory || before.host_memory.memory == 0;
            anyhow::ensure!(kept, "{before:?} became {after:?}");
        }
    }
    Ok(())
}

pub(crate) async fn what_an_orchestrator_looks_after_is_left_alone_unless_asked_for(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let labels = vec![("io.kubernetes.pod.name", "flat")];
    let flat = bed.start(Job { labels, ..flat() }).await?;
    bed.start(growing()).await?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    allocator.says(&[&flat, "is left alone", "Kubernetes", "--adopt kubernetes"]).await?;
    allocator.end().await?;
    let allocator = Allocator::run(&bed, &[&QUICK[..], &["--adopt", "swarm,kubernetes"]].concat())?;
    until_cut(&bed, &flat).await?;
    allocator.end().await
}
