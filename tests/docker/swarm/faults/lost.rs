//! Machines that a Swarm loses: their engine stops, their cable is cut, their owner gives them up.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::query_parameters::DeleteNodeOptionsBuilder;
use paceline_system_tests::{Allocator, Bed, Offices, OneTask, until, until_within};
use tokio::time::{Instant, sleep};

use super::{ensure_is_there_once, killed_at};
use crate::moves::{ensure_goes_on, forget, processes};
use crate::swarm::{IMAGE, PATIENCE, managed, on_its_own_swarm};

/// So long a machine is cut off: the engine gives it up sooner.
const CUT: Duration = Duration::from_secs(30);

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
        let cut = Instant::now();
        offices.swarm().cut_off(&host).await?;
        awaited(&offices, &host).await.with_context(|| manager.said())?;
        sleep(CUT.saturating_sub(cut.elapsed())).await;
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
            let cut = Instant::now();
            offices.swarm().cut_off(host).await?;
            let next = offices.manager(&["--policy", "none"])?;
            next.says(&["the move of job flat can be neither completed nor undone yet"]).await?;
            sleep(CUT.saturating_sub(cut.elapsed())).await;
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
    let args = &["--checkpoint", "/ckpt/saved", "--save-every", "20", "--trace", "/ckpt/trace"];
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
