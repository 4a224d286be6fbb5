//! Moves of jobs from one machine to another.

use paceline_api::audit::Entry;
use paceline_api::live::snapshot::Standing;
use paceline_node::migration::mover::MigrationHost;
use paceline_node::migration::moves::{MigrationEvent, MigrationQueue};
use paceline_node::migration::procedure::Procedure;
use paceline_node::migration::{Ended, MigrationResult, Move, News};
use paceline_policy::JobId;
use paceline_policy::decision::Migration;
use paceline_runtime::HostCpu;

use super::Manager;
use crate::services::SwarmMigrationWorker;

impl MigrationHost for Manager {
    type MigrationWorker = SwarmMigrationWorker;

    fn moves(&mut self) -> Option<&mut MigrationQueue<SwarmMigrationWorker>> {
        self.moves.as_mut()
    }

    fn plan(&mut self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
        if self.stuck.has(job) {
            return Err("an earlier move of it is unfinished".to_owned());
        }
        let found = self.world.find(job).filter(|(node, _)| node == from);
        let (_, view) = found.ok_or_else(|| format!("it is not on {from}"))?;
        if view.standing != Standing::Managed {
            return Err("it is held or ending".to_owned());
        }
        let task = view.task.as_ref().ok_or("it is not a Swarm task")?;
        let swarm = self.watch.now();
        if let Some(why) = swarm.obstacles.get(&task.service) {
            return Err(why.clone());
        }
        let target = swarm.members.iter().find(|member| member.name == *to);
        let target = target.ok_or_else(|| format!("unknown machine {to}"))?;
        if let Some(why) = &target.trouble {
            return Err(format!("{to}: {why}"));
        }
        if !target.takes_tasks {
            return Err(format!("{to} no longer takes tasks"));
        }
        // Without it, nothing could prove there that the job goes on, nor undo the move.
        if !self.world.answers(to) {
            return Err(format!("the agent of {to} does not answer"));
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
            procedure: Procedure::default(),
        })
    }

    fn moved(&mut self, event: MigrationEvent) {
        match event {
            MigrationEvent::News(job, news) => self.on_news(&job, news),
            MigrationEvent::Over(job, result) => {
                self.over(&job, *result);
                self.begin_moves();
            }
        }
    }

    fn write_down(&mut self, entry: &Entry) {
        self.write(entry);
    }
}

impl Manager {
    fn on_news(&mut self, job: &JobId, news: News) {
        let plan = self.moves.as_ref().and_then(|moves| moves.plan(job));
        let Some(to) = plan.map(|plan| plan.to.clone()) else { return };
        match news {
            News::Made { successor } => self.world.hold_back(successor),
            News::Frozen => self.world.depart(self.clock.now(), job, &to),
            News::Now(_) => {}
        }
    }

    fn over(&mut self, job: &JobId, result: MigrationResult) {
        let moved = result.ended == Ended::Moved;
        self.tally.done += u64::from(moved);
        self.tally.failed += u64::from(!moved);
        self.tally.seconds += result.cost.unwrap_or_default();
        self.write(&result.entry());
        result.log();
        let MigrationResult { plan: Move { from, source, .. }, ended, successor, .. } = result;
        match ended {
            Ended::Moved => self.world.arrived(job, source, successor.as_deref()),
            Ended::Stayed(_) | Ended::Stuck(_) => {
                self.world.stays(self.clock.now(), job, &from, successor.as_deref());
            }
        }
    }
}
