//! What the controller of one machine and a cluster's manager have in common for moves.

use paceline_api::audit::Entry;
use paceline_policy::decision::Migration;
use tracing::{info, warn};

use super::Move;
use super::moves::{MigrationEvent, MigrationQueue, MigrationWorker};

/// An owner of moves, which a policy decides.
pub trait MigrationHost {
    /// Carries out the moves.
    type MigrationWorker: MigrationWorker;

    /// The queue of moves; `None` in a dry run, in which moves are decided and not carried out.
    fn moves(&mut self) -> Option<&mut MigrationQueue<Self::MigrationWorker>>;

    /// The plan of a move, or why it is not possible.
    fn plan(&mut self, migration: &Migration) -> Result<Move, String>;

    /// Takes in progress or the result of a move.
    fn moved(&mut self, event: MigrationEvent);

    /// Records an entry in the audit log.
    fn write_down(&mut self, entry: &Entry);

    /// Queues the moves that a policy has decided, and begins those that can begin.
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

    /// Begins the moves whose targets are free.
    fn begin_moves(&mut self) {
        while let Some(migration) = self.moves().and_then(MigrationQueue::take) {
            let spent = self.moves().and_then(|moves| moves.are_spent(&migration.job));
            let plan = match spent {
                Some(times) => {
                    Err(format!("it has been moved {times} times, which is the maximum"))
                }
                None => self.plan(&migration),
            };
            match plan {
                Ok(plan) => {
                    let Migration { job, from, to, reason } = migration;
                    info!(%job, "moving it from {from} to {to}: {reason}");
                    if let Some(moves) = self.moves() {
                        moves.begin(job, plan);
                    }
                }
                Err(why) => self.refuse_move(&migration, why),
            }
        }
    }

    /// Records a move that is not begun.
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

    /// Ends every move: one that cannot be undone any more is completed, others are undone.
    #[expect(async_fn_in_trait, reason = "both implementations are ours and use one thread")]
    async fn end_moves(&mut self) {
        if let Some(moves) = self.moves() {
            moves.end();
        }
        while let Some(moves) = self.moves().filter(|moves| !moves.are_over()) {
            let event = moves.next_event().await;
            self.moved(event);
        }
    }
}

/// Waits for progress or the result of a move; never returns if jobs are not moved.
pub async fn next_event<C: MigrationWorker>(
    moves: &mut Option<MigrationQueue<C>>,
) -> MigrationEvent {
    match moves {
        Some(moves) => moves.next_event().await,
        None => std::future::pending().await,
    }
}
