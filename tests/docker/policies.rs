//! The other policies on real containers, and the replay of their recorded frames.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::{HostConfig, RestartPolicy, RestartPolicyNameEnum};
use paceline_policy::limiter::MIN_CHANGE;
use paceline_system_tests::{Allocator, Job, TestEnv, json_lines, until};
use serde_json::Value;

use crate::flowcon::{QUICK, all_cpus, ensure_unlimited, flat, flat_and_growing, growing};

/// A job that uses all the CPU that it gets: two threads that never pause.
fn greedy(job: Job) -> Job {
    let mut args = job.args;
    args.extend(["--burners", "1"]);
    Job { args, ..job }
}

/// The decisions of a policy about recorded frames, from `paceline replay`.
pub(crate) async fn replay(policy: &[&str], frames: &Path) -> anyhow::Result<Vec<Value>> {
    let mut command = Allocator::command(&["replay"])?;
    let output = command.args(policy).arg(frames).output().await?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Fails unless the replay agrees with the live policy, whose choice is in the frame after each decision.
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
            // A job that first appears in this frame was in no earlier decision.
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

/// Returns `Some` if the limit of a container is `share` of the machine.
async fn has(env: &TestEnv, name: &str, share: f64) -> anyhow::Result<Option<()>> {
    let part = part(env, name).await?;
    Ok(((part - share).abs() < 0.005).then_some(()))
}

/// The limit in force for a container, as a fraction of the machine; 0 means no limit.
async fn part(env: &TestEnv, name: &str) -> anyhow::Result<f64> {
    let cpus = f64::from(u32::try_from(all_cpus(env).await? / 1_000_000_000)?);
    let quota = env.limits(name).await?.kernel.filter(|quota| quota.quota.is_some());
    Ok(quota.map_or(0.0, |quota| quota.share(cpus).get()))
}

pub(crate) async fn recorded_flowcon_run_is_replayed(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let flat = flat_and_growing(&env).await?;
    let frames = env.file("frames.jsonl");
    let (policy, _) = QUICK.split_at(6);
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&env, &[&QUICK[..], &["--record", &record]].concat())?;
    until("the flat job is cut", || async { has(&env, &flat, 0.25).await }).await?;
    until_recorded(&frames).await?;
    allocator.end().await?;
    ensure_replays(policy, &frames).await
}

pub(crate) async fn tradl_caps_acceptable_jobs_and_ends_finished_ones(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    // Its loss of 4 is acceptable from the start; that of the other never is.
    let acceptable = Job {
        labels: vec![("paceline.acceptable", "5"), ("paceline.objective", "1")],
        ..greedy(flat())
    };
    let (acceptable, _) = tokio::try_join!(env.start(acceptable), env.start(greedy(growing())))?;
    let frames = env.file("frames.jsonl");
    // With alpha 0 no CPU counts as unused, however busy the machine is.
    let policy = ["--policy", "tradl", "--param", "interval=0.5", "--param", "alpha=0"];
    let quota = ["--enforcement", "quota", "--record"];
    let record = frames.to_string_lossy();
    let words = [&policy[..], &quota, &[&record]].concat();
    let allocator = Allocator::run(&env, &words)?;
    // Two jobs share the machine evenly: 1/(n + 1). On a busy machine the job may have used a
    // little more than half at first: then its limit is 1/(2n) and stays there.
    until("the acceptable job is capped", || async {
        Ok(has(&env, &acceptable, 1.0 / 3.0).await?.or(has(&env, &acceptable, 0.25).await?))
    })
    .await?;
    // A third job is at its objective and may be ended. It must not be restarted.
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
    let done = env.start(done).await?;
    until("the job at its objective is ended", || async {
        Ok((!env.runs(&done).await?).then_some(()))
    })
    .await?;
    until_recorded(&frames).await?;
    allocator.end().await?;
    anyhow::ensure!(!env.runs(&done).await?, "it was started again");
    ensure_unlimited(&env, &acceptable).await?;
    ensure_replays(&policy, &frames).await
}

pub(crate) async fn dqoes_cuts_jobs_faster_than_their_target(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    // A batch takes milliseconds: one job's target is ten seconds, the other's a microsecond.
    let slow = Job { labels: vec![("paceline.batch-latency", "10")], ..greedy(flat()) };
    let quick = Job { labels: vec![("paceline.batch-latency", "0.000001")], ..greedy(growing()) };
    let (slow, quick) = tokio::try_join!(env.start(slow), env.start(quick))?;
    let frames = env.file("frames.jsonl");
    let policy = ["--policy", "dqoes", "--param", "interval=0.5", "--param", "beta=8"];
    let quota = ["--enforcement", "quota", "--record"];
    let record = frames.to_string_lossy();
    let words = [&policy[..], &quota, &[&record]].concat();
    let allocator = Allocator::run(&env, &words)?;
    // The floor of two jobs is 1/(4n). On a busy machine the limit nears it in small steps, the last
    // of which may be too small for a write.
    let floor = 0.1245..0.125 + MIN_CHANGE;
    until("the job with time to spare is cut", || async {
        Ok(floor.contains(&part(&env, &slow).await?).then_some(()))
    })
    .await?;
    ensure_unlimited(&env, &quick).await.context("the late job was cut")?;
    until_recorded(&frames).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &slow).await?;
    ensure_replays(&policy, &frames).await
}

/// In how many samples a job that wakes has its share. One is enough on a quiet machine.
const SAMPLES_TO_WAKE: usize = 4;

/// CPU used since the previous sample, as fractions of the machine.
#[derive(Clone, Copy, Debug)]
struct Look {
    unix: f64,
    all: f64,
    flat: f64,
    growing: f64,
    /// The flat job's limit.
    limit: f64,
}

/// The samples that have the use of all jobs.
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

/// The complete lines so far: the last one may be half written.
fn looks_so_far(samples: &Path) -> anyhow::Result<Vec<Look>> {
    let text = std::fs::read_to_string(samples)?;
    let whole: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(looks(&whole))
}

pub(crate) async fn unused_cpu_is_lent_and_taken_back(env: Arc<TestEnv>) -> anyhow::Result<()> {
    // One job is cut to a quarter and could use all CPUs; the other sleeps until it is woken.
    let flat = env.start(greedy(flat())).await?;
    let host = HostConfig { binds: Some(vec![env.bind()]), ..HostConfig::default() };
    let args = vec!["--half-life", "4000", "--hold", "/files/wake"];
    let sleeper = env.start(greedy(Job { args, host, ..growing() })).await?;
    let samples = env.file("samples.jsonl");
    let record = samples.to_string_lossy();
    let words = ["--policy", "flowcon", "--param", "interval=1", "--samples", &record];
    let allocator = Allocator::run(&env, &words)?;
    // It is cut to a quarter, and lent the rest.
    allocator.says(&["job=flat", "own share 0.250", "other jobs leave unused"]).await?;
    until("it has most of it", || async { Ok((part(&env, &flat).await? > 0.75).then_some(())) })
        .await?;
    let lent = looks_so_far(&samples)?.len();
    // It has more than its own quarter, and the machine is not idle. While others keep the job from what it
    // was lent, the loan ends for a while.
    let uses_the_loan = |look: &Look| look.all >= 0.9 && look.limit > 0.3;
    until("a sample in which it uses what it was lent", || async {
        Ok(looks_so_far(&samples)?.into_iter().skip(lent).find(uses_the_loan))
    })
    .await
    .with_context(|| allocator.said())?;
    std::fs::write(env.file("wake"), "")?;
    let woke = until("the sleeper wakes", || async {
        let log = env.log(&sleeper).await?;
        let line = log.lines().find(|line| line.starts_with("awake"));
        Ok(line.and_then(|line| line.split(' ').nth(1)?.parse::<f64>().ok()))
    })
    .await?;
    // Soon it has its share: half of what the two get, as the kernel splits CPU between jobs that both want
    // all. Beside other work on the machine, what a job gets in one sample is partly chance.
    let even = |look: &Look| look.growing >= 0.8 * look.flat && look.all >= 0.9;
    let looks = until("some samples since it woke", || async {
        let looks = looks_so_far(&samples)?;
        let since: Vec<Look> = looks.into_iter().filter(|look| look.unix > woke).collect();
        Ok((since.len() >= SAMPLES_TO_WAKE || since.iter().any(even)).then_some(since))
    })
    .await?;
    anyhow::ensure!(looks.iter().any(even), "since it woke: {looks:?}");
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await
}
