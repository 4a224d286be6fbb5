//! The allocator killed in the middle of a move: at each step of it, and on the way back.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use anyhow::Context;
use paceline_system_tests::{Allocator, Bed};

use crate::moves::{SPECON, ensure_goes_on, forget, place, processes, two_on_a};

/// Two nodes of one CPU each. On a busy machine a move may fail before the step that is waited for: then
/// there is another one.
const NODES: [&str; 6] = ["--node", "a=0", "--node", "b=1", "--moves", "9"];
/// The moments just before a step and just after it, where all goes well.
const FORTH: [&str; 14] = [
    "create", "created", "save", "saved", "pause", "paused", "start", "started", "prove", "proved",
    "retire", "retired", "rename", "renamed",
];
/// From here on the move is completed.
const PROVED: &str = "retire";
/// The same of the way back.
const BACK: [&str; 4] = ["discard", "discarded", "resume", "resumed"];

pub(crate) async fn killed_at_any_step_of_a_move_the_job_is_there_once(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let proved = FORTH.iter().position(|step| *step == PROVED).context("it is one of them")?;
    for (round, step) in FORTH.iter().chain(&BACK).enumerate() {
        let back = round >= FORTH.len();
        let name = two_on_a(&bed, if back { "exit" } else { "go-on" }).await?;
        let mut command = Allocator::running(&bed)?;
        command.args(["--listen", "none"]).args(SPECON).args(NODES);
        command.env("PACELINE_CRASH_AT", step);
        let mut allocator = Allocator::spawn(command)?;
        let status = allocator.ended().await?;
        anyhow::ensure!(status.signal() == Some(9), "{step}: {status}: {}", allocator.said());
        // Two ways to come back, in turn by the step: the command, and the next run.
        if (round / 2) % 2 == 0 {
            let said = Allocator::restore(&bed).await?;
            anyhow::ensure!(said.contains("flat"), "{step}: {said}");
        } else {
            let next = Allocator::run(&bed, &["--policy", "none"])?;
            next.says(&["an earlier run left a move", "flat"]).await.context(*step)?;
            next.end().await?;
        }
        let now = place(&bed, &name).await.with_context(|| (*step).to_owned())?;
        let expected = if (proved..FORTH.len()).contains(&round) { "1" } else { "0" };
        anyhow::ensure!(now.runs && now.cpus == expected, "{step}: {now:?}");
        anyhow::ensure!(bed.ids().await?.len() == 2, "{step}: there is one too many");
        let again = Allocator::restore(&bed).await?;
        anyhow::ensure!(again.contains("nothing to put back"), "{step}: {again}");
        ensure_goes_on(&bed).await.context(*step)?;
        ensure_alone(&bed).context(*step)?;
        bed.clear().await?;
        forget(&bed)?;
    }
    Ok(())
}

/// No process of the job may make a step between two steps of another one: at most, one that has
/// begun on the target gives way to the first again.
fn ensure_alone(bed: &Bed) -> anyhow::Result<()> {
    let runs = processes(bed)?.len();
    anyhow::ensure!(runs <= 3, "processes have taken turns {runs} times");
    Ok(())
}
