//! Jobs that are moved from one node to another, as the policy says.

use paceline_policy::decision::Migration;
use paceline_policy::{Event, JobId};
use tracing::{info, warn};

use super::Driver;
use super::engine_events::Touched;
use crate::audit::Entry;
use crate::live::snapshot::Standing;
use crate::migrate::containers::{Containers, OneMachine};
use crate::migrate::journal::Folder;
use crate::migrate::moves::{Came, Moves};
use crate::migrate::procedure::Procedure;
use crate::migrate::{Ended, Means, Move, News, Settings, Trip};

impl Driver {
    /// Jobs are moved by this; `journal` is where that is written down.
    #[must_use]
    pub fn moving_by(self, carrier: Containers, journal: Folder, settings: Settings) -> Self {
        let carriage = OneMachine::new(carrier, journal, settings);
        Self { moves: Some(Moves::new(carriage, settings.most)), ..self }
    }

    /// By what jobs are moved, or would be.
    pub(super) fn means(&self) -> Means {
        self.moves.as_ref().map(|moves| moves.carriage().means()).unwrap_or_default()
    }

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
                Err(why) => self.refuse(&migration, why),
            }
        }
    }

    /// What is to be done, if it can be.
    fn plan(&mut self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
        let gone = || "it is not managed any more".to_owned();
        let source = self.roster.container(job).ok_or_else(gone)?.to_owned();
        let nodes = self.roster.nodes();
        let target = nodes.get(to).ok_or_else(|| format!("there is no node {to}"))?;
        let place = target.cpus.to_string();
        let moves = self.moves.as_ref().ok_or_else(gone)?;
        if let Some(times) = moves.are_spent(job) {
            return Err(format!("it has been moved {times} times, and may not be more often"));
        }
        let means = self.means();
        let kept = self.hands.as_ref().map(|hands| hands.actuator().originally(&source));
        let kept = kept.transpose().map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        let candidate = self.roster.get(&source).ok_or_else(gone)?;
        if candidate.standing != Standing::Managed {
            return Err("it is held or on its way to its end".to_owned());
        }
        if candidate.node() != Some(from.as_str()) {
            return Err(format!("it is not on {from}"));
        }
        if let Some(why) = candidate.unmovable(means) {
            return Err(why);
        }
        // Where nothing is kept, nothing was written yet.
        let described = candidate.container.host_config;
        let limits = kept.flatten().map_or(described, |original| original.host_config);
        Ok(Move {
            job: job.to_string(),
            from: from.clone(),
            to: to.clone(),
            place,
            reason: *reason,
            source,
            name: candidate.container.name.clone(),
            limits,
            saved: None,
            course: Procedure::default(),
        })
    }

    /// Takes in what has come of a move.
    pub(super) fn moved(&mut self, came: Came) {
        match came {
            Came::News(job, news) => self.heard(&job, news),
            Came::Over(job, trip) => {
                self.arrived(&job, *trip);
                self.begin_moves();
                self.hurry();
            }
        }
        self.publish();
    }

    fn heard(&mut self, job: &JobId, news: News) {
        let Some(plan) = self.moves.as_ref().and_then(|moves| moves.plan(job)) else { return };
        match news {
            News::Made { successor } => {
                self.roster.withhold(successor, plan.source.clone(), job.clone());
            }
            News::Frozen => {
                let (source, to) = (plan.source.clone(), plan.to.clone());
                if let Some(candidate) = self.roster.get(&source) {
                    candidate.depart();
                }
                self.tell(Event::Moving(job.clone(), to));
            }
            News::Now(_) => {}
        }
    }

    fn arrived(&mut self, job: &JobId, trip: Trip) {
        self.tally.moved(&trip);
        self.write(&trip.entry());
        let Trip { plan, ended, successor, cost, .. } = trip;
        match ended {
            Ended::Moved => {
                let Move { from, to, source, .. } = plan;
                let seconds = cost.unwrap_or_default();
                info!(%job, "it has moved from {from} to {to}, {seconds:.1} s without progress");
                match &successor {
                    Some(successor) => self.roster.heirs().let_in(successor),
                    None => self.repinned(&source, &to),
                }
                // What the engine was asked before the move was over is out of date.
                self.roster.survey_no_more();
                self.touched.add_all(Touched::Any);
                self.refresh_at = self.clock.now();
            }
            Ended::Stayed(why) | Ended::Stuck(why) => {
                if let Some(successor) = &successor {
                    self.roster.heirs().forget(successor);
                }
                warn!(%job, "it stays on {} and does not move to {}: {why}", plan.from, plan.to);
                self.back(job, &plan);
            }
        }
    }

    /// A job that was frozen goes on where it was, if it is still there.
    fn back(&mut self, job: &JobId, plan: &Move) {
        match self.roster.get(&plan.source).map(|candidate| candidate.standing) {
            Some(Standing::Moving) => {
                // It counts at the source until it appears there again.
                self.tell(Event::Moving(job.clone(), plan.from.clone()));
                self.roster.take_back(&plan.source);
            }
            Some(_) => {}
            None => self.end_of(job),
        }
    }

    /// A job runs on, on other CPUs.
    fn repinned(&mut self, container: &str, to: &str) {
        let machine = self.roster.machine().clone();
        let Some(candidate) = self.roster.get(container) else { return };
        for event in candidate.settle_on(to, &machine) {
            self.tell(event);
        }
    }

    /// A move is not even begun.
    fn refuse(&mut self, migration: &Migration, why: String) {
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
pub(super) async fn came(moves: &mut Option<Moves<OneMachine>>) -> Came {
    match moves {
        Some(moves) => moves.came().await,
        None => std::future::pending().await,
    }
}
