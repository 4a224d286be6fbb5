//! Moves that an earlier manager left unfinished and that cannot be finished yet, for example
//! because an agent does not answer. They are tried again. Until then their jobs may be frozen.

use std::collections::BTreeSet;

use paceline_node::migration::journal::JournalError;
use paceline_node::migration::{self, Ended, MigrationResult};
use paceline_policy::{JobId, Moment};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Manager;

/// The pause between two tries, in seconds.
const RETRY_INTERVAL: f64 = 15.0;

/// The jobs of these moves.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    jobs: BTreeSet<String>,
    again_at: Moment,
    pub(super) tried: JoinSet<Recovered>,
}

/// The result of a try: the readable moves, and the errors of unreadable ones.
type Recovered = (Vec<MigrationResult>, Vec<JournalError>);

impl Stuck {
    pub(super) fn has(&self, job: &JobId) -> bool {
        self.jobs.contains(job.as_str())
    }
}

impl Manager {
    /// Handles the result of a try.
    pub(super) fn recovered(&mut self, (results, unread): Recovered) {
        self.stuck.jobs.clear();
        self.stuck.again_at = self.clock.now().after(RETRY_INTERVAL);
        for result in results {
            let entry = result.entry();
            self.write(&entry);
            match &result.ended {
                Ended::Stuck(why) => {
                    let job = &result.plan.job;
                    warn!("cannot complete or undo the move of job {job}: {why}; retrying");
                    self.stuck.jobs.insert(result.plan.job.clone());
                }
                Ended::Moved | Ended::Stayed(_) => {
                    info!("finished a move that an earlier manager had left: {entry}");
                }
            }
        }
        for error in unread {
            warn!("cannot finish a move that an earlier manager had left: {error}");
        }
    }

    /// Completes or undoes the moves that an earlier manager left unfinished.
    pub(super) async fn recover(&mut self) {
        let Some(moves) = &self.moves else { return };
        let services = moves.worker().services().clone();
        let recovered = migration::recover(&services, &services, |_| true).await;
        self.recovered(recovered);
    }

    /// Tries stuck moves again when the pause is over.
    pub(super) fn try_again(&mut self, now: Moment) {
        let waits = self.stuck.jobs.is_empty() || now < self.stuck.again_at;
        let Some(moves) = self.moves.as_ref().filter(|_| !waits && self.stuck.tried.is_empty())
        else {
            return;
        };
        let (services, jobs) = (moves.worker().services().clone(), self.stuck.jobs.clone());
        self.stuck.tried.spawn(async move {
            migration::recover(&services, &services, |plan| jobs.contains(&plan.job)).await
        });
    }
}
