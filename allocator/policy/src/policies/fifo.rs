//! `fifo`, a baseline for KOD2: every task is bound by itself, as by the plain Kubernetes scheduler.
//!
//! Waiting jobs come in the order in which they were submitted, a job's parameter servers before
//! its workers. A task is bound to the idlest node on which it fits as soon as there is one. It
//! holds its capacity while the others of its job still wait. So two jobs can each hold what the
//! other lacks, and neither ever starts. Gang scheduling avoids this deadlock.
//!
//! An answer's `start` names what is bound in this frame; a job may appear there in several frames
//! until it is complete. What waiting jobs hold is the policy's own state, since a frame gives only
//! the placement of running ones.

use std::collections::BTreeMap;

use crate::cluster::gangs::{Layout, Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policies::kod2::{Amount, Arrivals, FreeCapacity, GangPlan, GangPlans, Nodes};
use crate::reason;
use crate::reason::fifo::Why;
use crate::reason::kod2::TaskCounts;
use crate::unit::JobId;

/// No parameters.
pub(super) const PARAMETERS: &[Parameter] = &[];

/// The policy and its state.
#[derive(Debug, Default)]
pub struct Fifo {
    arrivals: Arrivals,
    /// What the waiting jobs hold.
    held: BTreeMap<JobId, Layout>,
}

impl Fifo {
    /// Its name.
    pub const NAME: &'static str = "fifo";

    /// Checks the parameters: there are none.
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        Reader::new(Self::NAME, PARAMETERS, params)?;
        Ok(Self::default())
    }

    /// Forgets jobs that no longer wait, and tasks on nodes that are gone.
    fn follow(&mut self, gangs: &GangPlans<'_>, nodes: &Nodes<'_>) {
        self.held.retain(|id, held| {
            for counts in [&mut held.ps, &mut held.workers] {
                counts.retain(|name, _| nodes.find(name).is_some());
            }
            gangs.waiting.binary_search_by(|gang| gang.id().cmp(id)).is_ok()
        });
    }

    /// The capacity that neither running nor waiting jobs hold.
    fn free(&self, gangs: &GangPlans<'_>, nodes: &Nodes<'_>) -> FreeCapacity {
        let mut room = gangs.free(nodes);
        for gang in &gangs.waiting {
            let Some(held) = self.held.get(gang.id()) else { continue };
            for (counts, need) in [(&held.ps, gang.server), (&held.workers, gang.worker)] {
                for (name, count) in counts {
                    if let Some(at) = nodes.find(name) {
                        room.take(at, need.times(*count));
                    }
                }
            }
        }
        room
    }

    /// Binds the tasks of one job that fit.
    fn bind(&mut self, gang: &GangPlan<'_>, room: &mut FreeCapacity, nodes: &Nodes<'_>) -> Bound {
        let needs = gang.needs();
        let known = self.held.contains_key(gang.id());
        let mut held = self.held.remove(gang.id()).unwrap_or_default();
        let missing =
            |counts: &BTreeMap<String, u32>, needed: u32| needed.saturating_sub(total(counts));
        let now = Layout {
            ps: spread(gang.server, missing(&held.ps, needs.servers), room, nodes),
            workers: spread(gang.worker, missing(&held.workers, needs.workers), room, nodes),
        };
        for (counts, more) in [(&mut held.ps, &now.ps), (&mut held.workers, &now.workers)] {
            for (name, count) in more {
                *counts.entry(name.clone()).or_default() += count;
            }
        }
        let done = TaskCounts { servers: total(&held.ps), workers: total(&held.workers) };
        let complete = done.servers >= needs.servers && done.workers >= needs.workers;
        let any = now != Layout::default();
        if known || any || complete {
            self.held.insert(gang.id().clone(), held);
        }
        Bound {
            starts: any || complete && !known,
            complete,
            now,
            why: Why { done, needs, complete },
        }
    }
}

/// The result of binding a job in one frame.
struct Bound {
    /// Whether it appears in `start`.
    starts: bool,
    complete: bool,
    now: Layout,
    why: Why,
}

fn total(counts: &BTreeMap<String, u32>) -> u32 {
    counts.values().copied().fold(0, u32::saturating_add)
}

/// Binds up to `missing` tasks, one by one, to the idlest node on which each fits.
fn spread(
    need: Amount,
    mut missing: u32,
    room: &mut FreeCapacity,
    nodes: &Nodes<'_>,
) -> BTreeMap<String, u32> {
    let mut bound = BTreeMap::new();
    while missing > 0 {
        let Some(at) = room.idlest_for(need) else { break };
        let rival = room.nodes().filter(|at| room.free(*at).covers(need)).nth(1).is_some();
        let count = room.batch_size(at, need, missing, rival);
        room.take(at, need.times(count));
        *bound.entry(nodes.name(at).to_owned()).or_default() += count;
        missing -= count;
    }
    bound
}

impl GangPolicy for Fifo {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn decide(&mut self, frame: &GangFrame) -> Scaling {
        let nodes = Nodes::new(&frame.nodes);
        let gangs = GangPlans::new(frame, &nodes, &mut self.arrivals);
        self.follow(&gangs, &nodes);
        let mut room = self.free(&gangs, &nodes);
        let mut scaling = Scaling {
            t: frame.t,
            policy: Self::NAME,
            weights: gangs.weights(),
            start: Vec::new(),
            scale_in: Vec::new(),
            scale_out: Vec::new(),
            waiting: Vec::new(),
        };
        for gang in gangs.by_submission() {
            let Bound { starts, complete, now, why } = self.bind(gang, &mut room, &nodes);
            let why = reason::Why::Fifo(why);
            if starts {
                let (job, why) = (gang.id().clone(), why.clone());
                scaling.start.push(Start { job, layout: now, why });
            }
            if !(starts && complete) {
                scaling.waiting.push(Waiting { job: gang.id().clone(), why });
            }
        }
        scaling
    }
}

#[cfg(test)]
mod tests;
