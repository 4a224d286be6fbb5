//! What goes wrong around a limit or a move: the allocator killed at every step, containers that change under
//! it, others who write, a full disk, a clock that is set, an engine that restarts, endpoints that
//! misbehave, more containers than anybody expects. Whatever it is, limits end right.

pub(crate) mod answers;
pub(crate) mod clock;
pub(crate) mod crowd;
pub(crate) mod engine;
pub(crate) mod kills;
pub(crate) mod lies;
pub(crate) mod moves;
pub(crate) mod others;
pub(crate) mod room;

use anyhow::Context;
use bollard::models::ContainerUpdateBody;
use paceline_allocator::observe::cgroup::Quota;
use paceline_system_tests::{Bed, Limits};

use crate::flowcon::all_cpus;

/// What the containers of a bed have, by name.
async fn all_limits(bed: &Bed, names: &[String]) -> anyhow::Result<Vec<Limits>> {
    let mut limits = Vec::new();
    for name in names {
        limits.push(bed.limits(name).await?);
    }
    Ok(limits)
}

/// Fails unless every container has what it had.
async fn ensure_back(bed: &Bed, names: &[String], before: &[Limits]) -> anyhow::Result<()> {
    let cpus = all_cpus(bed).await?;
    for ((now, before), name) in all_limits(bed, names).await?.iter().zip(before).zip(names) {
        now.ensure_back(before, cpus).with_context(|| name.clone())?;
    }
    Ok(())
}

/// Three quarters of the machine by `docker update`, as somebody else would.
async fn update(bed: &Bed, name: &str) -> anyhow::Result<(i64, Quota)> {
    let cpus = all_cpus(bed).await? / 4 * 3;
    let body = ContainerUpdateBody { nano_cpus: Some(cpus), ..ContainerUpdateBody::default() };
    bed.docker().update_container(name, body).await?;
    Ok((cpus, Quota { quota: Some(u64::try_from(cpus / 10_000)?), period: 100_000 }))
}
