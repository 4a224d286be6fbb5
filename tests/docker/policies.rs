//! The other policies on real containers, and whether their recorded frames replay.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::{HostConfig, RestartPolicy, RestartPolicyNameEnum};
use paceline_policy::limiter::LEAST_CHANGE;
use paceline_system_tests::{Allocator, Bed, Job, json_lines, until};
use serde_json::Value;

use crate::flowcon::{QUICK, all_cpus, ensure_unlimited, flat, flat_and_growing, growing};

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
    let (asked, answered) = (frames.len(), decisions.len());
    anyhow::ensure!(asked == answered && asked >= 3, "{asked} frames, {answered} decisions");
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

/// Waits until enough frames are recorded for [`ensure_replays`].
pub(crate) async fn until_recorded(frames: &Path) -> anyhow::Result<()> {
    until("there are frames", || async {
        Ok(json_lines(frames).ok().filter(|frames| frames.len() >= 6).map(drop))
    })
    .await
}

/// Whether the engine has `share` of the machine for a container.
async fn has(bed: &Bed, name: &str, share: f64) -> anyhow::Result<Option<()>> {
    let part = part(bed, name).await?;
    Ok(((part - share).abs() < 0.005).then_some(()))
}

/// What the engine has for a container, as a fraction of the machine; 0 is no limit.
async fn part(bed: &Bed, name: &str) -> anyhow::Result<f64> {
    let all = all_cpus(bed).await?;
    let nano = bed.limits(name).await?.host.nano_cpus;
    Ok(f64::from(u32::try_from(nano / 1_000_000)?) / f64::from(u32::try_from(all / 1_000_000)?))
}

pub(crate) async fn flowcon_replays_what_it_recorded(bed: Arc<Bed>) -> anyhow::Result<()> {
    let flat = flat_and_growing(&bed).await?;
    let frames = bed.file("frames.jsonl");
    let (policy, _) = QUICK.split_at(6);
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&bed, &[&QUICK[..], &["--record", &record]].concat())?;
    until("the flat job is cut", || async { has(&bed, &flat, 0.25).await }).await?;
    until_recorded(&frames).await?;
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
    let (acceptable, _) = tokio::try_join!(bed.start(acceptable), bed.start(greedy(growing())))?;
    let frames = bed.file("frames.jsonl");
    // However little of the machine others leave to these jobs, none of it counts as unused.
    let policy = ["--policy", "tradl", "--param", "interval=0.5", "--param", "alpha=0"];
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
    until_recorded(&frames).await?;
    allocator.end().await?;
    anyhow::ensure!(!bed.runs(&done).await?, "it was started again");
    ensure_unlimited(&bed, &acceptable).await?;
    ensure_replays(&policy, &frames).await
}

pub(crate) async fn dqoes_cuts_what_is_faster_than_asked(bed: Arc<Bed>) -> anyhow::Result<()> {
    // A batch takes milliseconds: one job is asked for ten seconds, the other for a microsecond.
    let slow = Job { labels: vec![("paceline.batch-latency", "10")], ..greedy(flat()) };
    let quick = Job { labels: vec![("paceline.batch-latency", "0.000001")], ..greedy(growing()) };
    let (slow, quick) = tokio::try_join!(bed.start(slow), bed.start(quick))?;
    let frames = bed.file("frames.jsonl");
    let policy = ["--policy", "dqoes", "--param", "interval=0.5", "--param", "beta=8"];
    let quota = ["--enforcement", "quota", "--record"];
    let record = frames.to_string_lossy();
    let words = [&policy[..], &quota, &[&record]].concat();
    let allocator = Allocator::run(&bed, &words)?;
    // The floor of two jobs: 1/(4n). Where others keep the machine busy it comes near in small steps, the
    // last of which may not be worth a write.
    let floor = 0.1245..0.125 + LEAST_CHANGE;
    until("the job with time to spare is cut", || async {
        Ok(floor.contains(&part(&bed, &slow).await?).then_some(()))
    })
    .await?;
    ensure_unlimited(&bed, &quick).await.context("the late job was cut")?;
    until_recorded(&frames).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &slow).await?;
    ensure_replays(&policy, &frames).await
}

/// What was used since the look before, as fractions of the machine.
#[derive(Clone, Copy, Debug)]
struct Look {
    unix: f64,
    all: f64,
    flat: f64,
    growing: f64,
    /// The flat job's limit.
    limit: f64,
}

/// The looks of the samples that tell what all used.
fn looks(samples: &[Value]) -> Vec<Look> {
    let of = |sample: &Value| {
        let jobs = sample.get("jobs")?.as_array()?;
        let of = |id: &str, what: &str| {
            let job = jobs.iter().find(|job| job.get("id").and_then(Value::as_str) == Some(id))?;
            job.get(what)?.as_f64()
        };
        Some(Look {
            unix: sample.get("unix")?.as_f64()?,
            all: sample.pointer("/node/cpu")?.as_f64()?,
            flat: of("flat", "cpu")?,
            growing: of("growing", "cpu")?,
            limit: of("flat", "limit")?,
        })
    };
    samples.iter().filter_map(of).collect()
}

/// The whole lines that there are so far: the last one may be half written.
fn looks_so_far(samples: &Path) -> anyhow::Result<Vec<Look>> {
    let text = std::fs::read_to_string(samples)?;
    let whole: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(looks(&whole))
}

pub(crate) async fn what_a_job_leaves_unused_is_lent_and_taken_back(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    // One job is cut to a quarter and could use all; the other sleeps until it is woken.
    let flat = bed.start(greedy(flat())).await?;
    let host = HostConfig { binds: Some(vec![bed.bind()]), ..HostConfig::default() };
    let args = vec!["--half-life", "4000", "--hold", "/bed/wake"];
    let sleeper = bed.start(greedy(Job { args, host, ..growing() })).await?;
    let samples = bed.file("samples.jsonl");
    let record = samples.to_string_lossy();
    let words = ["--policy", "flowcon", "--param", "interval=1", "--samples", &record];
    let allocator = Allocator::run(&bed, &words)?;
    // It is cut to a quarter, and lent the rest.
    allocator.says(&["job=flat", "its own 0.250", "others leave unused"]).await?;
    until("it has most of it", || async { Ok((part(&bed, &flat).await? > 0.75).then_some(())) })
        .await?;
    let lent = looks_so_far(&samples)?.len();
    let look =
        until("two more looks", || async { Ok(looks_so_far(&samples)?.get(lent + 1).copied()) })
            .await?;
    // It has most of the machine; or others leave it less, and its limit has no part in that.
    let is_free = look.flat >= 0.75 || (look.limit > 0.25 && look.flat < 0.95 * look.limit);
    anyhow::ensure!(
        look.all >= 0.9 && is_free,
        "two looks after it was lent the rest: {look:?}: {}",
        allocator.said()
    );
    std::fs::write(bed.file("wake"), "")?;
    let woke = until("the sleeper wakes", || async {
        let log = bed.log(&sleeper).await?;
        let line = log.lines().find(|line| line.starts_with("awake"));
        Ok(line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok()))
    })
    .await?;
    // Within a second it has its share, which is what the kernel gives to two who both want all. A look
    // covers the time since the previous one, which is more than a second where one was missed.
    let look = until("the sleeper has what it wants", || async {
        let looks = looks_so_far(&samples)?;
        let mut pairs = looks.iter().zip(looks.iter().skip(1));
        Ok(pairs.find(|(before, _)| before.unix >= woke + 1.0).map(|(_, look)| *look))
    })
    .await?;
    let even = look.growing >= 0.8 * look.flat && look.all >= 0.9;
    anyhow::ensure!(even, "a second after it woke: {look:?}");
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await
}
