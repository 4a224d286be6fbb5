//! Jobs that the manager has moved from one machine to another.

use paceline_policy::JobId;
use paceline_policy::decision::Migration;
use tracing::{info, warn};

use super::Manager;
use crate::audit::Entry;
use crate::cluster::services::Between;
use crate::live::snapshot::Standing;
use crate::migrate::moves::{Came, Moves};
use crate::migrate::procedure::Procedure;
use crate::migrate::{Ended, Move, News, Trip};
use crate::observe::container::HostCpu;

impl Manager {
    /// Has jobs moved.
    pub(super) fn migrate(&mut self, wanted: &[Migration]) {
        let Some(moves) = &mut self.moves else {
            for Migration { job, from, to, reason } in wanted {
                info!(%job, "dry run: would move it from {from} to {to}: {reason}");
            }
            return;
        };
        wanted.iter().cloned().for_each(|migration| moves.want(migration));
        self.begin_moves();
    }

    fn begin_moves(&mut self) {
        while let Some(migration) = self.moves.as_mut().and_then(Moves::take) {
            match self.plan(&migration) {
                Ok(plan) => {
                    let Migration { job, from, to, reason } = migration;
                    info!(%job, "it is moved from {from} to {to}: {reason}");
                    if let Some(moves) = &mut self.moves {
                        moves.begin(job, plan);
                    }
                }
                Err(why) => self.refuse_move(&migration, why),
            }
        }
    }

    /// What is to be done, if it can be.
    fn plan(&self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
        let spent = self.moves.as_ref().and_then(|moves| moves.are_spent(job));
        if let Some(times) = spent {
            return Err(format!("it has been moved {times} times, and may not be more often"));
        }
        if self.stuck.has(job) {
            return Err("an earlier move of it is not over yet".to_owned());
        }
        let found = self.world.find(job).filter(|(node, _)| node == from);
        let (_, view) = found.ok_or_else(|| format!("it is not on {from}"))?;
        if view.standing != Standing::Managed {
            return Err("it is held or on its way to its end".to_owned());
        }
        let task = view.task.as_ref().ok_or("it is no task of the Swarm")?;
        let swarm = self.watch.now();
        if let Some(why) = swarm.obstacles.get(&task.service) {
            return Err(why.clone());
        }
        let target = swarm.members.iter().find(|member| member.name == *to);
        let target = target.ok_or_else(|| format!("there is no machine {to}"))?;
        if let Some(why) = &target.trouble {
            return Err(format!("{to}: {why}"));
        }
        Ok(Move {
            job: job.to_string(),
            from: from.clone(),
            to: to.clone(),
            place: target.id.clone(),
            reason: *reason,
            source: view.container.clone(),
            name: task.service.clone(),
            limits: HostCpu::default(),
            saved: None,
            course: Procedure::default(),
        })
    }

    /// Takes in what has come of a move.
    pub(super) fn moved(&mut self, came: Came) {
        match came {
            Came::News(job, news) => self.on_news(&job, news),
            Came::Over(job, trip) => {
                self.over(&job, *trip);
                self.begin_moves();
            }
        }
    }

    fn on_news(&mut self, job: &JobId, news: News) {
        let plan = self.moves.as_ref().and_then(|moves| moves.plan(job));
        let Some(to) = plan.map(|plan| plan.to.clone()) else { return };
        match news {
            News::Made { successor } => self.world.withhold(successor),
            News::Frozen => self.world.depart(self.clock.now(), job, &to),
            News::Now(_) => {}
        }
    }

    fn over(&mut self, job: &JobId, trip: Trip) {
        let moved = trip.ended == Ended::Moved;
        self.tally.done += u64::from(moved);
        self.tally.failed += u64::from(!moved);
        self.tally.seconds += trip.cost.unwrap_or_default();
        self.write(&trip.entry());
        let Trip { plan: Move { from, to, source, .. }, ended, successor, cost, .. } = trip;
        match ended {
            Ended::Moved => {
                let seconds = cost.unwrap_or_default();
                info!(%job, "it has moved from {from} to {to}, {seconds:.1} s without progress");
                self.world.arrived(job, source, successor.as_deref());
            }
            Ended::Stayed(why) | Ended::Stuck(why) => {
                warn!(%job, "it stays on {from} and does not move to {to}: {why}");
                self.world.stays(self.clock.now(), job, &from, successor.as_deref());
            }
        }
    }

    /// A move is not even begun.
    fn refuse_move(&mut self, migration: &Migration, why: String) {
        let Migration { job, from, to, reason } = migration;
        warn!(%job, "it stays on {from} and does not move to {to}: {why}");
        self.write(&Entry::Stayed {
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
    pub(super) async fn end_moves(&mut self) {
        if let Some(moves) = &mut self.moves {
            moves.end();
        }
        while let Some(moves) = self.moves.as_mut().filter(|moves| !moves.are_over()) {
            let came = moves.came().await;
            self.moved(came);
        }
    }
}

/// What has come of a move, for ever to come where nothing is moved.
pub(super) async fn came(moves: &mut Option<Moves<Between>>) -> Came {
    match moves {
        Some(moves) => moves.came().await,
        None => std::future::pending().await,
    }
}
