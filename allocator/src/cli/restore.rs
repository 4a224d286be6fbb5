//! `paceline restore`: the way back after a crash.

use std::process::ExitCode;

use clap::Args;

use super::engine::{self, EngineArgs};
use super::own_container::{self, Errand};
use super::run::absolute;
use super::state::StateArgs;
use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::driver::short;
use crate::signals::Signals;

/// Put back every limit that an allocator left behind when it was killed
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    state: StateArgs,
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
pub(super) async fn run(args: RestoreArgs, engine: &EngineArgs) -> anyhow::Result<ExitCode> {
    let docker = engine.connect().await?;
    if own_container::is_needed() {
        let folder = std::path::absolute(args.state.folder())?;
        let words = ["restore", "--state-dir", &absolute(&folder)?].map(str::to_owned).to_vec();
        let errand = Errand { words, folders: vec![folder] };
        return own_container::run(&docker, engine, errand, &Signals::listen()?).await;
    }
    let described = engine::info(&docker).await?;
    let originals = Originals::open(&args.state.folder(), &described.id, "paceline restore")?;
    let machine = described.machine;
    let actuator = Actuator::new(docker, originals, machine.proc, machine.cpus);
    let pending = actuator.pending()?;
    if pending.is_empty() {
        println!("nothing to put back");
    }
    let mut failed = 0_u32;
    for id in pending {
        match actuator.restore(&id).await {
            Ok(Some(restored)) => println!("{}: {restored}", short(&id)),
            Ok(None) => {}
            Err(error) => {
                failed += 1;
                println!("{}: NOT put back: {:#}", short(&id), anyhow::Error::from(error));
            }
        }
    }
    anyhow::ensure!(failed == 0, "the limits of {failed} containers were not put back");
    Ok(ExitCode::SUCCESS)
}
