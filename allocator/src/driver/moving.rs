//! Jobs that are moved from one node to another, as the policy says.

use paceline_policy::decision::Migration;
use paceline_policy::{Event, JobId};

use super::Driver;
use super::engine_events::Touched;
use crate::audit::Entry;
use crate::live::snapshot::Standing;
use crate::migrate::containers::{Containers, OneMachine};
use crate::migrate::journal::Folder;
use crate::migrate::mover::Mover;
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
        trip.log();
        let Trip { plan, ended, successor, .. } = trip;
        match ended {
            Ended::Moved => {
                match &successor {
                    Some(successor) => self.roster.heirs().let_in(successor),
                    None => self.repinned(&plan.source, &plan.to),
                }
                // What the engine was asked before the move was over is out of date.
                self.roster.survey_no_more();
                self.touched.add_all(Touched::Any);
                self.refresh_at = self.clock.now();
            }
            Ended::Stayed(_) | Ended::Stuck(_) => {
                if let Some(successor) = &successor {
                    self.roster.heirs().forget(successor);
                }
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
}

impl Mover for Driver {
    type Carriage = OneMachine;

    fn moves(&mut self) -> Option<&mut Moves<OneMachine>> {
        self.moves.as_mut()
    }

    fn plan(&mut self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
        let gone = || "it is not managed any more".to_owned();
        let source = self.roster.container(job).ok_or_else(gone)?.to_owned();
        let nodes = self.roster.nodes();
        let target = nodes.get(to).ok_or_else(|| format!("there is no node {to}"))?;
        let place = target.cpus.to_string();
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

    fn moved(&mut self, came: Came) {
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

    fn write_down(&mut self, entry: &Entry) {
        self.write(entry);
    }
}
