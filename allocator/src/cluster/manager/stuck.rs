//! Moves that an earlier manager was killed in the middle of, and that cannot be brought to their end
//! yet: an agent may not be there. They are tried again; until then their jobs may be frozen.

use std::collections::BTreeSet;

use paceline_policy::{JobId, Moment};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Manager;
use crate::migrate::journal::JournalError;
use crate::migrate::{self, Ended, Trip};

/// How many seconds later they are tried again.
const RETRY: f64 = 15.0;

/// The jobs of these moves.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    jobs: BTreeSet<String>,
    again_at: Moment,
    pub(super) tried: JoinSet<Recovered>,
}

/// What has come of a try: of moves that could be read, and why others could not.
type Recovered = (Vec<Trip>, Vec<JournalError>);

impl Stuck {
    pub(super) fn has(&self, job: &JobId) -> bool {
        self.jobs.contains(job.as_str())
    }
}

impl Manager {
    /// Takes in what has come of a try.
    pub(super) fn recovered(&mut self, (trips, unread): Recovered) {
        self.stuck.jobs.clear();
        self.stuck.again_at = self.clock.now().after(RETRY);
        for trip in trips {
            let entry = trip.entry();
            self.write(&entry);
            match &trip.ended {
                Ended::Stuck(why) => {
                    let job = &trip.plan.job;
                    warn!("the move of job {job} can be neither completed nor undone yet: {why}");
                    self.stuck.jobs.insert(trip.plan.job.clone());
                }
                Ended::Moved | Ended::Stayed(_) => {
                    info!("an earlier manager left a move in its middle: {entry}");
                }
            }
        }
        for error in unread {
            warn!("a move that an earlier manager left is as it was: {error}");
        }
    }

    /// Tries again what is stuck, when it is time to.
    pub(super) fn try_again(&mut self, now: Moment) {
        let waits = self.stuck.jobs.is_empty() || now < self.stuck.again_at;
        let Some(moves) = self.moves.as_ref().filter(|_| !waits && self.stuck.tried.is_empty())
        else {
            return;
        };
        let (services, jobs) = (moves.carriage().services().clone(), self.stuck.jobs.clone());
        self.stuck.tried.spawn(async move {
            migrate::recover(&services, &services, |plan| jobs.contains(&plan.job)).await
        });
    }
}
