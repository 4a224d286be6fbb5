//! The manager killed in the middle of a move between machines.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Bed, until_within};

use super::office::Offices;
use super::{PATIENCE, SPECON, managed, on_a_swarm};
use crate::moves::{ensure_goes_on, forget, processes};

/// Moments of a move at which the next manager finds something else each time, and whether it is
/// completed from there.
const STEPS: [(&str, bool); 6] = [
    ("created", false),
    ("paused", false),
    ("started", false),
    ("proved", false),
    ("retire", true),
    ("retired", true),
];

pub(crate) async fn after_a_manager_that_was_killed_the_job_is_there_once(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_a_swarm(bed, async |offices| {
        for (step, completed) in STEPS {
            killed_at(&offices, step).await?;
            let next = offices.manager(&["--policy", "none"])?;
            let flat = managed(&offices, "flat").await.with_context(|| next.said())?;
            let moved = flat.node.as_deref() != Some("w1");
            anyhow::ensure!(moved == completed, "{step}: {flat:?}: {}", next.said());
            ensure_goes_on(&kept).await.with_context(|| format!("{step}: {}", next.said()))?;
            let services = offices.services().await?;
            anyhow::ensure!(services.len() == 2, "{step}: {services:?}");
            // At most, one that has begun on the target gives way to the first again.
            let turns = processes(&kept)?.len();
            anyhow::ensure!(turns <= 3, "{step}: processes have taken turns {turns} times");
            next.end().await?;
            offices.clear().await?;
            until_within(PATIENCE, "all services have gone", || async {
                Ok(offices.are_idle().await?.then_some(()))
            })
            .await?;
            forget(&kept)?;
        }
        offices.close().await
    })
    .await
}

pub(crate) async fn a_job_that_stays_frozen_goes_on_once_its_agent_is_there(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_a_swarm(bed, async |mut offices| {
        killed_at(&offices, "paused").await?;
        offices.end_agent("w1").await?;
        let next = offices.manager(&["--policy", "none"])?;
        next.says(&["the move of job flat can be neither completed nor undone yet"]).await?;
        offices.start_agent("w1")?;
        until_within(PATIENCE, "the move is undone", || async {
            let left = |line: &str| line.contains("left a move in its middle: flat stays on w1");
            Ok(next.said().lines().any(left).then_some(()))
        })
        .await
        .with_context(|| next.said())?;
        ensure_goes_on(&kept).await?;
        next.end().await?;
        offices.close().await
    })
    .await
}

/// Has a manager killed at a step of a move.
async fn killed_at(offices: &Offices, step: &str) -> anyhow::Result<()> {
    offices.two_on_w1("go-on").await?;
    let mut manager = offices.manager_that_crashes(&SPECON, Some(step))?;
    let status = manager.ended().await?;
    anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", manager.said());
    Ok(())
}
