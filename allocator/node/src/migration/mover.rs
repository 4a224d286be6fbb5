//! What the controller of one machine and a cluster's manager have in common for moves.

use paceline_api::audit::Entry;
use paceline_policy::decision::Migration;
use tokio::time::{Instant, timeout_at};
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

    /// Ends every move: one that cannot be undone any more is completed, others are undone. One that has not
    /// ended at `deadline` is given up. It stays in its journal, from which it is recovered later.
    #[expect(async_fn_in_trait, reason = "both implementations are ours and use one thread")]
    async fn end_moves(&mut self, deadline: Instant) {
        if let Some(moves) = self.moves() {
            moves.end();
        }
        while let Some(moves) = self.moves().filter(|moves| !moves.are_over()) {
            let Ok(event) = timeout_at(deadline, moves.next_event()).await else { break };
            self.moved(event);
        }
        let given_up = self.moves().map(MigrationQueue::give_up).unwrap_or_default();
        for event in given_up {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use paceline_policy::JobId;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::migration::execute::tests::plan;
    use crate::migration::{Ended, MigrationResult, NewsSender};

    /// A worker whose engine never answers.
    struct Mute;

    impl MigrationWorker for Mute {
        async fn execute(&self, _: Move, _: CancellationToken, _: NewsSender) -> MigrationResult {
            std::future::pending().await
        }
    }

    struct Host {
        moves: MigrationQueue<Mute>,
        over: Vec<Ended>,
    }

    impl MigrationHost for Host {
        type MigrationWorker = Mute;

        fn moves(&mut self) -> Option<&mut MigrationQueue<Mute>> {
            Some(&mut self.moves)
        }

        fn plan(&mut self, _: &Migration) -> Result<Move, String> {
            Ok(plan())
        }

        fn moved(&mut self, event: MigrationEvent) {
            if let MigrationEvent::Over(_, result) = event {
                self.over.push(result.ended);
            }
        }

        fn write_down(&mut self, _: &Entry) {}
    }

    #[tokio::test(start_paused = true)]
    async fn move_that_hangs_at_the_end_is_given_up() {
        let mut host = Host { moves: MigrationQueue::new(Mute, 1), over: Vec::new() };
        host.moves.begin(JobId::new("vae").unwrap(), plan());
        let (began, patience) = (Instant::now(), Duration::from_secs(15));
        host.end_moves(began + patience).await;
        assert!(began.elapsed() < 2 * patience, "{:?}", began.elapsed());
        let [Ended::Stuck(why)] = &host.over[..] else { panic!("{:?}", host.over) };
        assert!(why.contains("takes too long"), "{why}");
        assert!(host.moves.are_over());
    }
}
