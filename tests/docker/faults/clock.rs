//! The machine's clock set an hour ahead, and two back.

use std::path::Path;
use std::sync::Arc;

use paceline_api::audit::verify::verify;
use paceline_api::audit::{Entry, read};
use paceline_api::clock::unix_seconds;
use paceline_system_tests::{Allocator, TestEnv, WallClock, json_lines, until};
use serde_json::Value;

use super::ensure_back;
use crate::flowcon::{QUICK, flat, growing, until_cut};

/// The clock's offsets, in seconds, one after the other.
const OFF: [i64; 3] = [3_600, -3_600, 0];
/// The longest time between two decisions of a policy that runs twice a second, on a busy machine,
/// in seconds. It is far less than the clock's offsets.
const MAX_GAP: f64 = 300.0;

pub(crate) async fn a_clock_that_is_set_changes_no_decision(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let names: [String; 2] = tokio::try_join!(env.start(flat()), env.start(growing()))?.into();
    let before = super::all_limits(&env, &names).await?;
    let clock = WallClock::make(env.folder())?;
    let frames = env.file("frames.jsonl");
    let mut command = Allocator::running(&env)?;
    command.args(["--listen", "none", "--record"]).arg(&frames).args(QUICK);
    clock.under(&mut command);
    let allocator = Allocator::spawn(command)?;
    let [flat, _] = &names;
    until_cut(&env, flat).await?;
    for off in OFF {
        clock.set(off)?;
        let (seen, stamped) = (measured(&frames)?, decided(&env)?.len());
        until("the policy runs twice by the clock as it is now", || async {
            let stamps = decided(&env)?.split_off(stamped);
            let by_it = stamps.iter().filter(|at| is_off_by(**at, off)).count();
            Ok((by_it >= 4 && measured(&frames)? >= seen + 2).then_some(()))
        })
        .await?;
        until_cut(&env, flat).await?;
    }
    allocator.end().await?;
    ensure_back(&env, &names, &before).await?;
    ensure_steady(&frames)?;
    let verdict = verify(&Allocator::state(&env), None)?;
    anyhow::ensure!(verdict.holds(), "{verdict:?}");
    Ok(())
}

/// When each entry about a decision was written, in Unix seconds.
fn decided(env: &TestEnv) -> anyhow::Result<Vec<f64>> {
    let records = read::last(&Allocator::state(env), usize::MAX)?.into_iter();
    let decided = records.filter(|record| matches!(record.entry, Entry::Decided { .. }));
    Ok(decided.map(|record| record.at).collect())
}

/// Whether a stamp comes from a clock that is `seconds` off.
fn is_off_by(stamp: f64, seconds: i64) -> bool {
    let seconds = i32::try_from(seconds).map_or(f64::NAN, f64::from);
    (stamp - seconds - unix_seconds()).abs() < MAX_GAP
}

/// How many frames measure both jobs: their losses, and their CPU use as a fraction of the machine.
fn measured(frames: &Path) -> anyhow::Result<usize> {
    let is_measured = |job: &Value| {
        let loss = job.get("loss").and_then(Value::as_f64);
        let usage = job.pointer("/usage/cpu").and_then(Value::as_f64);
        loss.is_some() && usage.is_some_and(|usage| (0.0..=1.5).contains(&usage))
    };
    let all_are = |frame: &Value| {
        let jobs = frame.get("jobs").and_then(Value::as_array);
        jobs.is_some_and(|jobs| jobs.len() == 2 && jobs.iter().all(is_measured))
    };
    // The last line may be half written.
    let text = std::fs::read_to_string(frames)?;
    let whole = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(whole.filter(all_are).count())
}

/// Fails if the policy's own time jumps.
fn ensure_steady(frames: &Path) -> anyhow::Result<()> {
    let times: Vec<Option<f64>> =
        json_lines(frames)?.iter().map(|frame| frame.get("t").and_then(Value::as_f64)).collect();
    let steady = times.windows(2).all(|pair| match pair {
        [Some(before), Some(after)] => (0.0..MAX_GAP).contains(&(after - before)),
        _ => false,
    });
    anyhow::ensure!(steady, "{times:?}");
    Ok(())
}
