//! `fifo`, a baseline for KOD2: every task is bound by itself, as the plain Kubernetes scheduler
//! does it.
//!
//! Waiting jobs come in the order in which they were submitted, a job's parameter servers before
//! its workers. A task is bound to the idlest node on which it fits as soon as there is one, and
//! holds its room while the others of its job still wait. So two jobs can each hold what the other
//! lacks, and neither ever starts: that deadlock is what gangs are for.
//!
//! An answer's `start` names what is bound in this frame; a job may stand there in several frames
//! until it is whole. What waiting jobs hold is the policy's own state, since a frame tells only
//! the places of running ones.

use std::collections::BTreeMap;
use std::fmt;

use crate::cluster::gangs::{Layout, Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policies;
use crate::policies::kod2::{Amount, Arrivals, Asks, Crew, Crews, Nodes, Room};
use crate::unit::JobId;

/// What can be set: nothing.
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

    /// Forgets jobs that no longer wait, and what was bound to nodes that are gone.
    fn follow(&mut self, crews: &Crews<'_>, nodes: &Nodes<'_>) {
        self.held.retain(|id, held| {
            for counts in [&mut held.ps, &mut held.workers] {
                counts.retain(|name, _| nodes.find(name).is_some());
            }
            crews.waiting.binary_search_by(|crew| crew.id().cmp(id)).is_ok()
        });
    }

    /// What neither running nor waiting jobs hold.
    fn free(&self, crews: &Crews<'_>, nodes: &Nodes<'_>) -> Room {
        let mut room = crews.free(nodes);
        for crew in &crews.waiting {
            let Some(held) = self.held.get(crew.id()) else { continue };
            for (counts, need) in [(&held.ps, crew.server), (&held.workers, crew.worker)] {
                for (name, count) in counts {
                    if let Some(at) = nodes.find(name) {
                        room.take(at, need.times(*count));
                    }
                }
            }
        }
        room
    }

    /// Binds what fits of one job.
    fn bind(&mut self, crew: &Crew<'_>, room: &mut Room, nodes: &Nodes<'_>) -> Bound {
        let needs = crew.asks();
        let known = self.held.contains_key(crew.id());
        let mut held = self.held.remove(crew.id()).unwrap_or_default();
        let missing =
            |counts: &BTreeMap<String, u32>, needed: u32| needed.saturating_sub(total(counts));
        let now = Layout {
            ps: spread(crew.server, missing(&held.ps, needs.servers), room, nodes),
            workers: spread(crew.worker, missing(&held.workers, needs.workers), room, nodes),
        };
        for (counts, more) in [(&mut held.ps, &now.ps), (&mut held.workers, &now.workers)] {
            for (name, count) in more {
                *counts.entry(name.clone()).or_default() += count;
            }
        }
        let done = Asks { servers: total(&held.ps), workers: total(&held.workers) };
        let whole = done.servers >= needs.servers && done.workers >= needs.workers;
        let any = now != Layout::default();
        if known || any || whole {
            self.held.insert(crew.id().clone(), held);
        }
        Bound { starts: any || whole && !known, whole, now, why: Why { done, needs, whole } }
    }
}

/// What became of a job in one frame.
struct Bound {
    /// Whether it stands in `start`.
    starts: bool,
    whole: bool,
    now: Layout,
    why: Why,
}

fn total(counts: &BTreeMap<String, u32>) -> u32 {
    counts.values().copied().fold(0, u32::saturating_add)
}

/// Binds up to `missing` tasks, each to the idlest node on which it fits by then.
fn spread(
    need: Amount,
    mut missing: u32,
    room: &mut Room,
    nodes: &Nodes<'_>,
) -> BTreeMap<String, u32> {
    let mut bound = BTreeMap::new();
    while missing > 0 {
        let Some(at) = room.idlest_for(need) else { break };
        let rival = room.nodes().filter(|at| room.free(*at).covers(need)).nth(1).is_some();
        let count = room.together(at, need, missing, rival);
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
        let crews = Crews::new(frame, &nodes, &mut self.arrivals);
        self.follow(&crews, &nodes);
        let mut room = self.free(&crews, &nodes);
        let mut scaling = Scaling {
            t: frame.t,
            policy: Self::NAME,
            weights: crews.weights(),
            start: Vec::new(),
            scale_in: Vec::new(),
            scale_out: Vec::new(),
            waiting: Vec::new(),
        };
        for crew in crews.by_submission() {
            let Bound { starts, whole, now, why } = self.bind(crew, &mut room, &nodes);
            let why = policies::Why::Fifo(why);
            if starts {
                let (job, why) = (crew.id().clone(), why.clone());
                scaling.start.push(Start { job, layout: now, why });
            }
            if !(starts && whole) {
                scaling.waiting.push(Waiting { job: crew.id().clone(), why });
            }
        }
        scaling
    }
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// What is bound by now.
    pub done: Asks,
    /// What it needs.
    pub needs: Asks,
    /// Whether that is all.
    pub whole: bool,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, needs, whole } = self;
        write!(
            f,
            "{} of {} ps and {} of {} workers bound",
            done.servers, needs.servers, done.workers, needs.workers
        )?;
        f.write_str(if *whole {
            ": whole"
        } else {
            ": the rest fits on no node, these hold theirs"
        })
    }
}

#[cfg(test)]
mod tests;
