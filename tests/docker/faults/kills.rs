//! The allocator is killed at each step of a plan. [`super::random_kills`] kills it at any moment.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, Job, Limits, TestEnv, until};
use rustix::process::Signal;

use super::random_kills::left_behind;
use super::{all_limits, ensure_back};
use crate::flowcon::{QUICK, flat, growing};

/// The steps of a plan, and of a restore, at which the allocator can be killed.
const STEPS: [&str; 6] = [
    "before-snapshot",
    "after-snapshot",
    "between-writes",
    "before-audit",
    "between-writes:1",
    "before-forgetting",
];

pub(crate) async fn killed_at_any_step_the_allocator_leaves_a_way_back(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let level = Job { name: "level", ..flat() };
    let names: [String; 3] =
        tokio::try_join!(env.start(flat()), env.start(level), env.start(growing()))?.into();
    let before = all_limits(&env, &names).await?;
    for (round, step) in STEPS.iter().enumerate() {
        for actuator in ["engine", "cgroup"] {
            let mut command = Allocator::command(&["run", "--with-label", &env.label()])?;
            command.args(["--listen", "none", "--control", "none"]);
            command.arg("--state-dir").arg(Allocator::state(&env));
            command.args(QUICK).args(["--actuator", actuator]).env("PACELINE_CRASH_AT", step);
            let mut allocator = Allocator::spawn(command)?;
            if *step == "before-forgetting" {
                until_any_cut(&env, &names).await?;
                allocator.signal(Signal::TERM)?;
            }
            let status = allocator.ended().await?;
            anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
            let kept = left_behind(&env);
            anyhow::ensure!((kept > 0) == (*step != "before-snapshot"), "{step}: {kept} are kept");
            // There are two ways to put limits back; take turns: the command, and the next run.
            if round % 2 == 0 {
                Allocator::restore(&env).await?;
            } else {
                let next = Allocator::run(&env, &["--policy", "none"])?;
                next.says(&["allocator runs"]).await?;
                next.end().await?;
            }
            ensure_back(&env, &names, &before)
                .await
                .with_context(|| format!("{step}, {actuator}"))?;
            anyhow::ensure!(left_behind(&env) == 0, "{step}: something is still to be put back");
        }
    }
    Ok(())
}

/// Waits until the kernel has a quota for one of these containers.
async fn until_any_cut(env: &TestEnv, names: &[String]) -> anyhow::Result<()> {
    until("a job is cut", || async {
        let limits = all_limits(env, names).await?;
        let cut = |limits: &Limits| limits.kernel.is_some_and(|quota| quota.quota.is_some());
        Ok(limits.iter().any(cut).then_some(()))
    })
    .await
}
