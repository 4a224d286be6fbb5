//! The allocator is killed in the middle of a move: at each step of it, and of its rollback.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, TestEnv};

use crate::moves::{SPECON, ensure_continues, ensure_one_at_a_time, forget, place, two_on_a};

/// Two nodes of one CPU each. On a busy machine a move may fail before the step at which the
/// allocator is to be killed: up to nine moves are allowed.
const NODES: [&str; 6] = ["--node", "a=0", "--node", "b=1", "--moves", "9"];
/// Just before and just after each step of a move that succeeds.
const FORTH: [&str; 14] = [
    "create", "created", "save", "saved", "pause", "paused", "start", "started", "prove", "proved",
    "retire", "retired", "rename", "renamed",
];
/// From this step on, the move is completed after a crash.
const PROVED: &str = "retire";
/// The same of the rollback.
const BACK: [&str; 4] = ["discard", "discarded", "resume", "resumed"];

pub(crate) async fn killed_at_any_step_of_a_move_the_job_is_there_once(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let proved = FORTH.iter().position(|step| *step == PROVED).context("it is one of them")?;
    for (round, step) in FORTH.iter().chain(&BACK).enumerate() {
        let back = round >= FORTH.len();
        let name = two_on_a(&env, if back { "exit" } else { "go-on" }).await?;
        let mut command = Allocator::running(&env)?;
        command.args(["--listen", "none"]).args(SPECON).args(NODES);
        command.env("PACELINE_CRASH_AT", step);
        let mut allocator = Allocator::spawn(command)?;
        let status = allocator.ended().await?;
        anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
        // There are two ways to recover; take turns: the command, and the next run.
        if (round / 2) % 2 == 0 {
            let said = Allocator::restore(&env).await?;
            anyhow::ensure!(said.contains("flat"), "{step}: {said}");
        } else {
            let next = Allocator::run(&env, &["--policy", "none"])?;
            next.says(&["an earlier run had left", "flat"]).await.context(*step)?;
            next.end().await?;
        }
        let now = place(&env, &name).await.with_context(|| (*step).to_owned())?;
        let expected = if (proved..FORTH.len()).contains(&round) { "1" } else { "0" };
        anyhow::ensure!(now.runs && now.cpus == expected, "{step}: {now:?}");
        anyhow::ensure!(env.ids().await?.len() == 2, "{step}: there is one too many");
        let again = Allocator::restore(&env).await?;
        anyhow::ensure!(again.contains("nothing to restore"), "{step}: {again}");
        ensure_continues(&env).await.context(*step)?;
        ensure_one_at_a_time(&env).context(*step)?;
        env.clear().await?;
        forget(&env)?;
    }
    Ok(())
}
