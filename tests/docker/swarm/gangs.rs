//! Distributed jobs of a real Swarm: submitted, started whole, scaled, ended, taken back.

use std::sync::Arc;

use anyhow::Context;
use paceline_allocator::live::snapshot::{GangState, GangView, JobView};
use paceline_system_tests::{Bed, Offices, until_within};
use rustix::process::Signal;

use super::{IMAGE, PATIENCE, on_a_swarm};

/// So many jobs of a higher weight wait, too.
const STREAM: usize = 4;
/// A job that has waited for so many seconds starves.
const STARVE_AFTER: f64 = 4.0;
/// KOD2, quick enough for a test.
const KOD2: [&str; 4] = ["--policy", "kod2", "--param", "quiet=1"];

pub(crate) async fn a_distributed_job_grows_gives_way_and_ends(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    on_a_swarm(bed, async |offices| lives(offices).await).await
}

async fn lives(offices: Offices) -> anyhow::Result<()> {
    // Three machines of two CPUs, and tasks of one CPU.
    let endless = r#"args = ["--sleep", "9999", "--heed-term"]"#;
    let small = format!("[worker]\nmin = 1\nmax = 4\ncpus = 1\n{endless}");
    let asked = offices.submit_gang("small", &file("small", &small)).await?;
    anyhow::ensure!(asked.contains("small is submitted: 4 services wait"), "{asked}");
    resubmit(&offices, &small).await?;
    let mut manager = offices.manager(&KOD2)?;
    gang(&offices, "small", "grows", |it| it.workers.placed == 4)
        .await
        .with_context(|| manager.said())?;

    let (mounts, until_told) = until_told(&offices);
    let better = format!(
        "{mounts}\n[ps]\ncount = 1\ncpus = 1\n{endless}\n[worker]\nmin = 3\ncpus = 1\n{until_told}"
    );
    offices.submit_gang("better", &file("better", &better)).await?;
    gang(&offices, "better", "starts", |it| it.state == GangState::Running)
        .await
        .with_context(|| manager.said())?;
    let small = gang(&offices, "small", "has given way", |it| it.workers.placed == 2).await?;
    anyhow::ensure!(small.state == GangState::Running, "{small:?}");
    // All tasks of it are there, and reached by the agents of their machines.
    until_within(PATIENCE, "every task reports", || async {
        let jobs = offices.status().await?.jobs;
        let of = |job: &&JobView| reports(job, "better");
        Ok((jobs.iter().filter(of).count() == 4).then_some(()))
    })
    .await?;

    // Another manager goes on from there, and touches nothing.
    manager.signal(Signal::KILL)?;
    manager.ended().await?;
    let before = offices.tasks().await?;
    let next = offices.manager(&KOD2)?;
    gang(&offices, "better", "is known", |it| it.state == GangState::Running).await?;
    anyhow::ensure!(offices.tasks().await? == before, "{before:?}: {}", next.said());

    std::fs::write(offices.folder().join("end"), "")?;
    let better = gang(&offices, "better", "ends", |it| {
        it.state == GangState::Finished && it.places.is_empty()
    });
    let better = better.await.with_context(|| next.said())?;
    anyhow::ensure!(better.workers.over == 3 && better.ps.placed == 0, "{better:?}");
    let half = "start was cut short";
    anyhow::ensure!(
        !next.said().contains(half),
        "the next manager has begun anew: {}",
        next.said()
    );
    gang(&offices, "small", "grows again", |it| it.workers.placed == 4).await?;

    for job in ["small", "better"] {
        offices.withdraw_gang(job).await?;
    }
    anyhow::ensure!(offices.services().await?.is_empty(), "{:?}", offices.services().await?);
    // A machine keeps a network until the last container there has left it.
    until_within(PATIENCE, "nothing runs, on no network", || async {
        let empty = offices.are_idle().await? && offices.networks("paceline-").await?.is_empty();
        Ok(empty.then_some(()))
    })
    .await?;
    next.end().await?;
    offices.close().await
}

/// Where the tasks of a job find the file `end`, and what they are told so as to end once it is there.
fn until_told(offices: &Offices) -> (String, &'static str) {
    let mounts = format!("mounts = [\"{}:/bed\"]", offices.folder().display());
    (mounts, r#"args = ["--hold", "/bed/end", "--steps", "1", "--heed-term"]"#)
}

/// A job of the lowest weight, before which many of a higher one would be put: once it starves it goes first.
pub(crate) async fn a_distributed_job_that_starves_goes_before_all_others(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    on_a_swarm(bed, async |offices| {
        let starve_after = format!("starve_after={STARVE_AFTER}");
        let manager = offices.manager(&[&KOD2[..], &["--param", &starve_after]].concat())?;
        // Two of these fill the three machines of two CPUs.
        let (mounts, until_told) = until_told(&offices);
        let short = format!("{mounts}\n[worker]\nmin = 3\ncpus = 1\n{until_told}");
        for name in ["short-a", "short-b"] {
            offices.submit_gang(name, &file(name, &short)).await?;
            gang(&offices, name, "starts", |it| it.state == GangState::Running)
                .await
                .with_context(|| manager.said())?;
        }
        let endless = r#"args = ["--sleep", "9999", "--heed-term"]"#;
        let low = format!("[worker]\nmin = 1\ncpus = 2\n{endless}");
        offices.submit_gang("low", &file("low", &low)).await?;
        until_within(PATIENCE, "the job starves", || async {
            let shown = offices.status().await?;
            let low = shown.gangs.iter().find(|it| it.job == "low").and_then(|low| low.submitted);
            Ok(low.filter(|since| shown.now > since + STARVE_AFTER))
        })
        .await
        .with_context(|| manager.said())?;
        let long = format!("[worker]\nmin = 3\ncpus = 1\n{endless}");
        for number in 0..STREAM {
            let name = format!("long-{number}");
            offices.submit_gang(&name, &file(&name, &long)).await?;
        }
        until_within(PATIENCE, "all others wait, too", || async {
            let gangs = offices.status().await?.gangs;
            let waiting = gangs.iter().filter(|it| it.state == GangState::Waiting).count();
            Ok((waiting == STREAM + 1).then_some(()))
        })
        .await
        .with_context(|| manager.said())?;
        std::fs::write(offices.folder().join("end"), "")?;
        gang(&offices, "low", "starts", |it| it.state == GangState::Running)
            .await
            .with_context(|| manager.said())?;
        let gangs = offices.status().await?.gangs;
        let waiting = gangs.iter().filter(|gang| gang.state == GangState::Waiting).count();
        anyhow::ensure!(waiting >= 2, "{waiting} others wait: {}", manager.said());
        let first =
            |line: &str| line.contains("low-worker-0 goes to") && line.contains(", starving (");
        anyhow::ensure!(manager.said().lines().any(first), "{}", manager.said());
        offices.clear().await?;
        manager.end().await?;
        offices.close().await
    })
    .await
}

/// A submission that was cut short is completed, by the same file and no other.
async fn resubmit(offices: &Offices, parts: &str) -> anyhow::Result<()> {
    let docker = offices.swarm().manager()?.docker();
    docker.delete_service("small-worker-3").await?;
    let other = file("small", &parts.replace("9999", "8888"));
    let refused = offices.submit_gang("small", &other).await.err().context("it is another job")?;
    anyhow::ensure!(refused.to_string().contains("there is another job small"), "{refused}");
    let again = file("small", parts);
    let asked = offices.submit_gang("small", &again).await?;
    anyhow::ensure!(asked.contains("1 services, beside 3 of before"), "{asked}");
    let whole = offices.submit_gang("small", &again).await.err().context("there is no more")?;
    anyhow::ensure!(whole.to_string().contains("and is whole"), "{whole}");
    Ok(())
}

/// Whether a task of a distributed job is managed, and has reported.
fn reports(job: &JobView, gang: &str) -> bool {
    job.job.starts_with(&format!("{gang}-")) && job.loss.or(job.last_loss).is_some()
}

/// Waits until a distributed job is as it should be, by its manager's word.
async fn gang(
    offices: &Offices,
    name: &str,
    what: &str,
    is: impl Fn(&GangView) -> bool,
) -> anyhow::Result<GangView> {
    until_within(PATIENCE, &format!("{name} {what}"), || async {
        let gangs = offices.status().await.map(|shown| shown.gangs).unwrap_or_default();
        Ok(gangs.into_iter().find(|gang| gang.job == name && is(gang)))
    })
    .await
}

/// The file of a job.
fn file(name: &str, parts: &str) -> String {
    format!("name = \"{name}\"\nimage = \"{IMAGE}\"\n{parts}\n")
}
