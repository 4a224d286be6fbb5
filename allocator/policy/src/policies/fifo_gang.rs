//! `fifo-gang`, a baseline for KOD2: first come, first served, and only complete jobs start.
//!
//! Waiting jobs come in the order in which they were submitted. A job starts when all its parameter
//! servers and its least number of workers fit, packed as KOD2 packs them (its step 2). The first
//! that does not fit blocks all behind it, even if it never will fit.

use crate::cluster::gangs::{Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policies::kod2::{Arrivals, GangPlans, Nodes, Packing};
use crate::reason;
use crate::reason::fifo_gang::Why;
use crate::unit::JobId;

/// No parameters.
pub(super) const PARAMETERS: &[Parameter] = &[];

/// The policy. Its only state is when jobs appeared.
#[derive(Debug, Default)]
pub struct FifoGang {
    arrivals: Arrivals,
}

impl FifoGang {
    /// Its name.
    pub const NAME: &'static str = "fifo-gang";

    /// Checks the parameters: there are none.
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        Reader::new(Self::NAME, PARAMETERS, params)?;
        Ok(Self::default())
    }
}

impl GangPolicy for FifoGang {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn decide(&mut self, frame: &GangFrame) -> Scaling {
        let nodes = Nodes::new(&frame.nodes);
        let gangs = GangPlans::new(frame, &nodes, &mut self.arrivals);
        let mut room = gangs.free(&nodes);
        let mut scaling = Scaling {
            t: frame.t,
            policy: Self::NAME,
            weights: gangs.weights(),
            start: Vec::new(),
            scale_in: Vec::new(),
            scale_out: Vec::new(),
            waiting: Vec::new(),
        };
        let mut head: Option<&JobId> = None;
        for gang in gangs.by_submission() {
            let packing = if head.is_none() { Packing::find(gang, &room) } else { None };
            let job = gang.id().clone();
            if let Some(packing) = packing {
                for (at, amount) in packing.amounts(gang) {
                    room.take(at, amount);
                }
                let why = Why::Fits { needs: gang.needs(), on: packing.on() };
                let layout = packing.layout(&nodes);
                scaling.start.push(Start { job, layout, why: reason::Why::FifoGang(why) });
            } else {
                let why = match head {
                    None => Why::NoRoom { needs: gang.needs() },
                    Some(head) => Why::Behind { head: head.clone() },
                };
                head = head.or(Some(gang.id()));
                scaling.waiting.push(Waiting { job, why: reason::Why::FifoGang(why) });
            }
        }
        scaling
    }
}

#[cfg(test)]
mod tests;
