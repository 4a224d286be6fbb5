//! The other policies on real containers, and whether their recorded frames replay.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::{HostConfig, RestartPolicy, RestartPolicyNameEnum};
use paceline_system_tests::{Allocator, Bed, Job, json_lines, until};
use serde_json::Value;

use crate::flowcon::{QUICK, all_cpus, ensure_unlimited, flat, growing};

/// Two threads that never pause: a job that takes all that it is given.
fn greedy(job: Job) -> Job {
    let mut args = job.args;
    args.extend(["--burners", "1"]);
    Job { args, ..job }
}

/// What a policy says to recorded frames, by `paceline replay`.
pub(crate) async fn replay(policy: &[&str], frames: &Path) -> anyhow::Result<Vec<Value>> {
    let mut command = Allocator::command(&["replay"])?;
    let output = command.args(policy).arg(frames).output().await?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The frame after a decision tells what the live policy chose: it must be what the replay says.
pub(crate) async fn ensure_replays(policy: &[&str], frames: &Path) -> anyhow::Result<()> {
    let decisions = replay(policy, frames).await?;
    let frames = json_lines(frames)?;
    anyhow::ensure!(frames.len() == decisions.len() && frames.len() >= 3, "{}", frames.len());
    let mut compared = 0;
    for (decision, next) in decisions.iter().zip(frames.iter().skip(1)) {
        let jobs = next.get("jobs").and_then(Value::as_array).context("a frame has jobs")?;
        let limits = decision.get("limits").context("a decision has limits")?;
        for job in jobs {
            let id = job.get("id").and_then(Value::as_str).context("a job has an id")?;
            // A job that came with this frame was in no decision before.
            let Some(share) = limits.get(id) else { continue };
            let chosen = job.pointer("/limit/cpu");
            anyhow::ensure!(chosen == Some(share), "{id}: {job} after {decision}");
            compared += 1;
        }
    }
    anyhow::ensure!(compared >= 4, "only {compared} choices could be compared");
    Ok(())
}

/// Whether the engine has `share` of the machine for a container.
async fn has(bed: &Bed, name: &str, share: f64) -> anyhow::Result<Option<()>> {
    let all = all_cpus(bed).await?;
    let nano = bed.limits(name).await?.host.nano_cpus;
    let part =
        f64::from(u32::try_from(nano / 1_000_000)?) / f64::from(u32::try_from(all / 1_000_000)?);
    Ok(((part - share).abs() < 0.005).then_some(()))
}

pub(crate) async fn flowcon_replays_what_it_recorded(bed: Arc<Bed>) -> anyhow::Result<()> {
    let flat = bed.start(flat()).await?;
    bed.start(growing()).await?;
    let frames = bed.file("frames.jsonl");
    let (policy, _) = QUICK.split_at(6);
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&bed, &[&QUICK[..], &["--record", &record]].concat())?;
    until("the flat job is cut", || async { has(&bed, &flat, 0.25).await }).await?;
    until("there are frames", || async {
        Ok(json_lines(&frames).ok().filter(|frames| frames.len() >= 6))
    })
    .await?;
    allocator.end().await?;
    ensure_replays(policy, &frames).await
}

pub(crate) async fn tradl_caps_what_is_acceptable_and_ends_what_is_done(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    // Its loss of 4 is acceptable from the start; that of the other never is.
    let acceptable = Job {
        labels: vec![("paceline.acceptable", "5"), ("paceline.objective", "1")],
        ..greedy(flat())
    };
    let acceptable = bed.start(acceptable).await?;
    bed.start(greedy(growing())).await?;
    let frames = bed.file("frames.jsonl");
    // Where the host of a virtual machine takes CPU time for others, the jobs of a busy machine use
    // less than all of it.
    let policy = ["--policy", "tradl", "--param", "interval=2", "--param", "alpha=0.6"];
    let quota = ["--enforcement", "quota", "--record"];
    let record = frames.to_string_lossy();
    let words = [&policy[..], &quota, &[&record]].concat();
    let allocator = Allocator::run(&bed, &words)?;
    // Two jobs share the machine evenly: 1/(n + 1). On a noisy machine it may have used a little more
    // than its half when it was first seen: 1/(2n), and for good.
    until("the acceptable job is capped", || async {
        Ok(has(&bed, &acceptable, 1.0 / 3.0).await?.or(has(&bed, &acceptable, 0.25).await?))
    })
    .await?;
    // A third job is at its objective and may be ended, for good.
    let done = Job {
        name: "done",
        labels: vec![("paceline.objective", "4"), ("paceline.terminate", "true")],
        host: HostConfig {
            init: Some(true),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::ALWAYS),
                maximum_retry_count: None,
            }),
            ..HostConfig::default()
        },
        ..Job::default()
    };
    let done = bed.start(done).await?;
    until("the job at its objective is ended", || async {
        Ok((!bed.runs(&done).await?).then_some(()))
    })
    .await?;
    allocator.end().await?;
    anyhow::ensure!(!bed.runs(&done).await?, "it was started again");
    ensure_unlimited(&bed, &acceptable).await?;
    ensure_replays(&policy, &frames).await
}

pub(crate) async fn dqoes_cuts_what_is_faster_than_asked(bed: Arc<Bed>) -> anyhow::Result<()> {
    // A batch takes milliseconds: one job is asked for ten seconds, the other for a microsecond.
    let slow = Job { labels: vec![("paceline.batch-latency", "10")], ..greedy(flat()) };
    let quick = Job { labels: vec![("paceline.batch-latency", "0.000001")], ..greedy(growing()) };
    let slow = bed.start(slow).await?;
    let quick = bed.start(quick).await?;
    let frames = bed.file("frames.jsonl");
    let policy = ["--policy", "dqoes", "--param", "interval=2", "--param", "beta=1"];
    let quota = ["--enforcement", "quota", "--record"];
    let record = frames.to_string_lossy();
    let words = [&policy[..], &quota, &[&record]].concat();
    let allocator = Allocator::run(&bed, &words)?;
    // The floor of two jobs: 1/(4n).
    until("the job with time to spare is cut", || async { has(&bed, &slow, 0.125).await }).await?;
    ensure_unlimited(&bed, &quick).await.context("the late job was cut")?;
    allocator.end().await?;
    ensure_unlimited(&bed, &slow).await?;
    ensure_replays(&policy, &frames).await
}

/// CPU that a job used at each look, as fractions of the machine, from the samples.
fn uses(samples: &[Value], id: &str) -> Vec<(f64, f64)> {
    let of = |sample: &Value| {
        let mut jobs = sample.get("jobs")?.as_array()?.iter();
        let job = jobs.find(|job| job.get("id").and_then(Value::as_str) == Some(id))?;
        Some((sample.get("unix")?.as_f64()?, job.get("cpu")?.as_f64()?))
    };
    samples.iter().filter_map(of).collect()
}

pub(crate) async fn what_a_job_leaves_unused_is_lent_and_taken_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    // One job is cut to a quarter and could use all; the other sleeps for long, then wakes.
    let flat = bed.start(greedy(flat())).await?;
    let sleeper = Job { args: vec!["--half-life", "4000", "--sleep", "25"], ..growing() };
    let sleeper = bed.start(greedy(sleeper)).await?;
    let samples = bed.file("samples.jsonl");
    let record = samples.to_string_lossy();
    let words = ["--policy", "flowcon", "--param", "interval=2", "--samples", &record];
    let allocator = Allocator::run(&bed, &words)?;
    // It is cut to a quarter, and lent the rest.
    allocator.says(&["job=flat", "its own 0.250", "others leave unused"]).await?;
    let lent = json_lines(&samples)?.len();
    let used = until("two more looks", || async {
        let samples = json_lines(&samples)?;
        Ok(uses(&samples, "flat").get(lent + 1).map(|(_, used)| *used))
    })
    .await?;
    anyhow::ensure!(
        used >= 0.9,
        "two looks after it was lent the rest it uses {used}: {}",
        allocator.said()
    );
    let woke = until("the sleeper wakes", || async {
        let log = bed.log(&sleeper).await?;
        let line = log.lines().find(|line| line.starts_with("awake"));
        Ok(line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok()))
    })
    .await?;
    // Within a second it has its share, which is what the kernel gives to two who both want all.
    until("the sleeper has what it wants", || async {
        let used = uses(&json_lines(&samples)?, "growing");
        Ok(used.into_iter().find(|(at, _)| *at >= woke + 2.0))
    })
    .await
    .and_then(|(_, used)| {
        anyhow::ensure!(used >= 0.45, "a second after it woke it has only {used}");
        Ok(())
    })?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}
