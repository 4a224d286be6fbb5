//! Moves between the nodes of one machine, by either method.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Containers;
use crate::migration::journal::Folder;
use crate::migration::moves::MigrationWorker;
use crate::migration::{
    Ended, MigrationMethod, MigrationResult, Move, NewsSender, Settings, execute,
};

/// The containers of one engine, and how they are moved.
#[derive(Debug)]
pub struct OneMachine {
    backend: Containers,
    journal: Folder,
    settings: Settings,
}

impl OneMachine {
    /// Moves containers by the method in `settings`. Moves are recorded in `journal`.
    pub fn new(backend: Containers, journal: Folder, settings: Settings) -> Self {
        Self { backend, journal, settings }
    }

    /// The method by which they are moved.
    pub fn method(&self) -> MigrationMethod {
        self.settings.by
    }

    /// Changes the CPUs of a container that keeps running.
    async fn change_cpus(&self, plan: Move) -> MigrationResult {
        let ended = match self.backend.set_cpus(&plan).await {
            Ok(()) => Ended::Moved,
            Err(error) => Ended::Stayed(format!("{:#}", anyhow::Error::from(error))),
        };
        MigrationResult { plan, ended, successor: None, saving: None, cost: Some(0.0) }
    }
}

impl MigrationWorker for OneMachine {
    async fn execute(
        &self,
        plan: Move,
        ending: CancellationToken,
        tell: NewsSender,
    ) -> MigrationResult {
        match self.settings.by {
            MigrationMethod::Restart => {
                let within = Duration::from_secs_f64(self.settings.within);
                execute(plan, &self.backend, &self.journal, (within, &ending), &tell).await
            }
            MigrationMethod::Cpuset => self.change_cpus(plan).await,
        }
    }
}
