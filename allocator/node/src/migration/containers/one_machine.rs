//! Moves between the nodes of one machine, by either method.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Containers;
use crate::migration::execute::STEP_TIMEOUT;
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
        let ended = match timeout(STEP_TIMEOUT, self.backend.set_cpus(&plan)).await {
            Ok(Ok(())) => Ended::Moved,
            Ok(Err(error)) => Ended::Stayed(format!("{:#}", anyhow::Error::from(error))),
            Err(_) => Ended::Stayed(format!(
                "cannot change the container's CPUs: the engine has not answered within {} s",
                STEP_TIMEOUT.as_secs()
            )),
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use paceline_runtime::docker::Docker;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::migration::execute::tests::plan;

    #[tokio::test(start_paused = true)]
    async fn engine_that_hangs_at_a_change_of_cpus_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let _mute = UnixListener::bind(&socket).unwrap();
        let engine = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let backend = Containers::new(engine.into(), folder.path().join("proc"));
        let journal = Folder::open(&folder.path().join("state")).unwrap();
        let settings = Settings { by: MigrationMethod::Cpuset, ..Settings::default() };
        let (tell, _) = mpsc::channel(1);
        let began = Instant::now();
        let worker = OneMachine::new(backend, journal, settings);
        let result = worker.execute(plan(), CancellationToken::new(), tell).await;
        let why = "cannot change the container's CPUs: the engine has not answered within 30 s";
        assert_eq!(result.ended, Ended::Stayed(why.to_owned()));
        assert!(began.elapsed() < 2 * STEP_TIMEOUT, "{:?}", began.elapsed());
    }
}
