//! Jobs that `SpeCon` moves from one node to another. Each node is one CPU of the machine.

use std::sync::Arc;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::InspectContainerOptions;
use paceline_api::clock::Clock;
use paceline_system_tests::{Allocator, Job, TestEnv, until};
use rustix::process::Signal;
use serde_json::Value;

use crate::flowcon::{flat, growing};
use crate::orders::view;
use crate::policies::replay;

/// `SpeCon`, quick enough for a test: a job with a constant loss has converged after a second.
pub(crate) const SPECON: [&str; 6] =
    ["--policy", "specon", "--param", "interval=0.25", "--param", "alpha=0.000001"];

/// Two nodes of one CPU each, between which a job is moved once.
const NODES: [&str; 6] = ["--node", "a=0", "--node", "b=1", "--moves", "1"];

/// A job on the CPU of node a whose folder of checkpoints outlives it.
fn on_a(env: &TestEnv, job: Job) -> Job {
    let host = HostConfig {
        cpuset_cpus: Some("0".to_owned()),
        binds: Some(vec![format!("{}:/ckpt", env.folder().display())]),
        ..job.host
    };
    Job { host, ..job }
}

/// A job that converges at once and can be moved. `resume` says what it does with a checkpoint.
fn movable(env: &TestEnv, resume: &'static str) -> Job {
    let args = ["--checkpoint", "/ckpt/saved", "--trace", "/ckpt/trace", "--resume", resume];
    let labels = vec![("paceline.checkpoint", "/ckpt")];
    on_a(env, Job { args: args.to_vec(), labels, ..flat() })
}

/// Starts a movable job and a growing one on node a; returns the movable one's name.
pub(crate) async fn two_on_a(env: &TestEnv, resume: &'static str) -> anyhow::Result<String> {
    let movable = env.start(movable(env, resume));
    let (_, movable) = tokio::try_join!(env.start(on_a(env, growing())), movable)?;
    Ok(movable)
}

/// What a move changes of a container.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) cpus: String,
    pub(crate) runs: bool,
}

pub(crate) async fn place(env: &TestEnv, name: &str) -> anyhow::Result<Place> {
    let found = env.docker().inspect_container(name, None::<InspectContainerOptions>).await?;
    let state = found.state.unwrap_or_default();
    let cpus = found.host_config.and_then(|host| host.cpuset_cpus).unwrap_or_default();
    let runs = state.running == Some(true) && state.paused == Some(false);
    Ok(Place { id: found.id.unwrap_or_default(), cpus, runs })
}

/// The steps of each process of the movable job, in the order of their turns. A process that makes
/// steps again after another one is listed again.
pub(crate) fn processes(env: &TestEnv) -> anyhow::Result<Vec<Vec<u64>>> {
    Ok(turns(env)?.into_iter().map(|(_, steps)| steps).collect())
}

/// The steps of the process at the source and of that at the target, each of which takes one turn.
pub(crate) fn source_and_target(env: &TestEnv) -> anyhow::Result<(Vec<u64>, Vec<u64>)> {
    let turns = turns(env)?;
    let [(_, source), (_, target)] = turns.as_slice() else {
        let ends = |(id, steps): &(String, Vec<u64>)| {
            format!("{id} {:?} {:?}", steps.first(), steps.last())
        };
        anyhow::bail!("not two turns: {:?}", turns.iter().map(ends).collect::<Vec<_>>());
    };
    Ok((source.clone(), target.clone()))
}

/// No process of the job may make a step between two steps of another one. Each attempt to move
/// that fails starts a process that takes one turn, and the first process continues after it: so
/// every process but the first takes one turn only, however often the move is attempted.
pub(crate) fn ensure_one_at_a_time(env: &TestEnv) -> anyhow::Result<()> {
    let turns = turns(env)?;
    let ids: Vec<&str> = turns.iter().map(|(process, _)| process.as_str()).collect();
    for (at, id) in ids.iter().enumerate().skip(1) {
        let again = ids.iter().take(at).any(|before| before == id);
        anyhow::ensure!(!again || ids.first() == Some(id), "process {id} continues: {ids:?}");
    }
    Ok(())
}

/// Each turn: the process that takes it, and its steps.
fn turns(env: &TestEnv) -> anyhow::Result<Vec<(String, Vec<u64>)>> {
    let text = std::fs::read_to_string(env.file("trace"))?;
    let mut runs: Vec<(String, Vec<u64>)> = Vec::new();
    // A line that is still being written has no end yet.
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (process, step) = line.split_once(' ').context("a line has two words")?;
        match runs.last_mut() {
            Some((last, steps)) if *last == process => steps.push(step.parse()?),
            _ => runs.push((process.to_owned(), vec![step.parse()?])),
        }
    }
    Ok(runs)
}

/// Waits until the movable job has made more steps than now.
pub(crate) async fn ensure_continues(env: &TestEnv) -> anyhow::Result<()> {
    let steps = |env: &TestEnv| anyhow::Ok(processes(env)?.iter().map(Vec::len).sum::<usize>());
    let now = steps(env)?;
    until("the job continues", || async { Ok((steps(env)? > now + 10).then_some(())) }).await
}

/// The entries of one kind in the audit log.
fn audited(what: &str, env: &TestEnv) -> anyhow::Result<Vec<Value>> {
    let entries = paceline_system_tests::json_lines(&Allocator::state(env).join("audit.jsonl"))?;
    let kind = |entry: &Value| entry.get("what").and_then(Value::as_str) == Some(what);
    Ok(entries.into_iter().filter(kind).collect())
}

pub(crate) async fn converged_job_moves_and_resumes_from_its_checkpoint(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let name = two_on_a(&env, "go-on").await?;
    let before = place(&env, &name).await?;
    let frames = env.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let words = [&SPECON[..], &NODES, &["--record", &record]].concat();
    let clock = Clock::start();
    let allocator = Allocator::run(&env, &words)?;
    allocator.says(&["job=flat", "has moved from a to b"]).await?;
    until("the job is managed where it is now", || async {
        let view = view(&env, "flat").await.ok();
        Ok(view.filter(|view| view.node.as_deref() == Some("b") && view.cpu.is_some()))
    })
    .await?;
    ensure_continues(&env).await?;
    let after = place(&env, &name).await?;
    anyhow::ensure!((after.cpus.as_str(), after.runs) == ("1", true), "{after:?}");
    anyhow::ensure!(after.id != before.id && env.ids().await?.len() == 2, "{before:?} {after:?}");
    allocator.end().await?;
    // The process at the source has made no step since the one at the target began.
    let (source, target) = source_and_target(&env)?;
    let (last, first) = (source.last().context("steps")?, target.first().context("steps")?);
    anyhow::ensure!(*first <= last + 1 && *first > 1, "from {last} to {first}");
    let moved = audited("moved", &env)?;
    let seconds = moved.first().and_then(|entry| entry.get("seconds")?.as_f64());
    let until_now = 0.0..clock.now().seconds();
    let took_some = seconds.is_some_and(|seconds| seconds > 0.0 && until_now.contains(&seconds));
    anyhow::ensure!(moved.len() == 1 && took_some, "{moved:?}");
    let decided = audited("decided", &env)?;
    let moves_flat = |entry: &Value| {
        entry.get("job") == Some(&"flat".into()) && entry.get("moves_to") == Some(&"b".into())
    };
    anyhow::ensure!(decided.iter().any(moves_flat), "no decision says that it moves");
    // Replaying the record gives the same decision.
    let decisions = replay(&SPECON, &frames).await?;
    let moves = decisions.iter().filter_map(|decision| decision.get("migrate")?.as_array());
    let moves: Vec<_> = moves.flatten().collect();
    let of_flat = |one: &&Value| one.get("job").and_then(Value::as_str) == Some("flat");
    anyhow::ensure!(moves.first().is_some_and(of_flat), "{moves:?}");
    Ok(())
}

pub(crate) async fn job_that_cannot_resume_at_target_stays(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    for (resume, within, words) in [
        ("exit", "60", "ended before its first report, with exit code 1"),
        ("hang", "3", "the job has not reported from the target within 3 s"),
        ("restart", "60", "it does not continue from its checkpoint"),
    ] {
        let name = two_on_a(&env, resume).await?;
        let before = place(&env, &name).await?;
        let within = ["--move-within", within];
        let allocator = Allocator::run(&env, &[&SPECON[..], &NODES, &within].concat())?;
        allocator.says(&["job=flat", "it stays on a", words]).await?;
        ensure_continues(&env).await.context(resume)?;
        anyhow::ensure!(place(&env, &name).await? == before, "{resume}: it is another container");
        anyhow::ensure!(env.ids().await?.len() == 2, "{resume}: there is one too many");
        let managed = until("it is managed again", || async {
            let view = view(&env, "flat").await.ok();
            Ok(view.filter(|view| view.node.as_deref() == Some("a") && view.class.is_some()))
        });
        managed.await.context(resume)?;
        allocator.end().await?;
        // Its steps continue without a gap.
        let runs = processes(&env)?;
        let steps: Vec<u64> = match runs.as_slice() {
            [only] => only.clone(),
            [first, _, last] if resume == "restart" => [first.clone(), last.clone()].concat(),
            _ => anyhow::bail!("{resume}: {} processes", runs.len()),
        };
        let whole = steps.windows(2).all(|two| matches!(two, [one, next] if one + 1 == *next));
        anyhow::ensure!(whole, "{resume}: steps were lost");
        env.clear().await?;
        forget(&env)?;
    }
    Ok(())
}

/// Removes the files of the movable job.
pub(crate) fn forget(env: &TestEnv) -> anyhow::Result<()> {
    for file in ["saved", "trace"] {
        match std::fs::remove_file(env.file(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) async fn an_allocator_that_ends_leaves_a_job_where_it_was(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let name = two_on_a(&env, "hang").await?;
    let before = place(&env, &name).await?;
    let mut allocator = Allocator::run(&env, &[&SPECON[..], &NODES].concat())?;
    until("the job is frozen", || async { Ok((!place(&env, &name).await?.runs).then_some(())) })
        .await?;
    allocator.signal(Signal::TERM)?;
    let status = allocator.ended().await?;
    anyhow::ensure!(status.success(), "{status}: {}", allocator.said());
    anyhow::ensure!(place(&env, &name).await? == before, "{}", allocator.said());
    anyhow::ensure!(env.ids().await?.len() == 2, "there is one too many");
    ensure_continues(&env).await
}

pub(crate) async fn a_free_move_changes_the_cpus_of_a_job_that_runs_on(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let name = two_on_a(&env, "exit").await?;
    let before = place(&env, &name).await?;
    let free = ["--migration", "cpuset"];
    let allocator = Allocator::run(&env, &[&SPECON[..], &NODES, &free].concat())?;
    allocator.says(&["job=flat", "has moved from a to b"]).await?;
    until("the job is on its new node", || async {
        let view = view(&env, "flat").await.ok();
        Ok(view.filter(|view| view.node.as_deref() == Some("b") && view.class.is_some()))
    })
    .await?;
    ensure_continues(&env).await?;
    let after = place(&env, &name).await?;
    anyhow::ensure!(after == Place { cpus: "1".to_owned(), ..before }, "{after:?}");
    anyhow::ensure!(processes(&env)?.len() == 1, "it was restarted");
    allocator.end().await
}

pub(crate) async fn unmovable_job_is_reported_and_stays(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let outside = Job { name: "outside", ..flat() };
    let (_, name, _) = tokio::try_join!(
        env.start(on_a(&env, growing())),
        env.start(on_a(&env, flat())),
        env.start(outside),
    )?;
    let before = place(&env, &name).await?;
    let allocator = Allocator::run(&env, &[&SPECON[..], &NODES].concat())?;
    let words = ["job=flat", "it stays on a", "no label paceline.checkpoint"];
    allocator.says(&words).await?;
    anyhow::ensure!(place(&env, &name).await? == before, "it was touched");
    let unmovable = until("it is shown why", || async { Ok(view(&env, "flat").await?.unmovable) });
    anyhow::ensure!(unmovable.await?.contains("paceline.checkpoint"));
    let trouble = until("the other's trouble is shown", || async {
        Ok(view(&env, "outside").await?.trouble)
    });
    let trouble = trouble.await?;
    anyhow::ensure!(trouble == "its CPUs (all) do not match any node", "{trouble}");
    allocator.end().await
}
