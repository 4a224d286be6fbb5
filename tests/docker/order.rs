//! The policy `paceline` on real containers: which job runs first, and what `status` shows of it.

use std::sync::Arc;

use anyhow::Context;
use paceline_api::live::snapshot::JobView;
use paceline_system_tests::{Allocator, Job, TestEnv, json_lines, until};
use serde_json::Value;

use crate::flowcon::ensure_unlimited;
use crate::orders::view;
use crate::policies::{ensure_replays, until_recorded};

/// The policy, quick enough for a test.
const POLICY: [&str; 6] = ["--policy", "paceline", "--param", "interval=1", "--param", "least=0.5"];

/// A job of `steps` steps whose threads can use every CPU of the machine.
fn job(name: &'static str, steps: &'static str) -> Job {
    Job { name, args: vec!["--burners", "3", "--steps", steps], ..Job::default() }
}

/// Waits until `first` has the machine and `other` waits for it at a small share.
async fn until_ordered(
    env: &TestEnv,
    first: &str,
    other: &str,
) -> anyhow::Result<(JobView, JobView)> {
    until("the shorter job is served, and the longer one waits for it", || async {
        // The endpoint answers only after the first sample.
        let (Ok(served), Ok(waits)) = (view(env, first).await, view(env, other).await) else {
            return Ok(None);
        };
        let is_served = served.limit.is_some_and(|limit| limit >= 0.99);
        let is_small = waits.limit.is_some_and(|limit| limit < 0.2);
        let ordered = is_served && is_small && waits.waits_for.as_deref() == Some(first);
        Ok(ordered.then_some((served, waits)))
    })
    .await
}

pub(crate) async fn the_shorter_job_runs_first_and_both_ends_are_known(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (long, short) =
        tokio::try_join!(env.start(job("long", "4000000")), env.start(job("short", "1000000")))?;
    let frames = env.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&env, &[&POLICY[..], &["--record", &record]].concat())?;
    let (served, waits) = until_ordered(&env, "short", "long").await?;
    let ends = |job: &JobView| Some((job.ends_at?, job.fair_ends_at?, job.work_left?));
    let (short_ends, short_fair, short_left) =
        ends(&served).ok_or_else(|| anyhow::anyhow!("no end is known: {served:?}"))?;
    let (long_ends, _, long_left) =
        ends(&waits).ok_or_else(|| anyhow::anyhow!("no end is known: {waits:?}"))?;
    anyhow::ensure!(short_ends < short_fair && short_ends < long_ends, "{served:?} {waits:?}");
    anyhow::ensure!(short_left < long_left, "{served:?} {waits:?}");
    let why = waits.why.unwrap_or_default();
    anyhow::ensure!(why.starts_with("waits: short has "), "{why}");
    until_recorded(&frames).await?;
    allocator.end().await?;
    for name in [long, short] {
        ensure_unlimited(&env, &name).await?;
    }
    ensure_replays(&POLICY, &frames).await
}

pub(crate) async fn jobs_without_a_total_keep_equal_shares(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let silent = |name| Job { name, args: vec!["--burners", "3"], ..Job::default() };
    let (a, b) = tokio::try_join!(env.start(silent("a")), env.start(silent("b")))?;
    let frames = env.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&env, &[&POLICY[..], &["--record", &record]].concat())?;
    until_recorded(&frames).await?;
    for (job, name) in [("a", &a), ("b", &b)] {
        let view = view(&env, job).await?;
        anyhow::ensure!(view.class.as_deref() == Some("shares"), "{view:?}");
        ensure_unlimited(&env, name).await?;
    }
    allocator.end().await?;
    for frame in json_lines(&frames)? {
        let jobs = frame.get("jobs").and_then(Value::as_array).context("a frame has jobs")?;
        let limited = jobs.iter().filter_map(|job| job.pointer("/limit/applied")?.as_f64());
        anyhow::ensure!(limited.clone().all(|limit| limit >= 1.0), "{frame}");
    }
    Ok(())
}
