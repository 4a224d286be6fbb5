//! A job that reports a wrong total of steps, beside honest jobs under the policy `paceline`.

use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, Job, TestEnv};

/// The steps of the honest jobs, and of the one that lies.
const STEPS: [(&str, f64); 3] = [("small", 200.0), ("middle", 400.0), ("liar", 800.0)];
/// When each ends under equal sharing, in steps of all three jobs: the small one once each job has
/// taken 200 steps, the middle one 400 later.
const FAIR_ENDS: [f64; 2] = [600.0, 1000.0];
/// How late an honest job may end, as a multiple of its time under equal sharing …
const LATE: f64 = 1.25;
/// … plus this many seconds: containers start one after another, and the policy runs at intervals.
const SECONDS: f64 = 1.0;

pub(crate) async fn a_wrong_total_makes_no_honest_job_much_later(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    for lie in [&["--one-more"][..], &["--states", "80"], &["--states", "8000"]] {
        run(&env, lie).await.with_context(|| format!("{lie:?}"))?;
        env.clear().await?;
    }
    Ok(())
}

async fn run(env: &TestEnv, lie: &[&'static str]) -> anyhow::Result<()> {
    let words = ["--policy", "paceline", "--param", "interval=3", "--param", "least=0.5"];
    let allocator = Allocator::run(env, &words)?;
    let job = |name, steps, more: &[&'static str]| Job {
        name,
        args: [&["--burners", "3", "--steps", steps], more].concat(),
        ..Job::default()
    };
    let (small, middle, liar) = tokio::try_join!(
        env.start(job("small", "200", &[])),
        env.start(job("middle", "400", &[])),
        env.start(job("liar", "800", lie))
    )?;
    let mut times = Vec::new();
    for name in [small, middle, liar] {
        anyhow::ensure!(env.ended(&name).await? == 0, "{name} failed");
        times.push(first_and_last(&env.log(&name).await?)?);
    }
    allocator.end().await?;
    let began = times.iter().map(|(first, _)| *first).fold(f64::INFINITY, f64::min);
    let all = times.iter().map(|(_, last)| last - began).fold(0.0, f64::max);
    let steps: f64 = STEPS.iter().map(|(_, steps)| steps).sum();
    for (((name, _), fair), (_, last)) in STEPS.iter().zip(FAIR_ENDS).zip(times) {
        let (end, fair) = (last - began, all * fair / steps);
        let most = LATE * fair + SECONDS;
        anyhow::ensure!(
            end <= most,
            "{name} ended after {end:.1} s, fair are {fair:.1} s of {all:.1} s"
        );
    }
    Ok(())
}

/// The times of a job's first and last step.
fn first_and_last(log: &str) -> anyhow::Result<(f64, f64)> {
    let time = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    let mut times = log.lines().filter_map(time);
    let first = times.next().context("the job printed no step")?;
    Ok((first, times.next_back().unwrap_or(first)))
}
