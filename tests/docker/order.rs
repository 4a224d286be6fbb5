//! The policy `paceline` on real containers: who is served first, and what people see of it.

use std::sync::Arc;

use anyhow::Context;
use paceline_allocator::live::snapshot::JobView;
use paceline_system_tests::{Allocator, Bed, Job, json_lines, until};
use serde_json::Value;

use crate::flowcon::ensure_unlimited;
use crate::orders::view;
use crate::policies::{ensure_replays, until_recorded};

/// The policy, quick enough for a test.
const POLICY: [&str; 6] = ["--policy", "paceline", "--param", "interval=1", "--param", "least=0.5"];

/// A job of so many steps whose threads can use every CPU of the machine.
fn job(name: &'static str, steps: &'static str) -> Job {
    Job { name, args: vec!["--burners", "3", "--steps", steps], ..Job::default() }
}

/// Waits until `first` is served and `other` waits for it at a small share.
async fn until_ordered(bed: &Bed, first: &str, other: &str) -> anyhow::Result<(JobView, JobView)> {
    until("the shorter job is served, and the longer one waits for it", || async {
        // Before the first look there is no answer.
        let (Ok(served), Ok(waits)) = (view(bed, first).await, view(bed, other).await) else {
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
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (long, short) =
        tokio::try_join!(bed.start(job("long", "4000000")), bed.start(job("short", "1000000")))?;
    let frames = bed.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&bed, &[&POLICY[..], &["--record", &record]].concat())?;
    let (served, waits) = until_ordered(&bed, "short", "long").await?;
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
        ensure_unlimited(&bed, &name).await?;
    }
    ensure_replays(&POLICY, &frames).await
}

pub(crate) async fn jobs_without_a_total_keep_equal_shares(bed: Arc<Bed>) -> anyhow::Result<()> {
    let silent = |name| Job { name, args: vec!["--burners", "3"], ..Job::default() };
    let (a, b) = tokio::try_join!(bed.start(silent("a")), bed.start(silent("b")))?;
    let frames = bed.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&bed, &[&POLICY[..], &["--record", &record]].concat())?;
    until_recorded(&frames).await?;
    for (job, name) in [("a", &a), ("b", &b)] {
        let view = view(&bed, job).await?;
        anyhow::ensure!(view.class.as_deref() == Some("shares"), "{view:?}");
        ensure_unlimited(&bed, name).await?;
    }
    allocator.end().await?;
    for frame in json_lines(&frames)? {
        let jobs = frame.get("jobs").and_then(Value::as_array).context("a frame has jobs")?;
        let limited = jobs.iter().filter_map(|job| job.pointer("/limit/applied")?.as_f64());
        anyhow::ensure!(limited.clone().all(|limit| limit >= 1.0), "{frame}");
    }
    Ok(())
}
