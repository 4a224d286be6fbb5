//! `paceline restore`: the way back after a crash.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tracing::warn;

use super::engine::EngineArgs;
use super::own_container::{self, Errand};
use super::plain::{plain, print};
use super::run::absolute;
use super::state::StateArgs;
use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::audit::{Audit, Entry};
use crate::config::Config;
use crate::driver::short;
use crate::exit::BadUsage;
use crate::log::Log;
use crate::migrate::containers::Containers;
use crate::migrate::journal::Folder;
use crate::migrate::{self, Ended};
use crate::signals::Signals;

/// Put back every limit that an allocator left behind when it was killed
///
/// A job that was on its way to another node is brought there, or back to where it was.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    state: StateArgs,

    /// The run's TOML file, where that says which folder original limits are kept in
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RestoreArgs {
    fn folder(&self) -> Result<PathBuf, BadUsage> {
        let file = self.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        Ok(self.state.over(file.state_dir.as_ref()).folder())
    }
}

pub(super) async fn run(
    args: RestoreArgs,
    engine: &EngineArgs,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let folder = args.folder()?;
    let docker = engine.connect().await?;
    if own_container::is_needed() {
        let folder = std::path::absolute(folder)?;
        let words = ["restore", "--state-dir", &absolute(&folder)?].map(str::to_owned);
        let words = words.into_iter().chain(log.given().words()).collect();
        let errand = Errand { words, folders: vec![folder] };
        return own_container::run(&docker, engine, errand, &Signals::listen()?).await;
    }
    let described = engine.info(&docker).await?;
    let originals = Originals::open(&folder, &described.id, "paceline restore")?;
    let journal = Folder::open(originals.folder())?;
    let machine = described.machine;
    let carrier = Containers::new(docker.clone(), machine.proc.clone());
    let actuator = Actuator::new(docker, originals, machine.proc, machine.cpus);
    let (trips, unread) = migrate::recover(&carrier, &journal, |_| true).await;
    let pending = actuator.pending()?;
    if pending.is_empty() && trips.is_empty() && unread.is_empty() {
        print("nothing to put back\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut audit = audit(&folder);
    // That nobody can be told keeps no limit from going back.
    let (mut failed, mut told) = (0_u32, Ok(()));
    for trip in trips {
        failed += u32::from(matches!(trip.ended, Ended::Stuck(_)));
        told = told.and(print(&format!("{}\n", plain(&trip.entry().to_string()))));
        if let Some(audit) = &mut audit {
            audit.write(&trip.entry());
        }
    }
    for id in pending {
        match actuator.restore(&id).await {
            Ok(Some(restored)) => {
                told = told.and(print(&format!("{}: {restored}\n", short(&id))));
                let how = format!("by `paceline restore`, {restored}");
                if let Some(audit) = &mut audit {
                    audit.write(&Entry::Restored { container: id, how });
                }
            }
            Ok(None) => {}
            Err(error) => {
                failed += 1;
                let why = plain(&format!("{:#}", anyhow::Error::from(error)));
                told = told.and(print(&format!("{}: NOT put back: {why}\n", short(&id))));
            }
        }
    }
    let left = unread.len();
    for error in unread {
        let why = plain(&format!("{:#}", anyhow::Error::from(error)));
        told = told.and(print(&format!("a move was neither completed nor undone: {why}\n")));
    }
    anyhow::ensure!(failed == 0, "{failed} containers are not what they were");
    anyhow::ensure!(left == 0, "{left} moves are left in their middle");
    told?;
    Ok(ExitCode::SUCCESS)
}

/// The log of the runs. Limits are put back with it or without.
fn audit(folder: &Path) -> Option<Audit> {
    Audit::open(folder)
        .inspect_err(|error| {
            let source = std::error::Error::source(error).map(ToString::to_string);
            warn!("nothing is added to the audit log: {error}: {}", source.unwrap_or_default());
        })
        .ok()
}
