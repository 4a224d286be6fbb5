//! Faults around a limit or a move. The allocator is killed at every step, containers change during
//! a write, other programs write limits, the disk is full, the clock is set, the engine restarts,
//! endpoints misbehave, or hundreds of containers start. In each case the limits must be right at
//! the end.

pub(crate) mod answers;
pub(crate) mod clock;
pub(crate) mod engine;
pub(crate) mod kills;
pub(crate) mod lies;
pub(crate) mod load;
pub(crate) mod moves;
pub(crate) mod others;
pub(crate) mod random_kills;
pub(crate) mod room;

use anyhow::Context;
use bollard::models::ContainerUpdateBody;
use paceline_cgroup::Quota;
use paceline_system_tests::{Limits, TestEnv};

use crate::flowcon::all_cpus;

/// The limits of these containers.
async fn all_limits(env: &TestEnv, names: &[String]) -> anyhow::Result<Vec<Limits>> {
    let mut limits = Vec::new();
    for name in names {
        limits.push(env.limits(name).await?);
    }
    Ok(limits)
}

/// Fails unless every container has the limits that it had before.
async fn ensure_back(env: &TestEnv, names: &[String], before: &[Limits]) -> anyhow::Result<()> {
    let cpus = all_cpus(env).await?;
    for ((now, before), name) in all_limits(env, names).await?.iter().zip(before).zip(names) {
        now.ensure_back(before, cpus).with_context(|| name.clone())?;
    }
    Ok(())
}

/// Sets three quarters of the machine by `docker update`, as another user would.
pub(crate) async fn update(env: &TestEnv, name: &str) -> anyhow::Result<(i64, Quota)> {
    let cpus = all_cpus(env).await? / 4 * 3;
    let body = ContainerUpdateBody { nano_cpus: Some(cpus), ..ContainerUpdateBody::default() };
    env.docker().update_container(name, body).await?;
    Ok((cpus, Quota { quota: Some(u64::try_from(cpus / 10_000)?), period: 100_000 }))
}
