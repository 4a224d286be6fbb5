//! How soon an order is in force.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::HostConfig;
use paceline_allocator::clock::Clock;
use paceline_allocator::live::Command;
use paceline_allocator::observe::cgroup::{Cgroup, Quota};
use paceline_system_tests::{Allocator, Bed, Job, PATIENCE, until};

use super::{cgroup, ordered, quota, run, until_managed, view};
use crate::flowcon::{ensure_unlimited, flat};
use crate::moves::processes;

/// How often each order is timed.
const ROUNDS: usize = 5;
/// An order is to be in force within 100 ms. Where other programs keep the machine busy it takes longer, in
/// milliseconds …
const LATEST: f64 = 1000.0;
/// … or so many times as long as a command takes there that only asks.
const TIMES: f64 = 10.0;

/// Milliseconds from the start of a command until the kernel's quota is as it is to be.
async fn timed(
    bed: &Bed,
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
    let effect = tokio::time::timeout(PATIENCE, effect);
    let (ran, effect) = tokio::join!(run(bed, words), effect);
    ran?;
    effect.with_context(|| format!("{words:?} has no effect"))?
}

/// Since the clock was started.
fn milliseconds(clock: Clock) -> f64 {
    clock.now().seconds() * 1000.0
}

/// What each round begins with: a job that is new and, at a loss of 4, not acceptable.
const FIRST: [&[&str]; 3] =
    [&["release", "live"], &["set", "live", "--acceptable", "1"], &["manage", "live"]];
/// What is timed then, in this order. Beside a job that is never acceptable, an acceptable one is
/// capped.
const TIMED: [&[&str]; 5] = [
    &["set", "live", "--acceptable", "5"],
    &["pin", "live", "0.2"],
    &["manage", "live"],
    &["pin", "live", "0.2"],
    &["release", "live"],
];

pub(crate) async fn orders_are_in_force_within_moments_and_stand_in_the_audit_log(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let host = HostConfig { binds: Some(vec![bed.bind()]), ..HostConfig::default() };
    let args = vec!["--trace", "/bed/trace"];
    let live = bed.start(Job { name: "live", args, host, ..flat() }).await?;
    bed.start(flat()).await?;
    // However much of the machine these jobs use, none of it counts as unused. The policy does not run by
    // itself again: what is in force is so by an order.
    let words = ["--policy", "tradl", "--param", "alpha=0", "--param", "interval=3600"];
    let words = [&words[..], &["--enforcement", "quota"]].concat();
    let allocator = Allocator::run(&bed, &words)?;
    for job in ["live", "flat"] {
        until_managed(&bed, job).await?;
    }
    let (cgroup, pinned) = (cgroup(&bed, &live).await?, quota(&bed, 0.2).await?);
    let (mut times, mut asking) = (TIMED.map(|_| Vec::new()), Vec::new());
    let mut given = Vec::new();
    for _ in 0..ROUNDS {
        for words in FIRST {
            run(&bed, words).await?;
        }
        until_judged(&bed, "live").await?;
        anyhow::ensure!(cgroup.quota()?.quota.is_none(), "it is limited before its time");
        let effects: [&dyn Fn(Quota) -> bool; 5] = [
            &|now| now.quota.is_some(),
            &|now| now == pinned,
            &|now| now != pinned,
            &|now| now == pinned,
            &|now| now.quota.is_none(),
        ];
        for ((words, times), is_done) in TIMED.iter().zip(&mut times).zip(effects) {
            times.push(timed(&bed, &cgroup, words, is_done).await?);
        }
        let clock = Clock::start();
        run(&bed, &["status"]).await?;
        asking.push(milliseconds(clock));
        given.extend(FIRST.into_iter().chain(TIMED).map(|words| words.first().copied()));
    }
    allocator.end().await?;
    ensure_unlimited(&bed, &live).await?;
    ensure_soon(times, asking)?;
    let ordered: Vec<_> = ordered(&bed)?.iter().map(|(command, _)| Some(word(command))).collect();
    anyhow::ensure!(ordered == given, "the log tells of {ordered:?} and not of {given:?}");
    Ok(())
}

/// Waits until the policy has judged a job, which has made steps since then that it can be judged by.
async fn until_judged(bed: &Bed, job: &str) -> anyhow::Result<()> {
    until("the policy has judged the job", || async {
        Ok(view(bed, job).await.ok().and_then(|view| view.class))
    })
    .await?;
    let steps = || anyhow::Ok(processes(bed)?.iter().map(Vec::len).sum::<usize>());
    let now = steps()?;
    until("the job makes steps", || async { Ok((steps()? > now + 2).then_some(())) }).await
}

/// The middle of the times of each order, which is what is promised.
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

/// How an order is typed.
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
