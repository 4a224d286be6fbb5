//! How soon an order is in force.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use paceline_api::clock::Clock;
use paceline_api::live::Command;
use paceline_cgroup::{Cgroup, Quota};
use paceline_system_tests::{Allocator, Job, TestEnv, WAIT_TIMEOUT, until};

use super::{cgroup, ordered, quota, run, until_managed, view};
use crate::flowcon::{ensure_unlimited, flat};
use crate::moves::processes;

/// How often each order is timed.
const ROUNDS: usize = 5;
/// An order should be in force within 100 ms. On a busy machine it may take longer: this many
/// milliseconds …
const LATEST: f64 = 1000.0;
/// … or this many times as long as a command that only asks takes there.
const TIMES: f64 = 10.0;

/// Milliseconds from the start of a command until the kernel's quota is as ordered.
async fn timed(
    env: &TestEnv,
    cgroup: &Cgroup,
    words: &[&str],
    is_done: impl Fn(Quota) -> bool,
) -> anyhow::Result<f64> {
    let clock = Clock::start();
    let effect = async {
        while !is_done(cgroup.quota()?) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        anyhow::Ok(milliseconds(clock))
    };
    let effect = tokio::time::timeout(WAIT_TIMEOUT, effect);
    let (ran, effect) = tokio::join!(run(env, words), effect);
    ran?;
    effect.with_context(|| format!("{words:?} has no effect"))?
}

/// Milliseconds since the clock was started.
fn milliseconds(clock: Clock) -> f64 {
    clock.now().seconds() * 1000.0
}

/// How each round begins: with a job that is newly managed and, at a loss of 4, not acceptable.
const FIRST: [&[&str]; 3] =
    [&["release", "live"], &["set", "live", "--acceptable", "1"], &["manage", "live"]];
/// The orders that are timed then, in this sequence. Beside a job that is never acceptable, an
/// acceptable one is capped.
const TIMED: [&[&str]; 5] = [
    &["set", "live", "--acceptable", "5"],
    &["pin", "live", "0.2"],
    &["manage", "live"],
    &["pin", "live", "0.2"],
    &["release", "live"],
];

pub(crate) async fn orders_take_effect_quickly_and_are_audited(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let host = HostConfig { binds: Some(vec![env.bind()]), ..HostConfig::default() };
    let args = vec!["--trace", "/files/trace"];
    let live = env.start(Job { name: "live", args, host, ..flat() }).await?;
    env.start(flat()).await?;
    // With alpha 0 no CPU counts as unused, however little these jobs use. The policy does not run
    // again by itself: every change comes from an order.
    let words = ["--policy", "tradl", "--param", "alpha=0", "--param", "interval=3600"];
    let words = [&words[..], &["--enforcement", "quota"]].concat();
    let allocator = Allocator::run(&env, &words)?;
    for job in ["live", "flat"] {
        until_managed(&env, job).await?;
    }
    let (cgroup, pinned) = (cgroup(&env, &live).await?, quota(&env, 0.2).await?);
    let (mut times, mut asking) = (TIMED.map(|_| Vec::new()), Vec::new());
    let mut given = Vec::new();
    for _ in 0..ROUNDS {
        for words in FIRST {
            run(&env, words).await?;
        }
        until_judged(&env, "live").await?;
        anyhow::ensure!(cgroup.quota()?.quota.is_none(), "it is limited before its time");
        let effects: [&dyn Fn(Quota) -> bool; 5] = [
            &|now| now.quota.is_some(),
            &|now| now == pinned,
            &|now| now != pinned,
            &|now| now == pinned,
            &|now| now.quota.is_none(),
        ];
        for ((words, times), is_done) in TIMED.iter().zip(&mut times).zip(effects) {
            times.push(timed(&env, &cgroup, words, is_done).await?);
        }
        let clock = Clock::start();
        run(&env, &["status"]).await?;
        asking.push(milliseconds(clock));
        given.extend(FIRST.into_iter().chain(TIMED).map(|words| words.first().copied()));
    }
    allocator.end().await?;
    ensure_unlimited(&env, &live).await?;
    ensure_soon(times, asking)?;
    let ordered: Vec<_> = ordered(&env)?.iter().map(|(command, _)| Some(word(command))).collect();
    anyhow::ensure!(ordered == given, "the log has {ordered:?}, not {given:?}");
    Ok(())
}

/// Waits until the policy has classed a job, and the job has made steps since then.
async fn until_judged(env: &TestEnv, job: &str) -> anyhow::Result<()> {
    until("the policy has judged the job", || async {
        Ok(view(env, job).await.ok().and_then(|view| view.class))
    })
    .await?;
    let steps = || anyhow::Ok(processes(env)?.iter().map(Vec::len).sum::<usize>());
    let now = steps()?;
    until("the job makes steps", || async { Ok((steps()? > now + 2).then_some(())) }).await
}

/// Fails unless the median time of each order is short enough.
#[expect(clippy::print_stdout, reason = "how soon an order is in force is worth knowing")]
fn ensure_soon(times: [Vec<f64>; 5], asking: Vec<f64>) -> anyhow::Result<()> {
    let latest = (TIMES * median(asking)?).max(LATEST);
    for (words, times) in TIMED.iter().zip(times) {
        let median = median(times)?;
        println!("{words:?} in force after {median:.0} ms");
        anyhow::ensure!(
            median <= latest,
            "{words:?} in force after {median:.0} ms, not {latest:.0}"
        );
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> anyhow::Result<f64> {
    times.sort_by(f64::total_cmp);
    times.get(ROUNDS / 2).copied().context("it was timed")
}

/// The command of an order.
fn word(command: &Command) -> &'static str {
    match command {
        Command::Manage { .. } => "manage",
        Command::Release { .. } => "release",
        Command::Pin { .. } => "pin",
        Command::Set { .. } => "set",
        Command::Guard { .. } => "guard",
        Command::LogLevel { .. } => "log-level",
    }
}
