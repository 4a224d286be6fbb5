//! Machines that a Swarm loses: the engine stops, the network is cut, or the owner removes them.

use std::sync::Arc;

use anyhow::Context;
use bollard::models::{Node, NodeState};
use bollard::query_parameters::{DeleteNodeOptionsBuilder, ListNodesOptions};
use paceline_system_tests::{AgentFleet, Allocator, OneTask, TestEnv, until, until_within};

use super::{ensure_is_there_once, killed_at};
use crate::moves::{ensure_continues, forget, processes};
use crate::swarm::{IMAGE, SWARM_TIMEOUT, managed, on_its_own_swarm};

/// Seconds in which a manager reads the state of its Swarm twice.
const TWO_LOOKS: f64 = 5.0;

pub(crate) async fn job_of_a_stopped_machine_resumes_from_checkpoint(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_its_own_swarm(env, async |fleet| {
        let (manager, host) = saving(&kept, &fleet).await?;
        fleet.engine(&host)?.stop().await?;
        awaited(&fleet, &host).await.with_context(|| manager.said())?;
        anyhow::ensure!(processes(&kept)?.len() == 1, "it was started in place of one unknown");
        fleet.engine(&host)?.start().await?;
        ensure_turns(&kept, 2).await.with_context(|| manager.said())?;
        let again = managed(&fleet, "flat").await?;

        let host = again.node.context("it has a machine")?;
        fleet.engine(&host)?.stop().await?;
        awaited(&fleet, &host).await.with_context(|| manager.said())?;
        give_up(&fleet, &host).await?;
        ensure_turns(&kept, 3).await.with_context(|| manager.said())?;
        let node = managed(&fleet, "flat").await?.node;
        anyhow::ensure!(node.is_some_and(|node| node != host), "{}", manager.said());
        manager.end().await?;
        fleet.close().await
    })
    .await
}

pub(crate) async fn a_job_whose_machine_is_cut_off_runs_once_at_a_time(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_its_own_swarm(env, async |fleet| {
        let (manager, host) = saving(&kept, &fleet).await?;
        fleet.swarm().cut_off(&host).await?;
        awaited(&fleet, &host).await.with_context(|| manager.said())?;
        until_it_has_looked(&fleet).await?;
        // The manager cannot know it, but the job still runs there.
        ensure_continues(&kept).await?;
        anyhow::ensure!(processes(&kept)?.len() == 1, "it runs twice: {}", manager.said());
        fleet.swarm().reconnect(&host).await?;
        ensure_turns(&kept, 2).await.with_context(|| manager.said())?;
        managed(&fleet, "flat").await?;
        manager.end().await?;
        fleet.close().await
    })
    .await
}

pub(crate) async fn a_cut_in_the_middle_of_a_move_leaves_the_job_once(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&env);
    on_its_own_swarm(env, async |fleet| {
        // A job on the managing machine, so that the move does not go there.
        let one = OneTask {
            name: "other",
            image: IMAGE,
            args: &["--half-life", "40000"],
            place: Some("node.hostname==m"),
            ..OneTask::default()
        };
        for (step, host, completed) in [("started", "w2", false), ("retire", "w1", true)] {
            fleet.serve(&one).await?;
            killed_at(&fleet, step).await?;
            fleet.swarm().cut_off(host).await?;
            let next = fleet.manager(&["--policy", "none"])?;
            next.says(&["cannot complete or undo the move of job flat"]).await?;
            until_given_up(&fleet, host).await?;
            fleet.swarm().reconnect(host).await?;
            ensure_is_there_once(&kept, &fleet, &next, completed).await.context(step)?;
            next.end().await?;
            fleet.clear().await?;
            forget(&kept)?;
        }
        fleet.close().await
    })
    .await
}

/// Starts a manager and a job on a worker. Returns the manager and the worker's name once the job
/// has saved a checkpoint.
async fn saving(env: &TestEnv, fleet: &AgentFleet) -> anyhow::Result<(Allocator, String)> {
    // It must end at once at SIGTERM, so that its machine stops quickly.
    let args = &[
        "--checkpoint",
        "/ckpt/saved",
        "--save-every",
        "20",
        "--trace",
        "/ckpt/trace",
        "--heed-term",
    ];
    let one = OneTask {
        name: "flat",
        image: IMAGE,
        args,
        labels: &[("paceline.checkpoint", "/ckpt")],
        mounts: &[(fleet.folder(), "/ckpt")],
        place: Some("node.role==worker"),
        ..OneTask::default()
    };
    fleet.serve(&one).await?;
    let manager = fleet.manager(&["--policy", "none"])?;
    let flat = managed(fleet, "flat").await.with_context(|| manager.said())?;
    until("it has saved a checkpoint", || async { Ok(env.file("saved").exists().then_some(())) })
        .await?;
    Ok((manager, flat.node.context("it has a machine")?))
}

/// Waits until the manager reports that the job waits for its machine.
async fn awaited(fleet: &AgentFleet, host: &str) -> anyhow::Result<()> {
    until_within(SWARM_TIMEOUT, "the job waits for its machine", || async {
        let shown = fleet.status().await?;
        let node = shown.nodes.into_iter().find(|node| node.name == host);
        let why = node.and_then(|node| node.trouble).unwrap_or_default();
        Ok(why.contains("flat may still run there, and waits for it").then_some(()))
    })
    .await
}

/// Waits long enough for the manager to act on what it has reported.
async fn until_it_has_looked(fleet: &AgentFleet) -> anyhow::Result<()> {
    let now = fleet.status().await?.t;
    until_within(SWARM_TIMEOUT, "the manager looks again", || async {
        Ok((fleet.status().await?.t >= now + TWO_LOOKS).then_some(()))
    })
    .await
}

/// Waits until the engine marks a machine that does not answer as down.
async fn until_given_up(fleet: &AgentFleet, host: &str) -> anyhow::Result<()> {
    let docker = fleet.swarm().manager()?.docker();
    let is_down = |node: &Node| {
        let name = node.description.as_ref().and_then(|of| of.hostname.as_deref());
        let state = node.status.as_ref().and_then(|status| status.state);
        name == Some(host) && state == Some(NodeState::DOWN)
    };
    until_within(SWARM_TIMEOUT, "the engine gives the machine up", || async {
        let nodes = docker.list_nodes(None::<ListNodesOptions>).await?;
        Ok(nodes.iter().any(is_down).then_some(()))
    })
    .await
}

/// Waits until `turns` processes of the job have run, and the last continues. Each must have begun
/// from the checkpoint of the one before, after that one's last step.
async fn ensure_turns(env: &TestEnv, turns: usize) -> anyhow::Result<()> {
    until_within(SWARM_TIMEOUT, "the job is started again", || async {
        Ok((processes(env)?.len() >= turns).then_some(()))
    })
    .await?;
    ensure_continues(env).await?;
    let runs = processes(env)?;
    // Docker may lose a busy machine once more, and then the job has one more turn.
    for pair in runs.windows(2) {
        let [before, after] = pair else { continue };
        let (last, first) = (before.last().context("steps")?, after.first().context("steps")?);
        anyhow::ensure!(*first > 1 && *first <= last + 1, "from {last} to {first}");
    }
    Ok(())
}

/// Removes a machine from the Swarm, as an owner does who knows that it is gone.
async fn give_up(fleet: &AgentFleet, host: &str) -> anyhow::Result<()> {
    let docker = fleet.swarm().manager()?.docker();
    let force = DeleteNodeOptionsBuilder::default().force(true).build();
    Ok(docker.delete_node(host, Some(force)).await?)
}
