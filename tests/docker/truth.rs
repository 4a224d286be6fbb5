//! Whether what is recorded is what happened.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::StreamExt;
use paceline_system_tests::{Allocator, Bed, Job, json_lines, until};
use serde_json::Value;

use crate::flowcon::all_cpus;

/// How long the job is watched, in seconds, after the first frame.
const WATCHED: u64 = 8;

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

/// CPU time as the engine tells it, over `WATCHED` seconds, as a fraction of the machine.
async fn by_the_engine(bed: &Bed, name: &str, cpus: f64) -> anyhow::Result<f64> {
    let options = StatsOptionsBuilder::default().stream(true).build();
    let mut stream = std::pin::pin!(bed.docker().stats(name, Some(options)));
    let mut first = None;
    let until = tokio::time::Instant::now() + Duration::from_secs(WATCHED);
    loop {
        let stats = stream.next().await.context("the statistics ended")??;
        let at = stats.read.context("no time")?;
        let cpu = stats.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage);
        let cpu = paceline_policy::unit::counter(cpu.context("no CPU time")?) / 1e9;
        let at = seconds(&at)?;
        let (began, before) = *first.get_or_insert((at, cpu));
        if tokio::time::Instant::now() >= until {
            return Ok((cpu - before) / (at - began) / cpus);
        }
    }
}

/// The seconds of the day of a stamp such as `2026-11-21T12:16:16.25Z`.
fn seconds(stamp: &str) -> anyhow::Result<f64> {
    let time = stamp.split_once('T').context("a stamp")?.1.trim_end_matches('Z');
    time.split(':').try_fold(0.0, |sum, part| Ok(sum * 60.0 + part.parse::<f64>()?))
}

pub(crate) async fn frames_agree_with_the_jobs_own_log_and_the_engines_statistics(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let all = all_cpus(&bed).await?;
    let cpus = f64::from(u32::try_from(all / 1_000_000_000)?);
    // Held to a quarter of the machine, and wanting more: its use is steady.
    let host = HostConfig { nano_cpus: Some(all / 4), ..HostConfig::default() };
    let args = vec!["--half-life", "2000", "--burners", "64"];
    let job = bed.start(Job { name: "job", args, host, ..Job::default() }).await?;
    let (frames, samples) = (bed.file("frames.jsonl"), bed.file("samples.jsonl"));
    let mut words = vec!["--policy", "none", "--param", "interval=2", "--dry-run"];
    let paths = [frames.to_string_lossy(), samples.to_string_lossy()];
    words.extend(["--record", &paths[0], "--samples", &paths[1]]);
    let allocator = Allocator::run(&bed, &words)?;
    until("a frame is recorded", || async {
        Ok(json_lines(&frames).ok().filter(|frames| frames.len() >= 2))
    })
    .await?;
    let told = by_the_engine(&bed, &job, cpus).await?;
    allocator.end().await?;
    let (frames, samples) = (json_lines(&frames)?, json_lines(&samples)?);

    // By time: over a few hundredths of a second, a job under a quota runs at full speed or not at all.
    let (mut uses, mut used, mut seconds) = (0, 0.0, 0.0);
    for (before, frame) in frames.iter().zip(frames.iter().skip(1)) {
        let Ok(share) = number(frame, "/jobs/0/usage/cpu") else { continue };
        let window = number(frame, "/t")? - number(before, "/t")?;
        (uses, used, seconds) = (uses + 1, used + share * window, seconds + window);
    }
    anyhow::ensure!(uses >= 3, "{uses} frames have a use");
    let mean = used / seconds;
    anyhow::ensure!((mean / told - 1.0).abs() < 0.1, "frames say {mean}, the engine {told}");
    anyhow::ensure!((mean / 0.25 - 1.0).abs() < 0.1, "the limit is 0.25, the frames say {mean}");

    // A run's own time and the log's are tied by the samples, which hold both.
    let first = samples.first().context("no samples")?;
    let epoch = number(first, "/unix")? - number(first, "/t")?;
    let log = steps(&bed.log(&job).await?)?;
    let mut compared = 0;
    for (before, frame) in frames.iter().zip(frames.iter().skip(1)) {
        let (from, to) = (number(before, "/t")? + epoch, number(frame, "/t")? + epoch);
        let Ok(loss) = number(frame, "/jobs/0/loss") else { continue };
        // The endpoint is read a moment before the frame is made.
        let near = |slack: f64| {
            let within = log.iter().filter(move |s| s.unix > from - slack && s.unix <= to - slack);
            let (n, sum) = within.fold((0.0, 0.0), |(n, sum), s| (n + 1.0, sum + s.loss));
            (n > 0.0).then_some(sum / n)
        };
        // Nothing was logged before the job began.
        let early = near(0.25).or(log.first().map(|step| step.loss)).context("no log")?;
        let late = near(-0.05).context("nothing was logged")?;
        anyhow::ensure!(
            loss <= early * 1.01 && loss >= late * 0.99,
            "the frame says {loss}, the log between {late} and {early}"
        );
        compared += 1;
    }
    anyhow::ensure!(compared >= 3, "only {compared} frames could be compared");
    Ok(())
}
