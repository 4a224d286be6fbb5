//! Moves between machines that fail: the manager is killed, or the target or the checkpoint fails.

pub(crate) mod lost;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::Context;
use bollard::query_parameters::RemoveImageOptions;
use paceline_system_tests::{AgentFleet, Allocator, OneTask, TestEnv, until_within};

use super::{
    IMAGE, SPECON, SWARM_TIMEOUT, ensure_stays, managed, on_a_swarm, on_its_own_swarm, two_on_w1,
};
use crate::moves::{ensure_continues, ensure_one_at_a_time, forget};

/// Moments of a move at which the manager is killed, and whether the next one completes the move.
const STEPS: [(&str, bool); 6] = [
    ("created", false),
    ("paused", false),
    ("started", false),
    ("proved", false),
    ("retire", true),
    ("retired", true),
];

pub(crate) async fn after_a_manager_that_was_killed_the_job_is_there_once(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_a_swarm(env, async |fleet| {
        for (step, completed) in STEPS {
            killed_at(&fleet, step).await?;
            let next = fleet.manager(&["--policy", "none"])?;
            ensure_is_there_once(&kept, &fleet, &next, completed).await.context(step)?;
            let services = fleet.services().await?;
            anyhow::ensure!(services.len() == 2, "{step}: {services:?}");
            next.end().await?;
            fleet.clear().await?;
            forget(&kept)?;
        }
        fleet.close().await
    })
    .await
}

pub(crate) async fn frozen_job_continues_once_its_agent_is_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_a_swarm(env, async |mut fleet| {
        killed_at(&fleet, "paused").await?;
        fleet.end_agent("w1").await?;
        let next = fleet.manager(&["--policy", "none"])?;
        next.says(&["cannot complete or undo the move of job flat"]).await?;
        fleet.start_agent("w1")?;
        until_within(SWARM_TIMEOUT, "the move is undone", || async {
            let left = |line: &str| line.contains("an earlier manager had left: flat stays on w1");
            Ok(next.said().lines().any(left).then_some(()))
        })
        .await
        .with_context(|| next.said())?;
        ensure_continues(&kept).await?;
        next.end().await?;
        fleet.close().await
    })
    .await
}

pub(crate) async fn a_target_that_has_no_image_leaves_the_job_where_it_was(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_its_own_swarm(env, async |fleet| {
        for engine in fleet.swarm().engines().iter().filter(|engine| engine.host != "w1") {
            engine.docker().remove_image(IMAGE, None::<RemoveImageOptions>, None).await?;
        }
        two_on_w1(&fleet, "go-on").await?;
        ensure_stays(&kept, &fleet, "rejected").await?;
        fleet.close().await
    })
    .await
}

pub(crate) async fn a_checkpoint_that_finds_no_room_leaves_the_job_where_it_was(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_a_swarm(env, async |fleet| {
        let full = Full::mount(kept.file("full"))?;
        let base = OneTask {
            image: IMAGE,
            mounts: &[(fleet.folder(), "/ckpt"), (&full.0, "/full")],
            place: Some("node.hostname==w1"),
            ..OneTask::default()
        };
        let args = &["--half-life", "40000"];
        fleet.serve(&OneTask { name: "growing", args, ..base.clone() }).await?;
        let args = &["--checkpoint", "/full/saved", "--trace", "/ckpt/trace"];
        let labels = &[("paceline.checkpoint", "/full")];
        fleet.serve(&OneTask { name: "flat", args, labels, ..base }).await?;
        ensure_stays(&kept, &fleet, "No space left on device").await?;
        fleet.close().await
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

/// Waits until a job whose move was interrupted continues at one place: the target if `completed`.
async fn ensure_is_there_once(
    env: &TestEnv,
    fleet: &AgentFleet,
    manager: &Allocator,
    completed: bool,
) -> anyhow::Result<()> {
    let flat = managed(fleet, "flat").await.with_context(|| manager.said())?;
    let moved = flat.node.as_deref() != Some("w1");
    anyhow::ensure!(moved == completed, "{flat:?}: {}", manager.said());
    ensure_continues(env).await.with_context(|| manager.said())?;
    ensure_one_at_a_time(env)
}

/// Runs a manager that is killed at a step of a move.
async fn killed_at(fleet: &AgentFleet, step: &str) -> anyhow::Result<()> {
    two_on_w1(fleet, "go-on").await?;
    // On a busy machine a move may fail before that step: up to nine are allowed.
    let often = [&SPECON[..4], &["--moves", "9"]].concat();
    let mut manager = fleet.manager_that_crashes(&often, Some(step))?;
    let status = manager.ended().await?;
    anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", manager.said());
    Ok(())
}
