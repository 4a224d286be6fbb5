//! Gangs on a real Swarm: submitted, started whole, scaled, ended, withdrawn.

use std::sync::Arc;

use anyhow::Context;
use paceline_api::live::snapshot::{GangState, GangView, JobView};
use paceline_system_tests::{AgentFleet, TestEnv, until_within};
use rustix::process::Signal;

use super::{IMAGE, SWARM_TIMEOUT, on_a_swarm};

/// Jobs of a higher weight that wait, too.
const STREAM: usize = 4;
/// Seconds after which a waiting job starves.
const STARVE_AFTER: f64 = 4.0;
/// KOD2, quick enough for a test.
const KOD2: [&str; 4] = ["--policy", "kod2", "--param", "quiet=1"];

pub(crate) async fn gang_grows_shrinks_and_ends(env: Arc<TestEnv>) -> anyhow::Result<()> {
    on_a_swarm(env, async |fleet| lives(fleet).await).await
}

async fn lives(fleet: AgentFleet) -> anyhow::Result<()> {
    // Three machines of two CPUs, and tasks of one CPU.
    let endless = r#"args = ["--sleep", "9999", "--heed-term"]"#;
    let small = format!("[worker]\nmin = 1\nmax = 4\ncpus = 1\n{endless}");
    let asked = fleet.submit_gang("small", &file("small", &small)).await?;
    anyhow::ensure!(asked.contains("small is submitted: 4 services wait"), "{asked}");
    resubmit(&fleet, &small).await?;
    let mut manager = fleet.manager(&KOD2)?;
    gang(&fleet, "small", "grows", |it| it.workers.placed == 4)
        .await
        .with_context(|| manager.said())?;

    let (mounts, until_file) = until_file(&fleet);
    let better = format!(
        "{mounts}\n[ps]\ncount = 1\ncpus = 1\n{endless}\n[worker]\nmin = 3\ncpus = 1\n{until_file}"
    );
    fleet.submit_gang("better", &file("better", &better)).await?;
    gang(&fleet, "better", "starts", |it| it.state == GangState::Running)
        .await
        .with_context(|| manager.said())?;
    let small = gang(&fleet, "small", "has shrunk", |it| it.workers.placed == 2).await?;
    anyhow::ensure!(small.state == GangState::Running, "{small:?}");
    // All its tasks run and are reached by the agents of their machines.
    until_within(SWARM_TIMEOUT, "every task reports", || async {
        let jobs = fleet.status().await?.jobs;
        let of = |job: &&JobView| reports(job, "better");
        Ok((jobs.iter().filter(of).count() == 4).then_some(()))
    })
    .await?;

    // The next manager takes over and changes nothing.
    manager.signal(Signal::KILL)?;
    manager.ended().await?;
    let before = fleet.tasks().await?;
    let next = fleet.manager(&KOD2)?;
    gang(&fleet, "better", "is known", |it| it.state == GangState::Running).await?;
    anyhow::ensure!(fleet.tasks().await? == before, "{before:?}: {}", next.said());

    std::fs::write(fleet.folder().join("end"), "")?;
    let better = gang(&fleet, "better", "ends", |it| {
        it.state == GangState::Finished && it.places.is_empty()
    });
    let better = better.await.with_context(|| next.said())?;
    anyhow::ensure!(better.workers.over == 3 && better.ps.placed == 0, "{better:?}");
    let half = "start was interrupted";
    anyhow::ensure!(
        !next.said().contains(half),
        "the next manager started it again: {}",
        next.said()
    );
    gang(&fleet, "small", "grows again", |it| it.workers.placed == 4).await?;

    for job in ["small", "better"] {
        fleet.withdraw_gang(job).await?;
    }
    anyhow::ensure!(fleet.services().await?.is_empty(), "{:?}", fleet.services().await?);
    // A machine keeps a network until the last container there has left it.
    until_within(SWARM_TIMEOUT, "nothing runs, on no network", || async {
        let empty = fleet.are_idle().await? && fleet.networks("paceline-").await?.is_empty();
        Ok(empty.then_some(()))
    })
    .await?;
    next.end().await?;
    fleet.close().await
}

/// The mount with the file `end`, and arguments by which tasks end once that file exists.
fn until_file(fleet: &AgentFleet) -> (String, &'static str) {
    let mounts = format!("mounts = [\"{}:/files\"]", fleet.folder().display());
    (mounts, r#"args = ["--hold", "/files/end", "--steps", "1", "--heed-term"]"#)
}

/// A job of the lowest weight would wait behind many of a higher one: once it starves, it goes first.
pub(crate) async fn starving_gang_goes_before_all_others(env: Arc<TestEnv>) -> anyhow::Result<()> {
    on_a_swarm(env, async |fleet| {
        let starve_after = format!("starve_after={STARVE_AFTER}");
        let manager = fleet.manager(&[&KOD2[..], &["--param", &starve_after]].concat())?;
        // Two of these fill the three machines of two CPUs.
        let (mounts, until_file) = until_file(&fleet);
        let short = format!("{mounts}\n[worker]\nmin = 3\ncpus = 1\n{until_file}");
        for name in ["short-a", "short-b"] {
            fleet.submit_gang(name, &file(name, &short)).await?;
            gang(&fleet, name, "starts", |it| it.state == GangState::Running)
                .await
                .with_context(|| manager.said())?;
        }
        let endless = r#"args = ["--sleep", "9999", "--heed-term"]"#;
        let low = format!("[worker]\nmin = 1\ncpus = 2\n{endless}");
        fleet.submit_gang("low", &file("low", &low)).await?;
        until_within(SWARM_TIMEOUT, "the job starves", || async {
            let shown = fleet.status().await?;
            let low = shown.gangs.iter().find(|it| it.job == "low").and_then(|low| low.submitted);
            Ok(low.filter(|since| shown.now > since + STARVE_AFTER))
        })
        .await
        .with_context(|| manager.said())?;
        let long = format!("[worker]\nmin = 3\ncpus = 1\n{endless}");
        for number in 0..STREAM {
            let name = format!("long-{number}");
            fleet.submit_gang(&name, &file(&name, &long)).await?;
        }
        until_within(SWARM_TIMEOUT, "all others wait, too", || async {
            let gangs = fleet.status().await?.gangs;
            let waiting = gangs.iter().filter(|it| it.state == GangState::Waiting).count();
            Ok((waiting == STREAM + 1).then_some(()))
        })
        .await
        .with_context(|| manager.said())?;
        std::fs::write(fleet.folder().join("end"), "")?;
        gang(&fleet, "low", "starts", |it| it.state == GangState::Running)
            .await
            .with_context(|| manager.said())?;
        let gangs = fleet.status().await?.gangs;
        let waiting = gangs.iter().filter(|gang| gang.state == GangState::Waiting).count();
        anyhow::ensure!(waiting >= 2, "{waiting} others wait: {}", manager.said());
        let first = |line: &str| {
            line.contains("placing task low-worker-0 on") && line.contains(", starving (")
        };
        anyhow::ensure!(manager.said().lines().any(first), "{}", manager.said());
        fleet.clear().await?;
        manager.end().await?;
        fleet.close().await
    })
    .await
}

/// An interrupted submission is completed by the same file, and by no other.
async fn resubmit(fleet: &AgentFleet, parts: &str) -> anyhow::Result<()> {
    let docker = fleet.swarm().manager()?.docker();
    docker.delete_service("small-worker-3").await?;
    let other = file("small", &parts.replace("9999", "8888"));
    let refused = fleet.submit_gang("small", &other).await.err().context("it is another job")?;
    anyhow::ensure!(refused.to_string().contains("another job has this name"), "{refused}");
    let again = file("small", parts);
    let asked = fleet.submit_gang("small", &again).await?;
    anyhow::ensure!(asked.contains("1 services, after 3 earlier ones"), "{asked}");
    let whole = fleet.submit_gang("small", &again).await.err().context("there is no more")?;
    anyhow::ensure!(whole.to_string().contains("it is submitted already"), "{whole}");
    Ok(())
}

/// Whether this is a task of the gang that has reported.
fn reports(job: &JobView, gang: &str) -> bool {
    job.job.starts_with(&format!("{gang}-")) && job.loss.or(job.last_loss).is_some()
}

/// Waits until the manager's status shows a gang for which `is` holds.
async fn gang(
    fleet: &AgentFleet,
    name: &str,
    what: &str,
    is: impl Fn(&GangView) -> bool,
) -> anyhow::Result<GangView> {
    until_within(SWARM_TIMEOUT, &format!("{name} {what}"), || async {
        let gangs = fleet.status().await.map(|shown| shown.gangs).unwrap_or_default();
        Ok(gangs.into_iter().find(|gang| gang.job == name && is(gang)))
    })
    .await
}

/// The text of a gang's file.
fn file(name: &str, parts: &str) -> String {
    format!("name = \"{name}\"\nimage = \"{IMAGE}\"\n{parts}\n")
}
