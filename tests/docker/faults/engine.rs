//! The engine is restarted during a run.

use std::sync::Arc;

use paceline_system_tests::{Allocator, PrivateEngine, TestEnv, image_of};

use super::{all_limits, update};
use crate::flowcon::{QUICK, all_cpus, flat, growing, until_cut};

pub(crate) async fn an_engine_that_restarts_in_mid_run_keeps_nothing_of_ours(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let mut engine = PrivateEngine::start(env.file("engine")).await?;
    let outcome = across_a_restart(&mut engine).await;
    engine.clear().await?;
    outcome
}

async fn across_a_restart(engine: &mut PrivateEngine) -> anyhow::Result<()> {
    let toy = env!("CARGO_BIN_EXE_toy-job").as_ref();
    image_of(engine.docker(), "paceline-test/toy-job:private", &[toy]).await?;
    let inner = TestEnv::new(engine.docker().clone(), "paceline-test/toy-job:private", "inner")?;
    let names = [inner.start(flat()).await?, inner.start(growing()).await?];
    let before = all_limits(&inner, &names).await?;
    let mut command = Allocator::command(&["run", "--with-label", &inner.label()])?;
    command.args(["--listen", "none", "--control", "none"]);
    command.arg("--state-dir").arg(Allocator::state(&inner)).args(QUICK);
    let allocator = Allocator::spawn({
        command.env("DOCKER_HOST", engine.host());
        command
    })?;
    let [flat, _] = &names;
    until_cut(&inner, flat).await?;
    engine.restart().await?;
    anyhow::ensure!(inner.runs(flat).await?, "the job does not outlive its engine");
    until_cut(&inner, flat).await?;
    update(&inner, flat).await?;
    allocator.says(&["flat", "changed outside Paceline", "reassert"]).await?;
    until_cut(&inner, flat).await?;
    allocator.end().await?;
    // The outside update after the restart is what must remain; the other job was never touched.
    let cpus = all_cpus(&inner).await?;
    let after = all_limits(&inner, &names).await?;
    let ([now, other], [_, untouched]) = (&after[..], &before[..]) else {
        anyhow::bail!("there are two jobs");
    };
    anyhow::ensure!(now.host.nano_cpus == cpus / 4 * 3, "{now:?}");
    other.ensure_back(untouched, cpus)
}
