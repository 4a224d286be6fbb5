//! Jobs of a real Swarm, on machines that are engines of the test's own.

pub(crate) mod faults;
pub(crate) mod gangs;
pub(crate) mod stack;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use paceline_allocator::live::snapshot::{JobView, Snapshot, Standing};
use paceline_system_tests::{
    Bed, Offices, OneTask, PrivateSwarm, SWARM_JOB as IMAGE, TestSwarm, until, until_within,
};

use crate::moves::{ensure_goes_on, processes};

/// `SpeCon`, quick enough for a test: a job whose loss stands still has converged after some looks.
const SPECON: [&str; 6] = ["--param", "interval=0.5", "--param", "alpha=0.000001", "--moves", "1"];

/// A move takes what the engine takes to place a task, and an agent to see it.
const PATIENCE: Duration = Duration::from_mins(3);

/// Runs a test on a Swarm with two workers, and an agent on every machine.
async fn on_a_swarm<F>(bed: Arc<Bed>, test: impl FnOnce(Offices) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let swarm = TestSwarm::shared(bed.folder()).await?;
    on_machines(&bed, swarm, async |folder, swarm| test(Offices::open(folder, swarm)?).await).await
}

/// The same for a test that stops machines, cuts them off or removes their images.
async fn on_its_own_swarm<F>(bed: Arc<Bed>, test: impl FnOnce(Offices) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let swarm = TestSwarm::own(bed.folder()).await?;
    on_machines(&bed, swarm, async |folder, swarm| test(Offices::open(folder, swarm)?).await).await
}

/// Runs a test on a Swarm, and clears that.
async fn on_machines<F>(
    bed: &Bed,
    machines: TestSwarm,
    test: impl FnOnce(PathBuf, Arc<PrivateSwarm>) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let outcome = test(bed.folder().to_owned(), machines.swarm()).await;
    outcome.and(machines.clear().await)
}

/// A job that converges at once and can be moved, doing as `resume` says with a checkpoint, and one
/// that goes on growing beside it: both begin on w1.
async fn two_on_w1(offices: &Offices, resume: &str) -> anyhow::Result<()> {
    let one = OneTask {
        image: IMAGE,
        mounts: &[(offices.folder(), "/ckpt")],
        place: Some("node.hostname==w1"),
        ..OneTask::default()
    };
    let args = &["--half-life", "40000"];
    offices.serve(&OneTask { name: "growing", args, ..one.clone() }).await?;
    let args = &["--checkpoint", "/ckpt/saved", "--trace", "/ckpt/trace", "--resume", resume];
    let labels = &[("paceline.checkpoint", "/ckpt")];
    offices.serve(&OneTask { name: "flat", args, labels, ..one }).await
}

pub(crate) async fn a_converged_job_moves_to_another_machine_and_goes_on(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&bed), async |offices| moves(&bed, offices).await).await
}

async fn moves(bed: &Bed, offices: Offices) -> anyhow::Result<()> {
    two_on_w1(&offices, "go-on").await?;
    let manager = offices.manager(&SPECON)?;
    let moved = || async {
        let said = manager.said();
        anyhow::ensure!(!said.contains("it stays on"), "{said}");
        Ok(said.lines().any(|line| line.contains("it has moved from w1 to")).then_some(()))
    };
    until_within(PATIENCE, "the job moves", moved).await.with_context(|| manager.said())?;
    // What is shown may be of the moment before.
    let node = until("the job is shown elsewhere", || async {
        let node = managed(&offices, "flat").await?.node;
        Ok(node.filter(|node| node != "w1"))
    })
    .await?;
    ensure_goes_on(bed).await?;
    // The one at the source has made no step since the other one began.
    let runs = processes(bed)?;
    let [source, target] = runs.as_slice() else { anyhow::bail!("{} processes", runs.len()) };
    let (last, first) = (source.last().context("steps")?, target.first().context("steps")?);
    anyhow::ensure!(*first <= last + 1 && *first > 1, "from {last} to {first}");
    let services = offices.services().await?;
    let expected = [format!("flat-to-{node}"), "growing".to_owned()];
    anyhow::ensure!(services == expected, "{services:?}");
    // An agent on a busy machine may answer late for once.
    let shown = until("no machine is in trouble", || async {
        let shown = offices.status().await?;
        Ok(shown.nodes.iter().all(|node| node.trouble.is_none()).then_some(shown))
    })
    .await?;
    anyhow::ensure!(shown.nodes.len() == 3 && shown.cost.moves == 1, "{shown:?}");
    let unmovable = shown.jobs.iter().find(|job| job.job == "growing");
    let why = unmovable.and_then(|job| job.unmovable.as_deref()).unwrap_or_default();
    anyhow::ensure!(why.contains("no label paceline.checkpoint"), "{why}");
    manager.end().await?;
    offices.close().await
}

pub(crate) async fn a_job_that_does_not_go_on_there_stays_where_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&bed), async |offices| stays(&bed, offices).await).await
}

async fn stays(bed: &Bed, offices: Offices) -> anyhow::Result<()> {
    two_on_w1(&offices, "exit").await?;
    ensure_stays(bed, &offices, "first report").await?;
    offices.close().await
}

/// Has a manager try to move the job, which fails for a reason with these words: it goes on where it
/// was, and nothing else is left of the attempt.
async fn ensure_stays(bed: &Bed, offices: &Offices, why: &str) -> anyhow::Result<()> {
    let manager = offices.manager(&SPECON)?;
    let stays = || async {
        let said = manager.said();
        let line = |line: &str| line.contains("it stays on w1") && line.contains(why);
        Ok(said.lines().any(line).then_some(()))
    };
    until_within(PATIENCE, "the job stays", stays).await.with_context(|| manager.said())?;
    ensure_goes_on(bed).await?;
    let flat = managed(offices, "flat").await?;
    anyhow::ensure!(flat.node.as_deref() == Some("w1"), "{flat:?}");
    let services = offices.services().await?;
    anyhow::ensure!(services == ["flat", "growing"], "{services:?}");
    anyhow::ensure!(processes(bed)?.len() <= 2, "more than one process has taken its turn");
    manager.end().await
}

pub(crate) async fn an_agent_that_ends_is_told_of_and_heard_again(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&bed), async |mut offices| {
        two_on_w1(&offices, "go-on").await?;
        let manager = offices.manager(&["--dry-run"])?;
        managed(&offices, "flat").await?;
        offices.end_agent("w1").await?;
        let told = || async {
            let shown = offices.status().await?;
            let w1 = shown.nodes.into_iter().find(|node| node.name == "w1");
            let why = w1.and_then(|node| node.trouble).unwrap_or_default();
            Ok(why.contains("no agent answers at").then_some(()))
        };
        until("the manager tells of the agent", told).await?;
        offices.start_agent("w1")?;
        managed(&offices, "flat").await?;
        manager.end().await?;
        offices.close().await
    })
    .await
}

/// Waits until a job is managed, by its manager's word; how it stands then.
async fn managed(offices: &Offices, job: &str) -> anyhow::Result<JobView> {
    until_within(PATIENCE, "the job is managed", || async {
        let shown: Option<Snapshot> = offices.status().await.ok();
        let mut jobs = shown.map(|shown| shown.jobs).unwrap_or_default().into_iter();
        let well = |one: &JobView| {
            one.job == job && one.standing == Standing::Managed && one.trouble.is_none()
        };
        Ok(jobs.find(well))
    })
    .await
}
