//! Compares the recorded frames with what really happened.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::StreamExt;
use paceline_system_tests::{Allocator, Job, TestEnv, json_lines, until};
use serde_json::Value;

use crate::flowcon::all_cpus;

/// Consecutive frames that are compared.
const FRAMES: usize = 8;
/// How far from its frame, in seconds, the job may have logged the last step in the frame, or the
/// first step after it. An endpoint reports at most once a second, a job under a quota answers
/// late, and a line may be printed late. The values in a frame are compared exactly all the same.
const NEAR: f64 = 2.5;
const DAY: f64 = 86_400.0;

/// One line of the toy job's log.
struct Step {
    unix: f64,
    loss: f64,
}

fn steps(log: &str) -> anyhow::Result<Vec<Step>> {
    let step = |line: &str| -> anyhow::Result<Step> {
        let mut words = line.split(' ').skip(1).map(str::parse);
        let mut next = || words.next().context("a log line has three words");
        Ok(Step { unix: next()??, loss: next()?? })
    };
    log.lines().map(step).collect()
}

fn number(value: &Value, path: &str) -> anyhow::Result<f64> {
    value.pointer(path).and_then(Value::as_f64).with_context(|| format!("{path} in {value}"))
}

/// One reading of a container's CPU time by the engine.
#[derive(Clone, Copy)]
struct Reading {
    /// In seconds of the day.
    at: f64,
    cpu_seconds: f64,
}

/// The engine's readings of a container, until they are `enough`.
async fn by_the_engine(
    env: &TestEnv,
    name: &str,
    enough: impl Fn(&[Reading]) -> anyhow::Result<bool>,
) -> anyhow::Result<Vec<Reading>> {
    let options = StatsOptionsBuilder::default().stream(true).build();
    let mut stream = std::pin::pin!(env.docker().stats(name, Some(options)));
    let mut readings = Vec::new();
    while !enough(&readings)? {
        let stats = stream.next().await.context("the statistics ended")??;
        let at = seconds(&stats.read.context("no time")?)?;
        let cpu = stats.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage);
        let cpu_seconds = paceline_policy::unit::counter(cpu.context("no CPU time")?) / 1e9;
        readings.push(Reading { at, cpu_seconds });
    }
    Ok(readings)
}

/// The seconds of the day of a stamp such as `2026-11-21T12:16:16.25Z`.
fn seconds(stamp: &str) -> anyhow::Result<f64> {
    let time = stamp.split_once('T').context("a stamp")?.1.trim_end_matches('Z');
    time.split(':').try_fold(0.0, |sum, part| Ok(sum * 60.0 + part.parse::<f64>()?))
}

/// Seconds from one time of day to another one near it.
fn from_to(from: f64, to: f64) -> f64 {
    (to - from + DAY / 2.0).rem_euclid(DAY) - DAY / 2.0
}

/// The CPU time at a moment between two readings.
fn cpu_at(readings: &[Reading], unix: f64) -> Option<f64> {
    readings.windows(2).find_map(|pair| {
        let [before, after] = pair else { return None };
        let (since, of) = (from_to(before.at, unix), from_to(before.at, after.at));
        let within = since >= 0.0 && since <= of && of > 0.0;
        let used = after.cpu_seconds - before.cpu_seconds;
        within.then(|| before.cpu_seconds + used * since / of)
    })
}

pub(crate) async fn frames_agree_with_job_log_and_engine_statistics(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let all = all_cpus(&env).await?;
    let cpus = f64::from(u32::try_from(all / 1_000_000_000)?);
    // Held to a quarter of the machine, and wanting more: its use is steady.
    let host = HostConfig { nano_cpus: Some(all / 4), ..HostConfig::default() };
    let args = vec!["--half-life", "2000", "--burners", "64", "--work", "20000"];
    let job = env.start(Job { name: "job", args, host, ..Job::default() }).await?;
    let (frames, samples) = (env.file("frames.jsonl"), env.file("samples.jsonl"));
    let mut words = vec!["--policy", "none", "--param", "interval=0.5", "--dry-run"];
    let paths = [frames.to_string_lossy(), samples.to_string_lossy()];
    words.extend(["--record", &paths[0], "--samples", &paths[1]]);
    let allocator = Allocator::run(&env, &words)?;
    let has_loss = |frame: &Value| number(frame, "/jobs/0/loss").is_ok();
    until("there is a loss", || async { Ok(so_far(&frames).iter().any(has_loss).then_some(())) })
        .await?;
    // On a busy machine the job makes no step in some frames, and the engine's readings may begin or
    // come late: only both together show how many frames can be compared.
    let enough = |readings: &[Reading]| {
        let (frames, samples) = (so_far(&frames), so_far(&samples));
        if samples.is_empty() {
            return anyhow::Ok(false);
        }
        let compared = uses(&frames, epoch(&samples)?, readings, cpus)?.len();
        let with_loss = frames.iter().filter(|frame| has_loss(frame)).count();
        anyhow::Ok(compared >= FRAMES && with_loss >= FRAMES)
    };
    let readings = by_the_engine(&env, &job, enough).await?;
    allocator.end().await?;
    let (frames, epoch) = (json_lines(&frames)?, epoch(&json_lines(&samples)?)?);
    ensure_use(&frames, epoch, &readings, cpus)?;
    ensure_losses(&frames, epoch, &steps(&env.log(&job).await?)?)
}

/// The complete lines so far: the last one may be half written.
fn so_far(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// When a run's own time began, in Unix seconds: the samples have both times.
fn epoch(samples: &[Value]) -> anyhow::Result<f64> {
    let first = samples.first().context("no samples")?;
    Ok(number(first, "/unix")? - number(first, "/t")?)
}

/// CPU used from one frame to the next, in seconds of the whole machine.
#[derive(Clone, Copy)]
struct Use {
    seconds: f64,
    /// By the job, as the frame says.
    job: f64,
    /// By the job, as the engine says.
    by_engine: f64,
    /// By everything on the machine, as the frame says.
    all: f64,
}

/// The CPU use of each frame for which the engine has readings.
fn uses(frames: &[Value], epoch: f64, readings: &[Reading], cpus: f64) -> anyhow::Result<Vec<Use>> {
    let mut uses = Vec::new();
    for (before, frame) in frames.iter().zip(frames.iter().skip(1)) {
        let Ok(share) = number(frame, "/jobs/0/usage/cpu") else { continue };
        let (from, to) = (number(before, "/t")?, number(frame, "/t")?);
        let at = |t: f64| cpu_at(readings, t + epoch);
        let Some((began, ended)) = at(from).zip(at(to)) else { continue };
        let seconds = to - from;
        let all = number(frame, "/nodes/0/usage/cpu")? * seconds;
        uses.push(Use { seconds, job: share * seconds, by_engine: (ended - began) / cpus, all });
    }
    Ok(uses)
}

/// Fails unless the frames' CPU use agrees with the engine's readings and with the limit.
fn ensure_use(frames: &[Value], epoch: f64, readings: &[Reading], cpus: f64) -> anyhow::Result<()> {
    let uses = uses(frames, epoch, readings, cpus)?;
    anyhow::ensure!(uses.len() >= FRAMES, "{} frames have a use", uses.len());
    // Summed over all frames: within a few hundredths of a second, a job under a quota runs at full
    // speed or not at all.
    let sum = |of: fn(&Use) -> f64| uses.iter().map(of).sum::<f64>();
    let seconds = sum(|one| one.seconds);
    let (mean, readings) = (sum(|one| one.job) / seconds, sum(|one| one.by_engine) / seconds);
    let all = sum(|one| one.all) / seconds;
    anyhow::ensure!(
        (mean / readings - 1.0).abs() < 0.1,
        "frames say {mean}, the engine {readings}"
    );
    // It may have less only if the machine is full.
    let has_its_limit = mean / 0.25 < 1.1 && (mean / 0.25 > 0.9 || all > 0.9);
    anyhow::ensure!(has_its_limit, "the limit is 0.25, the frames say {mean} of {all}");
    Ok(())
}

/// Fails unless each frame's loss is the mean of consecutive steps in the job's log, at about the
/// frame's time, and no step is left out.
fn ensure_losses(frames: &[Value], epoch: f64, log: &[Step]) -> anyhow::Result<()> {
    let mut losses = Vec::new();
    for frame in frames {
        if let Ok(loss) = number(frame, "/jobs/0/loss") {
            losses.push((number(frame, "/t")? + epoch, loss));
        }
    }
    anyhow::ensure!(losses.len() >= FRAMES, "only {} frames have a loss", losses.len());
    // The number of steps that the job had made when it was first read is unknown.
    let agrees = (0..log.len()).any(|from| {
        let ends = losses.iter().try_fold(from, |from, (at, loss)| {
            let end = from + end_of(log.get(from..)?, *loss)?;
            let last = log.get(end.checked_sub(1)?)?;
            let is_late = log.get(end).is_some_and(|next| next.unix < at - NEAR);
            (last.unix < at + NEAR && !is_late).then_some(end)
        });
        ends.is_some()
    });
    anyhow::ensure!(
        agrees,
        "losses of frames at their times, {losses:?}, are not those of the log"
    );
    Ok(())
}

/// How many of the first steps have this mean loss. The loss falls with every step.
fn end_of(steps: &[Step], mean: f64) -> Option<usize> {
    let mut sum = 0.0;
    for (count, step) in (1_u32..).zip(steps) {
        sum += step.loss;
        let so_far = sum / f64::from(count);
        if (so_far / mean - 1.0).abs() < 1e-9 {
            return usize::try_from(count).ok();
        }
        if so_far < mean {
            return None;
        }
    }
    None
}
