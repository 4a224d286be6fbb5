//! A job that reports a wrong total of steps, beside honest jobs under the policy `paceline`.

use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, Job, TestEnv};

use crate::promise::{BURNERS, Ended, Idle, PACELINE, ensure_kept};

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
    let allocator = Allocator::run(env, &PACELINE)?;
    let job = |name, steps, more: &[&'static str]| Job {
        name,
        args: [&BURNERS[..], &["--steps", steps], more].concat(),
        ..Job::default()
    };
    let idle = Idle::watch();
    let (small, middle, liar) = tokio::try_join!(
        env.start(job("small", "200", &[])),
        env.start(job("middle", "400", &[])),
        env.start(job("liar", "800", lie))
    )?;
    let mut ended = Vec::new();
    for (name, steps) in [(&small, 200), (&middle, 400), (&liar, 800)] {
        anyhow::ensure!(env.ended(name).await? == 0, "{name} failed");
        ended.push(Ended::read(name, steps, *name != liar, &env.log(name).await?)?);
    }
    allocator.end().await?;
    ensure_kept(&ended, &idle)
}
