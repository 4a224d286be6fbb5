//! Jobs that `SpeCon` moves from one node to another, each node a CPU of the machine.

use std::sync::Arc;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::InspectContainerOptions;
use paceline_allocator::clock::Clock;
use paceline_system_tests::{Allocator, Bed, Job, until};
use rustix::process::Signal;
use serde_json::Value;

use crate::flowcon::{flat, growing};
use crate::orders::view;
use crate::policies::replay;

/// `SpeCon`, quick enough for a test: a job whose loss stands still has converged after a second.
pub(crate) const SPECON: [&str; 6] =
    ["--policy", "specon", "--param", "interval=0.25", "--param", "alpha=0.000001"];

/// Two nodes of one CPU each, between which a job is moved once.
const NODES: [&str; 6] = ["--node", "a=0", "--node", "b=1", "--moves", "1"];

/// A job on the CPU of node a whose folder of checkpoints outlives it.
fn on_a(bed: &Bed, job: Job) -> Job {
    let host = HostConfig {
        cpuset_cpus: Some("0".to_owned()),
        binds: Some(vec![format!("{}:/ckpt", bed.folder().display())]),
        ..job.host
    };
    Job { host, ..job }
}

/// A job that converges at once and can be moved. Given a checkpoint, it does as `resume` says.
fn movable(bed: &Bed, resume: &'static str) -> Job {
    let args = ["--checkpoint", "/ckpt/saved", "--trace", "/ckpt/trace", "--resume", resume];
    let labels = vec![("paceline.checkpoint", "/ckpt")];
    on_a(bed, Job { args: args.to_vec(), labels, ..flat() })
}

/// A movable job and one that goes on growing beside it; the movable one's name.
pub(crate) async fn two_on_a(bed: &Bed, resume: &'static str) -> anyhow::Result<String> {
    let movable = bed.start(movable(bed, resume));
    let (_, movable) = tokio::try_join!(bed.start(on_a(bed, growing())), movable)?;
    Ok(movable)
}

/// What of a container a move is about.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) cpus: String,
    pub(crate) runs: bool,
}

pub(crate) async fn place(bed: &Bed, name: &str) -> anyhow::Result<Place> {
    let found = bed.docker().inspect_container(name, None::<InspectContainerOptions>).await?;
    let state = found.state.unwrap_or_default();
    let cpus = found.host_config.and_then(|host| host.cpuset_cpus).unwrap_or_default();
    let runs = state.running == Some(true) && state.paused == Some(false);
    Ok(Place { id: found.id.unwrap_or_default(), cpus, runs })
}

/// The steps of each process of the movable job, one process after the other: a process that comes
/// back after another one has begun is listed again.
pub(crate) fn processes(bed: &Bed) -> anyhow::Result<Vec<Vec<u64>>> {
    let text = std::fs::read_to_string(bed.file("trace"))?;
    let mut runs: Vec<(&str, Vec<u64>)> = Vec::new();
    // What is being written has no end yet.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (process, step) = line.split_once(' ').context("a line has two words")?;
        match runs.last_mut() {
            Some((last, steps)) if *last == process => steps.push(step.parse()?),
            _ => runs.push((process, vec![step.parse()?])),
        }
    }
    Ok(runs.into_iter().map(|(_, steps)| steps).collect())
}

/// Waits until the movable job has made more steps than now.
pub(crate) async fn ensure_goes_on(bed: &Bed) -> anyhow::Result<()> {
    let steps = |bed: &Bed| anyhow::Ok(processes(bed)?.iter().map(Vec::len).sum::<usize>());
    let now = steps(bed)?;
    until("the job goes on", || async { Ok((steps(bed)? > now + 10).then_some(())) }).await
}

/// The entries of one kind in the audit log.
fn audited(what: &str, bed: &Bed) -> anyhow::Result<Vec<Value>> {
    let entries = paceline_system_tests::json_lines(&Allocator::state(bed).join("audit.jsonl"))?;
    let kind = |entry: &Value| entry.get("what").and_then(Value::as_str) == Some(what);
    Ok(entries.into_iter().filter(kind).collect())
}

pub(crate) async fn a_converged_job_moves_and_goes_on_from_its_checkpoint(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let name = two_on_a(&bed, "go-on").await?;
    let before = place(&bed, &name).await?;
    let frames = bed.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let words = [&SPECON[..], &NODES, &["--record", &record]].concat();
    let clock = Clock::start();
    let allocator = Allocator::run(&bed, &words)?;
    allocator.says(&["job=flat", "has moved from a to b"]).await?;
    until("the job is managed where it is now", || async {
        let view = view(&bed, "flat").await.ok();
        Ok(view.filter(|view| view.node.as_deref() == Some("b") && view.cpu.is_some()))
    })
    .await?;
    ensure_goes_on(&bed).await?;
    let after = place(&bed, &name).await?;
    anyhow::ensure!((after.cpus.as_str(), after.runs) == ("1", true), "{after:?}");
    anyhow::ensure!(after.id != before.id && bed.ids().await?.len() == 2, "{before:?} {after:?}");
    allocator.end().await?;
    // The one at the source has made no step since the other one began.
    let runs = processes(&bed)?;
    let [source, target] = runs.as_slice() else { anyhow::bail!("{} processes", runs.len()) };
    let (last, first) = (source.last().context("steps")?, target.first().context("steps")?);
    anyhow::ensure!(*first <= last + 1 && *first > 1, "from {last} to {first}");
    let moved = audited("moved", &bed)?;
    let seconds = moved.first().and_then(|entry| entry.get("seconds")?.as_f64());
    let until_now = 0.0..clock.now().seconds();
    let took_some = seconds.is_some_and(|seconds| seconds > 0.0 && until_now.contains(&seconds));
    anyhow::ensure!(moved.len() == 1 && took_some, "{moved:?}");
    let decided = audited("decided", &bed)?;
    let told = |entry: &Value| {
        entry.get("job") == Some(&"flat".into()) && entry.get("moves_to") == Some(&"b".into())
    };
    anyhow::ensure!(decided.iter().any(told), "no decision says that it moves");
    // What was recorded gives the same decision again.
    let decisions = replay(&SPECON, &frames).await?;
    let moves = decisions.iter().filter_map(|decision| decision.get("migrate")?.as_array());
    let moves: Vec<_> = moves.flatten().collect();
    let of_flat = |one: &&Value| one.get("job").and_then(Value::as_str) == Some("flat");
    anyhow::ensure!(moves.first().is_some_and(of_flat), "{moves:?}");
    Ok(())
}

pub(crate) async fn a_job_that_does_not_go_on_at_the_target_stays_where_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    for (resume, within, words) in [
        ("exit", "60", "ended before its first report, with exit code 1"),
        ("hang", "3", "the job has not reported from there within 3 s"),
        ("anew", "60", "it does not go on from its checkpoint"),
    ] {
        let name = two_on_a(&bed, resume).await?;
        let before = place(&bed, &name).await?;
        let within = ["--move-within", within];
        let allocator = Allocator::run(&bed, &[&SPECON[..], &NODES, &within].concat())?;
        allocator.says(&["job=flat", "it stays on a", words]).await?;
        ensure_goes_on(&bed).await.context(resume)?;
        anyhow::ensure!(place(&bed, &name).await? == before, "{resume}: it is another container");
        anyhow::ensure!(bed.ids().await?.len() == 2, "{resume}: there is one too many");
        let managed = until("it is managed again", || async {
            let view = view(&bed, "flat").await.ok();
            Ok(view.filter(|view| view.node.as_deref() == Some("a") && view.class.is_some()))
        });
        managed.await.context(resume)?;
        allocator.end().await?;
        // Its steps go on as if nothing had been.
        let runs = processes(&bed)?;
        let steps: Vec<u64> = match runs.as_slice() {
            [only] => only.clone(),
            [first, _, last] if resume == "anew" => [first.clone(), last.clone()].concat(),
            _ => anyhow::bail!("{resume}: {} processes", runs.len()),
        };
        let whole = steps.windows(2).all(|two| matches!(two, [one, next] if one + 1 == *next));
        anyhow::ensure!(whole, "{resume}: steps were lost");
        bed.clear().await?;
        forget(&bed)?;
    }
    Ok(())
}

/// Removes what the movable job has left.
pub(crate) fn forget(bed: &Bed) -> anyhow::Result<()> {
    for file in ["saved", "trace"] {
        match std::fs::remove_file(bed.file(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) async fn an_allocator_that_ends_leaves_a_job_where_it_was(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let name = two_on_a(&bed, "hang").await?;
    let before = place(&bed, &name).await?;
    let mut allocator = Allocator::run(&bed, &[&SPECON[..], &NODES].concat())?;
    until("the job is frozen", || async { Ok((!place(&bed, &name).await?.runs).then_some(())) })
        .await?;
    allocator.signal(Signal::TERM)?;
    let status = allocator.ended().await?;
    anyhow::ensure!(status.success(), "{status}: {}", allocator.said());
    anyhow::ensure!(place(&bed, &name).await? == before, "{}", allocator.said());
    anyhow::ensure!(bed.ids().await?.len() == 2, "there is one too many");
    ensure_goes_on(&bed).await
}

pub(crate) async fn a_free_move_changes_the_cpus_of_a_job_that_runs_on(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let name = two_on_a(&bed, "exit").await?;
    let before = place(&bed, &name).await?;
    let free = ["--migration", "cpuset"];
    let allocator = Allocator::run(&bed, &[&SPECON[..], &NODES, &free].concat())?;
    allocator.says(&["job=flat", "has moved from a to b"]).await?;
    until("the job is on its new node", || async {
        let view = view(&bed, "flat").await.ok();
        Ok(view.filter(|view| view.node.as_deref() == Some("b") && view.class.is_some()))
    })
    .await?;
    ensure_goes_on(&bed).await?;
    let after = place(&bed, &name).await?;
    anyhow::ensure!(after == Place { cpus: "1".to_owned(), ..before }, "{after:?}");
    anyhow::ensure!(processes(&bed)?.len() == 1, "it began anew");
    allocator.end().await
}

pub(crate) async fn what_cannot_be_moved_is_said_and_stays(bed: Arc<Bed>) -> anyhow::Result<()> {
    let outside = Job { name: "outside", ..flat() };
    let (_, name, _) = tokio::try_join!(
        bed.start(on_a(&bed, growing())),
        bed.start(on_a(&bed, flat())),
        bed.start(outside),
    )?;
    let before = place(&bed, &name).await?;
    let allocator = Allocator::run(&bed, &[&SPECON[..], &NODES].concat())?;
    let words = ["job=flat", "it stays on a", "no label paceline.checkpoint"];
    allocator.says(&words).await?;
    anyhow::ensure!(place(&bed, &name).await? == before, "it was touched");
    let unmovable = until("it is shown why", || async { Ok(view(&bed, "flat").await?.unmovable) });
    anyhow::ensure!(unmovable.await?.contains("paceline.checkpoint"));
    let trouble =
        until("so is the other's trouble", || async { Ok(view(&bed, "outside").await?.trouble) });
    let trouble = trouble.await?;
    anyhow::ensure!(trouble == "its CPUs (all) are those of no node", "{trouble}");
    allocator.end().await
}
