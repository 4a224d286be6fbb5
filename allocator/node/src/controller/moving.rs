//! Moves jobs from one node to another, as the policy decides.

use paceline_api::audit::Entry;
use paceline_api::live::snapshot::Standing;
use paceline_policy::decision::Migration;
use paceline_policy::{Event, JobId};

use super::Controller;
use super::engine_events::Touched;
use crate::migration::containers::{Containers, OneMachine};
use crate::migration::journal::Folder;
use crate::migration::mover::MigrationHost;
use crate::migration::moves::{MigrationEvent, MigrationQueue};
use crate::migration::procedure::Procedure;
use crate::migration::{Ended, MigrationMethod, MigrationResult, Move, News, Settings};

impl Controller {
    /// Lets the controller move jobs with `backend`. Moves are recorded in `journal`.
    #[must_use]
    pub fn moving_by(self, backend: Containers, journal: Folder, settings: Settings) -> Self {
        let worker = OneMachine::new(backend, journal, settings);
        Self { moves: Some(MigrationQueue::new(worker, settings.most)), ..self }
    }

    /// The method by which jobs are moved; the default where none are.
    pub(super) fn method(&self) -> MigrationMethod {
        self.moves.as_ref().map(|moves| moves.worker().method()).unwrap_or_default()
    }

    /// Takes in progress of a move.
    fn migration_news(&mut self, job: &JobId, news: News) {
        let Some(plan) = self.moves.as_ref().and_then(|moves| moves.plan(job)) else { return };
        match news {
            News::Made { successor } => {
                self.inventory.hold_back(successor, plan.source.clone(), job.clone());
            }
            News::Frozen => {
                let (source, to) = (plan.source.clone(), plan.to.clone());
                if let Some(candidate) = self.inventory.get(&source) {
                    candidate.depart();
                }
                self.apply_event(Event::Moving(job.clone(), to));
            }
            News::Now(_) => {}
        }
    }

    /// Takes in the result of a move.
    fn migration_over(&mut self, job: &JobId, result: MigrationResult) {
        self.tally.moved(&result);
        self.recorder.write(&result.entry());
        result.log();
        let MigrationResult { plan, ended, successor, .. } = result;
        match ended {
            Ended::Moved => {
                match &successor {
                    Some(successor) => self.inventory.replacements().admit(successor),
                    None => self.changed_cpus(&plan.source, &plan.to),
                }
                // A survey that began before the end of the move is out of date.
                self.inventory.discard_survey();
                self.touched.add_all(Touched::Any);
                self.timetable.survey_now(self.clock.now());
            }
            Ended::Stayed(_) | Ended::Stuck(_) => {
                if let Some(successor) = &successor {
                    self.inventory.replacements().forget(successor);
                }
                self.resume_at_source(job, &plan);
            }
        }
    }

    /// Manages a job again at the source of a move that failed, if its container still exists.
    fn resume_at_source(&mut self, job: &JobId, plan: &Move) {
        match self.inventory.get(&plan.source).map(|candidate| candidate.standing) {
            Some(Standing::Moving) => {
                // The decision engine counts it at the source until it appears there again.
                self.apply_event(Event::Moving(job.clone(), plan.from.clone()));
                self.inventory.take_back(&plan.source);
            }
            Some(_) => {}
            None => self.end_of(job),
        }
    }

    /// A job continues in the same container, on other CPUs.
    fn changed_cpus(&mut self, container: &str, to: &str) {
        let machine = self.inventory.machine().clone();
        let Some(candidate) = self.inventory.get(container) else { return };
        for event in candidate.settle_on(to, &machine) {
            self.apply_event(event);
        }
    }
}

impl MigrationHost for Controller {
    type MigrationWorker = OneMachine;

    fn moves(&mut self) -> Option<&mut MigrationQueue<OneMachine>> {
        self.moves.as_mut()
    }

    fn plan(&mut self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
        let gone = || "it is not managed any more".to_owned();
        let source = self.inventory.container(job).ok_or_else(gone)?.to_owned();
        let nodes = self.inventory.nodes();
        let target = nodes.get(to).ok_or_else(|| format!("node {to} is unknown"))?;
        let place = target.cpus.to_string();
        let method = self.method();
        let kept = self.writes.as_ref().map(|writes| writes.actuator().originally(&source));
        let kept = kept.transpose().map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        let candidate = self.inventory.get(&source).ok_or_else(gone)?;
        if candidate.standing != Standing::Managed {
            return Err("it is pinned or is being ended".to_owned());
        }
        if candidate.node() != Some(from.as_str()) {
            return Err(format!("it is not on {from}"));
        }
        if let Some(why) = candidate.unmovable(method) {
            return Err(why);
        }
        // Without recorded original limits, nothing was written yet: the description holds them.
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
            procedure: Procedure::default(),
        })
    }

    fn moved(&mut self, event: MigrationEvent) {
        match event {
            MigrationEvent::News(job, news) => self.migration_news(&job, news),
            MigrationEvent::Over(job, result) => {
                self.migration_over(&job, *result);
                self.begin_moves();
                self.decide_soon();
            }
        }
        self.publish();
    }

    fn write_down(&mut self, entry: &Entry) {
        self.recorder.write(entry);
    }
}
