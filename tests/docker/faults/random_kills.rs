//! Kills at random moments. Between them the owners change limits. In the end every container has what
//! its owner set last.
//!
//! `PACELINE_KILLS` sets how many kills there are, and `PACELINE_SEED` repeats the random choices. Without
//! it the seed is the id of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::{ContainerUpdateBody, HostConfig, SystemInfoCgroupDriverEnum};
use futures_util::future::try_join_all;
use paceline_api::audit::{Entry, read};
use paceline_cgroup::Quota;
use paceline_runtime::HostCpu;
use paceline_system_tests::{Allocator, Job, Limits, Random, TestEnv, until};
use rustix::process::Signal;

use crate::flowcon::{QUICK, all_cpus, flat, growing};
use crate::parent::Parent;

/// How many kills there are, unless the variable is set.
const KILLS: u64 = 20;
/// After so many kills, on average, everything is restored and compared.
const KILLS_BETWEEN_CHECKS: u64 = 8;
/// In thousandths of the machine: the bounds of the owners' limits. The policy cuts to less than half,
/// so no limit of an owner equals one of ours, which nothing could tell apart. The least bound of a
/// parent is three quarters.
const OWNERS: (u64, u64) = (550, 740);

/// How many containers this test's allocator has limits to put back for.
pub(super) fn left_behind(env: &TestEnv) -> usize {
    let engines = fs::read_dir(Allocator::state(env)).into_iter().flatten().flatten();
    let files = engines.flat_map(|engine| fs::read_dir(engine.path()).into_iter().flatten());
    files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "json")).count()
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

/// How many written limits the audit log has.
fn writes(env: &TestEnv) -> anyhow::Result<usize> {
    let folder = Allocator::state(env);
    if !folder.exists() {
        return Ok(0);
    }
    let records = read::last(&folder, usize::MAX)?;
    Ok(records.iter().filter(|one| matches!(one.entry, Entry::Limited { .. })).count())
}

/// The owners of all containers, and what they want.
struct Owners {
    random: Random,
    all: u64,
    /// The engine's driver for control groups is systemd.
    systemd: bool,
    wanted: BTreeMap<String, Limits>,
    /// No container gets one limit twice.
    said: BTreeSet<(String, u64)>,
}

impl Owners {
    async fn new(env: &TestEnv, names: Vec<String>, seed: u64) -> anyhow::Result<Self> {
        let mut wanted = BTreeMap::new();
        for name in names {
            let limits = env.limits(&name).await?;
            wanted.insert(name, limits);
        }
        let all = u64::try_from(all_cpus(env).await?)?;
        let driver = env.docker().info().await?.cgroup_driver;
        let systemd = driver == Some(SystemInfoCgroupDriverEnum::SYSTEMD);
        Ok(Self { random: Random::new(seed), all, systemd, wanted, said: BTreeSet::new() })
    }

    /// A random limit for a container, in billionths of a CPU.
    fn cap(&mut self, name: &str) -> u64 {
        loop {
            let thousandths = OWNERS.0 + self.random.below(OWNERS.1 - OWNERS.0);
            if self.said.insert((name.to_owned(), thousandths)) {
                return self.all / 1000 * thousandths;
            }
        }
    }

    /// The owner of a random container changes its cap or its weight, while no allocator runs.
    async fn update(&mut self, env: &TestEnv) -> anyhow::Result<()> {
        let number = self.random.below(u64::try_from(self.wanted.len())?);
        let name = self.wanted.keys().nth(usize::try_from(number)?);
        let name = name.context("there are containers")?.clone();
        let host = env.limits(&name).await?.host;
        let weighs = self.random.below(3) == 0;
        let none = ContainerUpdateBody::default;
        let body = if weighs {
            let shares = i64::try_from(200 + self.random.below(3000))?;
            ContainerUpdateBody { cpu_shares: Some(shares), ..none() }
        } else {
            let nano = i64::try_from(self.cap(&name))?;
            if host.nano_cpus == 0 && (host.cpu_quota, host.cpu_period) != (0, 0) {
                let period = if host.cpu_period > 0 { host.cpu_period } else { 100_000 };
                ContainerUpdateBody { cpu_quota: Some(nano / (1_000_000_000 / period)), ..none() }
            } else {
                ContainerUpdateBody { nano_cpus: Some(nano), ..none() }
            }
        };
        env.docker().update_container(&name, body).await?;
        let now = env.limits(&name).await?;
        let wanted = self.wanted.get_mut(&name).context("it is known")?;
        // The engine writes a weight that it keeps once more, on its own scale.
        if weighs || now.host.cpu_shares == 1024 && matches!(wanted.host.cpu_shares, 0 | 1024) {
            wanted.weight = now.weight;
        }
        if weighs {
            wanted.host.cpu_shares = now.host.cpu_shares;
        } else {
            wanted.host = HostCpu { cpu_shares: wanted.host.cpu_shares, ..now.host };
            wanted.kernel = now.kernel;
        }
        Ok(())
    }

    /// Restores, and fails unless every container has what its owner wants. Where the engine was never
    /// asked, it keeps `exactly` that.
    async fn check(&self, env: &TestEnv, exactly: bool) -> anyhow::Result<()> {
        // A run may be killed before it makes the folder of its state, and `restore` refuses one that is missing.
        let said = if Allocator::state(env).exists() {
            Allocator::restore(env).await?
        } else {
            String::new()
        };
        for (name, wanted) in &self.wanted {
            let now = env.limits(name).await?;
            let now = if self.systemd { before_systemd(now, wanted) } else { now };
            let alike = if exactly { now } else { without_quota_of_all(now, self.all) };
            alike
                .ensure_back(wanted, i64::try_from(self.all)?)
                .with_context(|| format!("{name}: {said}"))?;
            anyhow::ensure!(!exactly || now == *wanted, "{name}: {wanted:?} became {now:?}");
        }
        anyhow::ensure!(left_behind(env) == 0, "something is still to be put back: {said}");
        Ok(())
    }

    /// Starts the allocator and kills it at a random moment. Every other time that is soon after it has
    /// written. Returns whether it has left limits to be put back.
    async fn kill(&mut self, env: &TestEnv, actuator: &str) -> anyhow::Result<bool> {
        let before = writes(env)?;
        let enforcement = if self.random.below(4) == 0 { "shares" } else { "quota" };
        let more = ["--enforcement", enforcement, "--actuator", actuator];
        let words = [&QUICK[..6], &["--param", "interval=0.25"], &more].concat();
        let mut allocator = Allocator::run(env, &words)?;
        let longest = if self.random.below(2) == 0 {
            let wrote = || async { Ok((writes(env)? > before).then_some(())) };
            until("it writes", wrote).await.with_context(|| allocator.said())?;
            200
        } else {
            1_500
        };
        tokio::time::sleep(Duration::from_millis(self.random.below(longest))).await;
        allocator.signal(Signal::KILL)?;
        allocator.ended().await?;
        Ok(left_behind(env) > 0)
    }

    /// Kills the allocator again and again, with updates by the owners in between.
    async fn outlive(
        &mut self,
        env: &TestEnv,
        actuator: &str,
        kills: u64,
        exactly: bool,
    ) -> anyhow::Result<()> {
        let mut interrupted = 0;
        for round in 0..kills {
            let left = self.kill(env, actuator).await.with_context(|| format!("kill {round}"))?;
            interrupted += u64::from(left);
            for _ in 0..self.random.below(3) {
                self.update(env).await?;
            }
            if self.random.below(KILLS_BETWEEN_CHECKS) == 0 {
                self.check(env, exactly).await.with_context(|| format!("after kill {round}"))?;
            }
        }
        self.check(env, exactly).await.context("at the end")?;
        anyhow::ensure!(
            interrupted >= kills / 4,
            "only {interrupted} runs of {kills} had written when killed"
        );
        Ok(())
    }
}

/// systemd keeps a quota in whole hundredths of a CPU, rounded up, and writes that again when it changes a unit beside
/// it. The limits as the owner has set them, if they differ from `wanted` in that alone.
fn before_systemd(now: Limits, wanted: &Limits) -> Limits {
    let rounded = |quota: Quota| {
        let hundredth = (quota.period / 100).max(1);
        Quota { quota: quota.quota.map(|us| us.div_ceil(hundredth) * hundredth), ..quota }
    };
    let is_rounded = now.kernel.is_some() && now.kernel == wanted.kernel.map(rounded);
    Limits { kernel: if is_rounded { wanted.kernel } else { now.kernel }, ..now }
}

/// The engine cannot unset a limit, and keeps all CPUs instead. It writes these into the kernel when an owner
/// changes something else.
fn without_quota_of_all(limits: Limits, all: u64) -> Limits {
    let keeps_all = u64::try_from(limits.host.nano_cpus).is_ok_and(|nano| nano >= all);
    let is_all = |quota: &Quota| {
        let needed = u128::from(all) * u128::from(quota.period);
        quota.quota.is_some_and(|us| u128::from(us) * 1_000_000_000 >= needed)
    };
    let open = |quota: Quota| {
        if keeps_all && is_all(&quota) { Quota { quota: None, ..quota } } else { quota }
    };
    Limits { kernel: limits.kernel.map(open), ..limits }
}

fn number(variable: &str, default: u64) -> anyhow::Result<u64> {
    let Ok(text) = std::env::var(variable) else { return Ok(default) };
    text.parse().with_context(|| format!("{variable} is a number, not {text:?}"))
}

#[expect(clippy::print_stdout, reason = "the seed repeats a failure")]
async fn owners_outlive(env: &TestEnv, actuator: &str, exactly: bool) -> anyhow::Result<()> {
    let (kills, seed) =
        (number("PACELINE_KILLS", KILLS)?, number("PACELINE_SEED", std::process::id().into())?);
    let parent = Parent::make(env, all_cpus(env).await? / 40_000 * 3).await?;
    let names = one_of_each(env, &parent).await?;
    let mut owners = Owners::new(env, names, seed).await?;
    let outlived = owners.outlive(env, actuator, kills, exactly).await;
    env.clear().await?;
    drop(parent);
    let repeat = format!("{kills} kills of --actuator {actuator} with PACELINE_SEED={seed}");
    println!("{repeat}, and {} limits set by owners", owners.said.len());
    outlived.context(repeat)
}

pub(crate) async fn owners_words_outlive_kills_of_engine_writes(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    owners_outlive(&env, "engine", false).await
}

pub(crate) async fn owners_words_outlive_kills_of_cgroup_writes(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    owners_outlive(&env, "cgroup", true).await
}

pub(crate) async fn owners_words_outlive_kills_of_auto_writes(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    owners_outlive(&env, "auto", false).await
}
