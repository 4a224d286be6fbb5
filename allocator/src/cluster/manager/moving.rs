//! Jobs that the manager has moved from one machine to another.

use paceline_policy::JobId;
use paceline_policy::decision::Migration;

use super::Manager;
use crate::audit::Entry;
use crate::cluster::services::Between;
use crate::live::snapshot::Standing;
use crate::migrate::mover::Mover;
use crate::migrate::moves::{Came, Moves};
use crate::migrate::procedure::Procedure;
use crate::migrate::{Ended, Move, News, Trip};
use crate::observe::container::HostCpu;

impl Mover for Manager {
    type Carriage = Between;

    fn moves(&mut self) -> Option<&mut Moves<Between>> {
        self.moves.as_mut()
    }

    fn plan(&mut self, migration: &Migration) -> Result<Move, String> {
        let Migration { job, from, to, reason } = migration;
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
        if !target.takes_tasks {
            return Err(format!("{to} takes no tasks any more"));
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

    fn moved(&mut self, came: Came) {
        match came {
            Came::News(job, news) => self.on_news(&job, news),
            Came::Over(job, trip) => {
                self.over(&job, *trip);
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
        trip.log();
        let Trip { plan: Move { from, source, .. }, ended, successor, .. } = trip;
        match ended {
            Ended::Moved => self.world.arrived(job, source, successor.as_deref()),
            Ended::Stayed(_) | Ended::Stuck(_) => {
                self.world.stays(self.clock.now(), job, &from, successor.as_deref());
            }
        }
    }
}
