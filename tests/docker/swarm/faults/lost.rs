//! Machines that a Swarm loses: their engine stops, their cable is cut, their owner gives them up.

use std::sync::Arc;

use anyhow::Context;
use bollard::models::{Node, NodeState};
use bollard::query_parameters::{DeleteNodeOptionsBuilder, ListNodesOptions};
use paceline_system_tests::{Allocator, Bed, Offices, OneTask, until, until_within};

use super::{ensure_is_there_once, killed_at};
use crate::moves::{ensure_goes_on, forget, processes};
use crate::swarm::{IMAGE, PATIENCE, managed, on_its_own_swarm};

/// Within so many seconds of its own time a manager has looked at its Swarm twice.
const TWO_LOOKS: f64 = 5.0;

pub(crate) async fn a_job_whose_machine_stops_goes_on_from_its_checkpoint(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_its_own_swarm(bed, async |offices| {
        let (manager, host) = saving(&kept, &offices).await?;
        offices.engine(&host)?.stop().await?;
        awaited(&offices, &host).await.with_context(|| manager.said())?;
        anyhow::ensure!(processes(&kept)?.len() == 1, "it was started in place of one unknown");
        offices.engine(&host)?.start().await?;
        ensure_turns(&kept, 2).await.with_context(|| manager.said())?;
        let again = managed(&offices, "flat").await?;

        let host = again.node.context("it has a machine")?;
        offices.engine(&host)?.stop().await?;
        awaited(&offices, &host).await.with_context(|| manager.said())?;
        give_up(&offices, &host).await?;
        ensure_turns(&kept, 3).await.with_context(|| manager.said())?;
        let node = managed(&offices, "flat").await?.node;
        anyhow::ensure!(node.is_some_and(|node| node != host), "{}", manager.said());
        manager.end().await?;
        offices.close().await
    })
    .await
}

pub(crate) async fn a_job_whose_machine_is_cut_off_runs_once_at_a_time(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_its_own_swarm(bed, async |offices| {
        let (manager, host) = saving(&kept, &offices).await?;
        offices.swarm().cut_off(&host).await?;
        awaited(&offices, &host).await.with_context(|| manager.said())?;
        until_it_has_looked(&offices).await?;
        // Nobody can know, but it runs there.
        ensure_goes_on(&kept).await?;
        anyhow::ensure!(processes(&kept)?.len() == 1, "it runs twice: {}", manager.said());
        offices.swarm().reconnect(&host).await?;
        ensure_turns(&kept, 2).await.with_context(|| manager.said())?;
        managed(&offices, "flat").await?;
        manager.end().await?;
        offices.close().await
    })
    .await
}

pub(crate) async fn a_cut_in_the_middle_of_a_move_leaves_the_job_once(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let kept = Arc::clone(&bed);
    on_its_own_swarm(bed, async |offices| {
        // A job there, so that the move does not lead to the machine that manages the Swarm.
        let one = OneTask {
            name: "other",
            image: IMAGE,
            args: &["--half-life", "40000"],
            place: Some("node.hostname==m"),
            ..OneTask::default()
        };
        for (step, host, completed) in [("started", "w2", false), ("retire", "w1", true)] {
            offices.serve(&one).await?;
            killed_at(&offices, step).await?;
            offices.swarm().cut_off(host).await?;
            let next = offices.manager(&["--policy", "none"])?;
            next.says(&["the move of job flat can be neither completed nor undone yet"]).await?;
            until_given_up(&offices, host).await?;
            offices.swarm().reconnect(host).await?;
            ensure_is_there_once(&kept, &offices, &next, completed).await.context(step)?;
            next.end().await?;
            offices.clear().await?;
            forget(&kept)?;
        }
        offices.close().await
    })
    .await
}

/// A manager, and a job on a worker that has saved a checkpoint; where it is.
async fn saving(bed: &Bed, offices: &Offices) -> anyhow::Result<(Allocator, String)> {
    // Its machine stops without waiting for the job.
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
        mounts: &[(offices.folder(), "/ckpt")],
        place: Some("node.role==worker"),
        ..OneTask::default()
    };
    offices.serve(&one).await?;
    let manager = offices.manager(&["--policy", "none"])?;
    let flat = managed(offices, "flat").await.with_context(|| manager.said())?;
    until("it has saved a checkpoint", || async { Ok(bed.file("saved").exists().then_some(())) })
        .await?;
    Ok((manager, flat.node.context("it has a machine")?))
}

/// Waits until the manager says that the job waits for its machine.
async fn awaited(offices: &Offices, host: &str) -> anyhow::Result<()> {
    until_within(PATIENCE, "the job waits for its machine", || async {
        let shown = offices.status().await?;
        let node = shown.nodes.into_iter().find(|node| node.name == host);
        let why = node.and_then(|node| node.trouble).unwrap_or_default();
        Ok(why.contains("flat may still run there, and waits for it").then_some(()))
    })
    .await
}

/// Waits until the manager has had the time to do something more about what it has said.
async fn until_it_has_looked(offices: &Offices) -> anyhow::Result<()> {
    let now = offices.status().await?.t;
    until_within(PATIENCE, "the manager looks again", || async {
        Ok((offices.status().await?.t >= now + TWO_LOOKS).then_some(()))
    })
    .await
}

/// Waits until the engine has given a machine up that does not answer.
async fn until_given_up(offices: &Offices, host: &str) -> anyhow::Result<()> {
    let docker = offices.swarm().manager()?.docker();
    let is_down = |node: &Node| {
        let name = node.description.as_ref().and_then(|of| of.hostname.as_deref());
        let state = node.status.as_ref().and_then(|status| status.state);
        name == Some(host) && state == Some(NodeState::DOWN)
    };
    until_within(PATIENCE, "the engine gives the machine up", || async {
        let nodes = docker.list_nodes(None::<ListNodesOptions>).await?;
        Ok(nodes.iter().any(is_down).then_some(()))
    })
    .await
}

/// Waits until the job is at its so many-th process, and goes on: each began from the checkpoint of
/// the one before, once that had made its last step.
async fn ensure_turns(bed: &Bed, turns: usize) -> anyhow::Result<()> {
    until_within(PATIENCE, "the job is started again", || async {
        Ok((processes(bed)?.len() >= turns).then_some(()))
    })
    .await?;
    ensure_goes_on(bed).await?;
    let runs = processes(bed)?;
    anyhow::ensure!(runs.len() == turns, "{} processes", runs.len());
    for pair in runs.windows(2) {
        let [before, after] = pair else { continue };
        let (last, first) = (before.last().context("steps")?, after.first().context("steps")?);
        anyhow::ensure!(*first > 1 && *first <= last + 1, "from {last} to {first}");
    }
    Ok(())
}

/// Removes a machine from the Swarm, as its owner does who knows that it is gone.
async fn give_up(offices: &Offices, host: &str) -> anyhow::Result<()> {
    let docker = offices.swarm().manager()?.docker();
    let force = DeleteNodeOptionsBuilder::default().force(true).build();
    Ok(docker.delete_node(host, Some(force)).await?)
}
