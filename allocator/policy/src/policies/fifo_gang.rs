//! `fifo-gang`, a baseline for KOD2: first come, first served, and only whole.
//!
//! Waiting jobs come in the order in which they were submitted. A job starts when all its parameter
//! servers and its least number of workers fit, packed as KOD2 packs them (its step 2). The first
//! that does not fit blocks all behind it, even if it never will fit.

use std::fmt;

use crate::cluster::gangs::{Start, Waiting};
use crate::cluster::{GangFrame, GangPolicy, Scaling};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policies;
use crate::policies::kod2::{Arrivals, Asks, Crews, Nodes, On, Packing};
use crate::unit::JobId;

/// What can be set: nothing.
pub(super) const PARAMETERS: &[Parameter] = &[];

/// The policy; of earlier frames it keeps no more than when jobs appeared.
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
        let crews = Crews::new(frame, &nodes, &mut self.arrivals);
        let mut room = crews.free(&nodes);
        let mut scaling = Scaling {
            t: frame.t,
            policy: Self::NAME,
            weights: crews.weights(),
            start: Vec::new(),
            scale_in: Vec::new(),
            scale_out: Vec::new(),
            waiting: Vec::new(),
        };
        let mut head: Option<&JobId> = None;
        for crew in crews.by_submission() {
            let packing = if head.is_none() { Packing::find(crew, &room) } else { None };
            let job = crew.id().clone();
            if let Some(packing) = packing {
                for (at, amount) in packing.amounts(crew) {
                    room.take(at, amount);
                }
                let why = Why::Fits { asks: crew.asks(), on: packing.on() };
                let layout = packing.layout(&nodes);
                scaling.start.push(Start { job, layout, why: policies::Why::FifoGang(why) });
            } else {
                let why = match head {
                    None => Why::NoRoom { asks: crew.asks() },
                    Some(head) => Why::Behind { head: head.clone() },
                };
                head = head.or(Some(crew.id()));
                scaling.waiting.push(Waiting { job, why: policies::Why::FifoGang(why) });
            }
        }
        scaling
    }
}

/// Why a job starts or waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It starts.
    Fits {
        /// What it asks for.
        asks: Asks,
        /// Where that goes.
        on: On,
    },
    /// It is the first in line, and does not fit.
    NoRoom {
        /// What it asks for.
        asks: Asks,
    },
    /// The first in line does not fit.
    Behind {
        /// That job.
        head: JobId,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits { asks, on } => write!(f, "first in line: {asks} fit {on}"),
            Self::NoRoom { asks } => write!(f, "first in line: {asks} do not fit now"),
            Self::Behind { head } => write!(f, "behind {head}, which does not fit"),
        }
    }
}

#[cfg(test)]
mod tests;
