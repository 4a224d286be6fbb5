//! `paceline restore`: restores limits after a crash.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use futures_util::{StreamExt, stream};
use paceline_api::audit::{Audit, Entry};
use paceline_api::plain::{plain, print};
use paceline_api::signals::Signals;
use paceline_api::usage::BadUsage;
use paceline_node::limits::originals::{Originals, START_WAIT, Scope};
use paceline_node::limits::{Actuator, Leftover, RESTORE_ALL_TIMEOUT, RESTORE_CONCURRENCY};
use paceline_node::migration::containers::Containers;
use paceline_node::migration::journal::{Folder, Journal, JournalError, Pending};
use paceline_node::migration::{self, Ended, MigrationBackend, MigrationResult};
use tokio::time::Instant;
use tracing::warn;

use super::containerized::{self, ContainerizedRun};
use super::engine::EngineArgs;
use super::locks;
use super::run::absolute;
use super::state::StateArgs;
use crate::config;
use crate::log::Log;

/// Restore every limit that a killed allocator left behind
///
/// For each container it prints the limits that it found, those that it put back, and those that it
/// read back. The exit code is 0 only if every container has the limits that its owner wants. A
/// container that cannot be reached is kept for the next time. An unfinished move of a job to another
/// node is completed or undone.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    state: StateArgs,

    /// The TOML file of the run. Only its state folder is used, so other settings may be invalid
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RestoreArgs {
    fn folder(&self) -> Result<PathBuf, BadUsage> {
        let file = self.config.as_deref().map(config::state_dir).transpose()?.flatten();
        let folder = self.state.over(file.as_ref()).folder();
        // With a mistyped folder, limits would stay in force unnoticed.
        if self.state.state_dir.is_some() && !folder.exists() {
            let folder = plain(&folder.display().to_string());
            return Err(BadUsage(format!(
                "cannot restore from {folder}: it does not exist; check --state-dir"
            )));
        }
        Ok(folder)
    }
}

pub(super) async fn run(
    args: RestoreArgs,
    engine: &EngineArgs,
    log: &Log,
) -> anyhow::Result<ExitCode> {
    let folder = args.folder()?;
    let runtime = engine.connect().await?;
    if engine.needs_container()? {
        let folder = std::path::absolute(folder)?;
        let arguments = ["restore", "--state-dir", &absolute(&folder)?].map(str::to_owned);
        let arguments = arguments.into_iter().chain(log.given().arguments()).collect();
        let command =
            ContainerizedRun { arguments, folders: vec![folder], locks: true, otlp: false };
        return containerized::run(&runtime, engine, command, &Signals::listen()?).await;
    }
    let described = engine.info(&runtime).await?;
    let originals = Originals::open_to_restore(&folder, &described.id, "paceline restore")?
        .lock_engine(&locks::folder(), &described.data, (Scope::Recorded, START_WAIT))?;
    let journal = Folder::open(originals.folder());
    let looked_in = originals.folder().to_owned();
    let machine = described.machine;
    let containers = Containers::new(runtime.clone(), machine.proc.clone());
    let actuator = Actuator::new(runtime, originals, machine.proc, machine.cpus);
    let leftovers = actuator.adopt_leftovers().await;
    let unfinished = match &journal {
        Ok(journal) => {
            let Pending { plans, errors } = journal.pending().await;
            !plans.is_empty() || !errors.is_empty()
        }
        Err(_) => true,
    };
    if actuator.pending().is_empty() && !unfinished && leftovers.is_empty() {
        print(&format!("nothing to restore in {}\n", plain(&looked_in.display().to_string())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut restore = Restore::new(audit(&folder));
    match journal {
        Ok(journal) => restore.all(&actuator, &containers, &journal).await,
        // Limits come back all the same.
        Err(error) => {
            restore.containers(&actuator, |_| true).await;
            restore.finished(Vec::new(), vec![error]);
        }
    }
    restore.leftovers(&leftovers);
    let Restore { printed, left, moves, .. } = restore;
    anyhow::ensure!(
        left.is_empty(),
        "{} containers are not as they were before: {}",
        left.len(),
        plain(&left.join(", "))
    );
    anyhow::ensure!(moves == 0, "cannot finish {moves} moves");
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// The restore so far.
struct Restore {
    began: Instant,
    /// Without it, limits are restored all the same.
    audit: Option<Audit>,
    /// A failed print must not stop the restoring of limits.
    printed: std::io::Result<()>,
    /// The names of containers that are not as they were.
    left: Vec<String>,
    /// How many moves cannot be finished.
    moves: usize,
}

impl Restore {
    fn new(audit: Option<Audit>) -> Self {
        Self { began: Instant::now(), audit, printed: Ok(()), left: Vec::new(), moves: 0 }
    }

    /// Restores the containers, and finishes the moves. A move that cannot be finished takes minutes, after
    /// which a service manager may end this program. So the containers that are not moved come first.
    async fn all(
        &mut self,
        actuator: &Actuator,
        backend: &impl MigrationBackend,
        journal: &impl Journal,
    ) {
        let plans = journal.pending().await.plans;
        let moving: BTreeSet<String> = plans.into_iter().map(|plan| plan.source).collect();
        self.containers(actuator, |id| !moving.contains(id)).await;
        let (moves, unread) = migration::recover(backend, journal, |_| true).await;
        self.finished(moves, unread);
        self.containers(actuator, |id| moving.contains(id)).await;
    }

    fn finished(&mut self, moves: Vec<MigrationResult>, unread: Vec<JournalError>) {
        for result in moves {
            if matches!(result.ended, Ended::Stuck(_)) {
                self.left.push(result.plan.name.clone());
            }
            self.say(&result.entry().to_string());
            self.write(&result.entry());
        }
        self.moves = unread.len();
        for error in unread {
            self.say(&format!("cannot finish a move: {:#}", anyhow::Error::from(error)));
        }
    }

    /// Restores the containers that `of` selects, several at once. If that takes long, limits in files are
    /// restored without the engine.
    async fn containers(&mut self, actuator: &Actuator, of: impl Fn(&str) -> bool) {
        let until = self.began + RESTORE_ALL_TIMEOUT;
        let restored = async |id: String| {
            if Instant::now() >= until {
                actuator.hurry();
            }
            let name = actuator.name_of(&id);
            let report = actuator.restore_and_report(&id).await;
            (id, name, report)
        };
        let selected = actuator.pending().into_iter().filter(|id| of(id));
        let mut all = pin!(stream::iter(selected).map(restored).buffered(RESTORE_CONCURRENCY));
        while let Some((id, name, report)) = all.next().await {
            match report {
                Ok(Some(report)) => {
                    self.say(&format!("{name}: {report}"));
                    let how = format!("by `paceline restore`, {}", report.outcome);
                    self.write(&Entry::Restored { container: id, how });
                }
                Ok(None) => {}
                Err(error) => {
                    let why = anyhow::Error::from(error);
                    self.say(&format!("{name}: NOT restored: {why:#}"));
                    self.left.push(name);
                }
            }
        }
    }

    fn leftovers(&mut self, leftovers: &[Leftover]) {
        for leftover in leftovers {
            self.say(&leftover.to_string());
            self.left.push(paceline_runtime::short(&leftover.id).to_owned());
        }
    }

    fn say(&mut self, line: &str) {
        let printed = print(&format!("{}\n", plain(line)));
        if self.printed.is_ok() {
            self.printed = printed;
        }
    }

    fn write(&mut self, entry: &Entry) {
        if let Some(audit) = &mut self.audit {
            audit.write(entry);
        }
    }
}

/// The audit log of the runs. Without it, limits are restored all the same.
fn audit(folder: &Path) -> Option<Audit> {
    Audit::open(folder)
        .inspect_err(|error| {
            let source = std::error::Error::source(error).map(ToString::to_string);
            warn!("cannot write the audit log: {error}: {}", source.unwrap_or_default());
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use paceline_node::migration::procedure::{Procedure, Step};
    use paceline_node::migration::{Move, StepError, StepOutcome};
    use paceline_policy::decision::Cause;
    use paceline_runtime::HostCpu;
    use paceline_runtime::docker::Docker;
    use serde_json::json;

    use super::*;

    /// An engine that carries out no step of a move.
    struct Broken;

    impl MigrationBackend for Broken {
        async fn carry_out(&self, _: Step, _: &Move) -> Result<StepOutcome, StepError> {
            Err(StepError::Refused("no".to_owned()))
        }
    }

    fn move_of(source: &str) -> Move {
        Move {
            job: "vae".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            place: "1".to_owned(),
            reason: Cause::Converged,
            source: source.to_owned(),
            name: "moved".to_owned(),
            limits: HostCpu::default(),
            saved: None,
            procedure: Procedure::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn limits_are_restored_before_the_moves_of_other_containers() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        std::fs::create_dir_all(state.join("engine")).unwrap();
        for private in [&state, &state.join("engine")] {
            std::fs::set_permissions(private, PermissionsExt::from_mode(0o700)).unwrap();
        }
        let host = json!({"nano_cpus": 0, "cpu_quota": 0, "cpu_period": 0, "cpu_shares": 0});
        for id in ["alone", "source"] {
            let record =
                json!({"format": 2, "id": id, "name": id, "host_config": host, "cgroup": null});
            std::fs::write(state.join(format!("engine/{id}.json")), record.to_string()).unwrap();
        }
        let originals = Originals::open(&state, "engine", "a test").unwrap();
        let journal = Folder::open(originals.folder()).unwrap();
        journal.write(&move_of("source")).await.unwrap();
        let socket = folder.path().join("engine.sock");
        let engine = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let actuator = Actuator::new(engine.into(), originals, folder.path().join("proc"), 2.0);
        let mut restore = Restore::new(None);
        restore.all(&actuator, &Broken, &journal).await;
        // Nothing can be done, so this is the order in which it was tried.
        assert_eq!(restore.left, ["alone", "moved", "source"]);
    }
}
