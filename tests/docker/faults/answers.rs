//! Jobs whose reports stop, are invalid, or never end.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, Job, TestEnv, json_lines, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{all_limits, ensure_back};
use crate::flowcon::{QUICK, flat, flat_and_growing, growing, until_cut};

/// The most memory that an allocator may hold while jobs send it gigabytes, in bytes. It is a
/// small multiple of what a test build holds without them.
const MAX_MEMORY: u64 = 128 << 20;

pub(crate) async fn endless_answer_is_not_held_in_memory(env: Arc<TestEnv>) -> anyhow::Result<()> {
    let kinds = [("huge", "huge"), ("endless", "endless"), ("dripping", "drip")];
    let mut names = Vec::new();
    for (name, answer) in kinds {
        let args = vec!["--answer", answer, "--work", "10000000"];
        names.push(env.start(Job { name, args, ..Job::default() }).await?);
    }
    let before = all_limits(&env, &names).await?;
    let flat = flat_and_growing(&env).await?;
    let allocator = Allocator::run(&env, &QUICK)?;
    let too_long = "sends an answer that is too long or incomplete";
    for (name, reason) in
        [("huge", too_long), ("endless", too_long), ("dripping", "no answer from port 7223")]
    {
        allocator.says(&["WARN", &env.name(name), "is not managed", reason]).await?;
    }
    // Only two jobs count.
    until_cut(&env, &flat).await?;
    let peak = allocator.memory_peak()?;
    anyhow::ensure!(peak <= MAX_MEMORY, "it has held {} MiB", peak >> 20);
    anyhow::ensure!(all_limits(&env, &names).await? == before, "what does not report was limited");
    allocator.end().await?;
    ensure_back(&env, &names, &before).await
}

pub(crate) async fn silent_nan_or_worsening_jobs_get_their_limits_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let no_number = Job { name: "no-number", args: vec!["--start", "NaN"], ..Job::default() };
    let worse = Job { name: "worse", args: vec!["--half-life=-40000"], ..Job::default() };
    let flat = env.start(flat()).await?;
    let names = [
        flat.clone(),
        env.start(growing()).await?,
        env.start(no_number).await?,
        env.start(worse).await?,
    ];
    let before = all_limits(&env, &names).await?;
    let frames = env.file("frames.jsonl");
    let record = frames.to_string_lossy();
    let allocator = Allocator::run(&env, &[&QUICK[..], &["--record", &record]].concat())?;
    until("the flat job is cut", || async {
        Ok(env.limits(&flat).await?.kernel.and_then(|quota| quota.quota))
    })
    .await?;
    // It hangs: its socket accepts connections, but no answer comes.
    let pid = env.inspect(&flat).await?.pid.context("it runs")?;
    let pid = Pid::from_raw(i32::try_from(pid)?).context("no process has id 0")?;
    kill_process(pid, Signal::STOP)?;
    allocator.says(&["WARN", &flat, "keeps its limit for now", "no answer from"]).await?;
    // Two runs of the policy without a report of it, and two more.
    until_silent(&frames, 2).await?;
    let kept = env.limits(&flat).await?;
    let later = until_silent(&frames, 4).await?;
    anyhow::ensure!(env.limits(&flat).await? == kept, "a silent job's limit was changed");
    anyhow::ensure!(kept.kernel.is_some_and(|quota| quota.quota.is_some()), "{kept:?}");
    kill_process(pid, Signal::CONT)?;
    allocator.says(&["INFO", "its endpoint answers", "job=flat"]).await?;
    allocator.end().await?;
    ensure_back(&env, &names, &before).await?;
    let losses = |job: &str| losses(&later, job);
    anyhow::ensure!(losses("no-number").iter().all(Option::is_none), "a NaN counts as a loss");
    let worse: Vec<f64> = losses("worse").into_iter().flatten().collect();
    anyhow::ensure!(worse.len() >= 2 && worse.is_sorted(), "{worse:?}");
    Ok(())
}

/// Waits until the last `times` frames have no loss of the flat job; returns all frames.
async fn until_silent(frames: &Path, times: usize) -> anyhow::Result<Vec<Value>> {
    until("the policy gets no report", || async {
        // The last line may be half written.
        let Ok(frames) = json_lines(frames) else { return Ok(None) };
        let losses = losses(&frames, "flat");
        let silent = losses.iter().rev().take_while(|loss| loss.is_none()).count();
        Ok((silent >= times).then_some(frames))
    })
    .await
}

/// The loss of a job in each frame that has it.
fn losses(frames: &[Value], job: &str) -> Vec<Option<f64>> {
    let jobs = frames.iter().filter_map(|frame| frame.get("jobs")?.as_array());
    let one = jobs.flatten().filter(|one| one.get("id").and_then(Value::as_str) == Some(job));
    one.map(|one| one.get("loss").and_then(Value::as_f64)).collect()
}
