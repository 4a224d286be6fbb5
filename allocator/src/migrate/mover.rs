//! What is alike for all who have jobs moved: the driver of one machine, and a cluster's manager.

use paceline_policy::decision::Migration;
use tracing::{info, warn};

use super::Move;
use super::moves::{Came, Carriage, Moves};
use crate::audit::Entry;

/// Who has jobs moved, as a policy says.
pub(crate) trait Mover {
    /// By what they are moved.
    type Carriage: Carriage;

    /// The moves; `None` in a dry run: all is decided, and nothing moved.
    fn moves(&mut self) -> Option<&mut Moves<Self::Carriage>>;

    /// What is to be done, if it can be; or why it cannot.
    fn plan(&mut self, migration: &Migration) -> Result<Move, String>;

    /// Takes in what has come of a move.
    fn moved(&mut self, came: Came);

    /// Writes down what was done, or was not.
    fn write_down(&mut self, entry: &Entry);

    /// Has jobs moved.
    fn migrate(&mut self, wanted: &[Migration]) {
        let Some(moves) = self.moves() else {
            for Migration { job, from, to, reason } in wanted {
                info!(%job, "dry run: would move it from {from} to {to}: {reason}");
            }
            return;
        };
        wanted.iter().cloned().for_each(|migration| moves.want(migration));
        self.begin_moves();
    }

    /// Begins those whose targets are free.
    fn begin_moves(&mut self) {
        while let Some(migration) = self.moves().and_then(Moves::take) {
            let spent = self.moves().and_then(|moves| moves.are_spent(&migration.job));
            let plan = match spent {
                Some(times) => {
                    Err(format!("it has been moved {times} times, and may not be more often"))
                }
                None => self.plan(&migration),
            };
            match plan {
                Ok(plan) => {
                    let Migration { job, from, to, reason } = migration;
                    info!(%job, "it is moved from {from} to {to}: {reason}");
                    if let Some(moves) = self.moves() {
                        moves.begin(job, plan);
                    }
                }
                Err(why) => self.refuse_move(&migration, why),
            }
        }
    }

    /// A move is not even begun.
    fn refuse_move(&mut self, migration: &Migration, why: String) {
        let Migration { job, from, to, reason } = migration;
        warn!(%job, "it stays on {from} and does not move to {to}: {why}");
        self.write_down(&Entry::Stayed {
            job: job.to_string(),
            container: None,
            from: from.clone(),
            to: to.clone(),
            reason: reason.to_string(),
            why,
            seconds: None,
        });
    }

    /// Has every move come to its end: it is completed where it can no longer be undone.
    async fn end_moves(&mut self) {
        if let Some(moves) = self.moves() {
            moves.end();
        }
        while let Some(moves) = self.moves().filter(|moves| !moves.are_over()) {
            let came = moves.came().await;
            self.moved(came);
        }
    }
}

/// What has come of a move, for ever to come where nothing is moved.
pub(crate) async fn came<C: Carriage>(moves: &mut Option<Moves<C>>) -> Came {
    match moves {
        Some(moves) => moves.came().await,
        None => std::future::pending().await,
    }
}
