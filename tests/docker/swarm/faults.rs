//! A move between machines whose manager is killed, or which fails at its target or its checkpoint.

pub(crate) mod lost;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::RemoveImageOptions;
use paceline_system_tests::{Allocator, Bed, Offices, OneTask, until_within};

use super::{
    IMAGE, PATIENCE, SPECON, ensure_stays, managed, on_a_swarm, on_its_own_swarm, two_on_w1,
};
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
            ensure_is_there_once(&kept, &offices, &next, completed).await.context(step)?;
            let services = offices.services().await?;
            anyhow::ensure!(services.len() == 2, "{step}: {services:?}");
            next.end().await?;
            offices.clear().await?;
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

pub(crate) async fn a_target_that_has_no_image_leaves_the_job_where_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_its_own_swarm(bed, async |offices| {
        for engine in offices.swarm().engines().iter().filter(|engine| engine.host != "w1") {
            engine.docker().remove_image(IMAGE, None::<RemoveImageOptions>, None).await?;
        }
        two_on_w1(&offices, "go-on").await?;
        ensure_stays(&kept, &offices, "rejected").await?;
        offices.close().await
    })
    .await
}

pub(crate) async fn a_checkpoint_that_finds_no_room_leaves_the_job_where_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_a_swarm(bed, async |offices| {
        let full = Full::mount(kept.file("full"))?;
        let base = OneTask {
            image: IMAGE,
            mounts: &[(offices.folder(), "/ckpt"), (&full.0, "/full")],
            place: Some("node.hostname==w1"),
            ..OneTask::default()
        };
        let args = &["--half-life", "40000"];
        offices.serve(&OneTask { name: "growing", args, ..base.clone() }).await?;
        let args = &["--checkpoint", "/full/saved", "--trace", "/ckpt/trace"];
        let labels = &[("paceline.checkpoint", "/full")];
        offices.serve(&OneTask { name: "flat", args, labels, ..base }).await?;
        ensure_stays(&kept, &offices, "No space left on device").await?;
        offices.close().await
    })
    .await
}

/// A file system that has no room for any file.
struct Full(PathBuf);

impl Full {
    fn mount(path: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&path)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "nr_inodes=1", "none"]).arg(&path);
        anyhow::ensure!(mount.status()?.success(), "a small file system cannot be mounted");
        Ok(Self(path))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        // Containers may still have it.
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

/// Waits until a job whose move was cut short goes on at one place: elsewhere if the move was completed.
async fn ensure_is_there_once(
    bed: &Bed,
    offices: &Offices,
    manager: &Allocator,
    completed: bool,
) -> anyhow::Result<()> {
    let flat = managed(offices, "flat").await.with_context(|| manager.said())?;
    let moved = flat.node.as_deref() != Some("w1");
    anyhow::ensure!(moved == completed, "{flat:?}: {}", manager.said());
    ensure_goes_on(bed).await.with_context(|| manager.said())?;
    // At most, one that has begun on the target gives way to the first again.
    let turns = processes(bed)?.len();
    anyhow::ensure!(turns <= 3, "processes have taken turns {turns} times");
    Ok(())
}

/// Has a manager killed at a step of a move.
async fn killed_at(offices: &Offices, step: &str) -> anyhow::Result<()> {
    two_on_w1(offices, "go-on").await?;
    // On a busy machine a move may fail before that step: then there is another one.
    let often = [&SPECON[..4], &["--moves", "9"]].concat();
    let mut manager = offices.manager_that_crashes(&often, Some(step))?;
    let status = manager.ended().await?;
    anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", manager.said());
    Ok(())
}
