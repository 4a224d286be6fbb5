//! Jobs on a real Swarm, whose machines are engines of the test's own.

pub(crate) mod faults;
pub(crate) mod gangs;
pub(crate) mod stack;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use paceline_api::live::snapshot::{JobView, Snapshot, Standing};
use paceline_system_tests::{
    AgentFleet, OneTask, PrivateSwarm, SWARM_JOB as IMAGE, TestEnv, TestSwarm, until, until_within,
};

use crate::moves::{ensure_continues, processes, source_and_target};

/// `SpeCon`, quick enough for a test: a job with a constant loss has converged after some samples.
const SPECON: [&str; 6] = ["--param", "interval=0.5", "--param", "alpha=0.000001", "--moves", "1"];

/// The longest wait: a move takes as long as the engine needs to place a task and the agent to see it.
const SWARM_TIMEOUT: Duration = Duration::from_mins(3);

/// Runs a test on a Swarm with two workers, and an agent on every machine.
async fn on_a_swarm<F>(env: Arc<TestEnv>, test: impl FnOnce(AgentFleet) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let swarm = TestSwarm::shared(env.folder()).await?;
    on_machines(&env, swarm, async |folder, swarm| test(AgentFleet::open(folder, swarm)?).await)
        .await
}

/// The same for a test that stops machines, cuts them off or removes their images.
async fn on_its_own_swarm<F>(
    env: Arc<TestEnv>,
    test: impl FnOnce(AgentFleet) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let swarm = TestSwarm::own(env.folder()).await?;
    on_machines(&env, swarm, async |folder, swarm| test(AgentFleet::open(folder, swarm)?).await)
        .await
}

/// Runs a test on a Swarm, and clears the Swarm.
async fn on_machines<F>(
    env: &TestEnv,
    machines: TestSwarm,
    test: impl FnOnce(PathBuf, Arc<PrivateSwarm>) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let outcome = test(env.folder().to_owned(), machines.swarm()).await;
    outcome.and(machines.clear().await)
}

/// Starts two jobs on w1: one that converges at once and can be moved, and a growing one. `resume`
/// says what the movable one does with a checkpoint.
async fn two_on_w1(fleet: &AgentFleet, resume: &str) -> anyhow::Result<()> {
    let one = OneTask {
        image: IMAGE,
        mounts: &[(fleet.folder(), "/ckpt")],
        place: Some("node.hostname==w1"),
        ..OneTask::default()
    };
    let args = &["--half-life", "40000"];
    fleet.serve(&OneTask { name: "growing", args, ..one.clone() }).await?;
    let args = &["--checkpoint", "/ckpt/saved", "--trace", "/ckpt/trace", "--resume", resume];
    let labels = &[("paceline.checkpoint", "/ckpt")];
    fleet.serve(&OneTask { name: "flat", args, labels, ..one }).await
}

pub(crate) async fn converged_job_moves_to_another_machine_and_resumes(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&env), async |fleet| moves(&env, fleet).await).await
}

async fn moves(env: &TestEnv, fleet: AgentFleet) -> anyhow::Result<()> {
    two_on_w1(&fleet, "go-on").await?;
    let manager = fleet.manager(&SPECON)?;
    let moved = || async {
        let said = manager.said();
        anyhow::ensure!(!said.contains("it stays on"), "{said}");
        Ok(said.lines().any(|line| line.contains("it has moved from w1 to")).then_some(()))
    };
    until_within(SWARM_TIMEOUT, "the job moves", moved).await.with_context(|| manager.said())?;
    // The status may lag behind the log.
    let node = until("the job is shown elsewhere", || async {
        let node = managed(&fleet, "flat").await?.node;
        Ok(node.filter(|node| node != "w1"))
    })
    .await?;
    ensure_continues(env).await?;
    // The process at the source has made no step since the one at the target began.
    let (source, target) = source_and_target(env).with_context(|| manager.said())?;
    let (last, first) = (source.last().context("steps")?, target.first().context("steps")?);
    anyhow::ensure!(*first <= last + 1 && *first > 1, "from {last} to {first}");
    let services = fleet.services().await?;
    let expected = [format!("flat-to-{node}"), "growing".to_owned()];
    anyhow::ensure!(services == expected, "{services:?}");
    // An agent on a busy machine may answer late once.
    let shown = until("no machine is in trouble", || async {
        let shown = fleet.status().await?;
        Ok(shown.nodes.iter().all(|node| node.trouble.is_none()).then_some(shown))
    })
    .await?;
    anyhow::ensure!(shown.nodes.len() == 3 && shown.cost.moves == 1, "{shown:?}");
    let unmovable = shown.jobs.iter().find(|job| job.job == "growing");
    let why = unmovable.and_then(|job| job.unmovable.as_deref()).unwrap_or_default();
    anyhow::ensure!(why.contains("no label paceline.checkpoint"), "{why}");
    manager.end().await?;
    fleet.close().await
}

pub(crate) async fn job_that_cannot_resume_there_stays(env: Arc<TestEnv>) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&env), async |fleet| stays(&env, fleet).await).await
}

async fn stays(env: &TestEnv, fleet: AgentFleet) -> anyhow::Result<()> {
    two_on_w1(&fleet, "exit").await?;
    ensure_stays(env, &fleet, "first report").await?;
    fleet.close().await
}

/// Runs a manager whose attempt to move the job fails for a reason that contains `why`. The job
/// must go on where it was, with nothing left of the attempt.
async fn ensure_stays(env: &TestEnv, fleet: &AgentFleet, why: &str) -> anyhow::Result<()> {
    let manager = fleet.manager(&SPECON)?;
    let stays = || async {
        let said = manager.said();
        let line = |line: &str| line.contains("it stays on w1") && line.contains(why);
        Ok(said.lines().any(line).then_some(()))
    };
    until_within(SWARM_TIMEOUT, "the job stays", stays).await.with_context(|| manager.said())?;
    ensure_continues(env).await?;
    let flat = managed(fleet, "flat").await?;
    anyhow::ensure!(flat.node.as_deref() == Some("w1"), "{flat:?}");
    let services = fleet.services().await?;
    anyhow::ensure!(services == ["flat", "growing"], "{services:?}");
    anyhow::ensure!(processes(env)?.len() <= 2, "more than one process has taken its turn");
    manager.end().await
}

pub(crate) async fn ended_agent_is_reported_and_reached_again(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    on_a_swarm(Arc::clone(&env), async |mut fleet| {
        two_on_w1(&fleet, "go-on").await?;
        let manager = fleet.manager(&["--dry-run"])?;
        managed(&fleet, "flat").await?;
        fleet.end_agent("w1").await?;
        let reported = || async {
            let shown = fleet.status().await?;
            let w1 = shown.nodes.into_iter().find(|node| node.name == "w1");
            let why = w1.and_then(|node| node.trouble).unwrap_or_default();
            Ok(why.contains("cannot reach the agent at").then_some(()))
        };
        until("the manager reports the missing agent", reported).await?;
        fleet.start_agent("w1")?;
        managed(&fleet, "flat").await?;
        manager.end().await?;
        fleet.close().await
    })
    .await
}

/// Waits until the manager's status shows a job as managed; returns its view.
async fn managed(fleet: &AgentFleet, job: &str) -> anyhow::Result<JobView> {
    until_within(SWARM_TIMEOUT, "the job is managed", || async {
        let shown: Option<Snapshot> = fleet.status().await.ok();
        let mut jobs = shown.map(|shown| shown.jobs).unwrap_or_default().into_iter();
        let well = |one: &JobView| {
            one.job == job && one.standing == Standing::Managed && one.trouble.is_none()
        };
        Ok(jobs.find(well))
    })
    .await
}
