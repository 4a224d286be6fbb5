use std::fmt;

use crate::unit::JobId;

/// Why a distributed job starts, shrinks, grows or waits. Times are in seconds; raw is ω′.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It starts.
    Fits {
        /// What it asks for.
        asks: Asks,
        /// Its turn.
        turn: Turn,
        /// Where that goes.
        on: On,
    },
    /// It gives workers away.
    GivesWay {
        /// Its ω′.
        raw: f64,
        /// What it keeps at least.
        min: u32,
        /// The jobs that it makes room for.
        to: Vec<Better>,
    },
    /// It gets more workers.
    Grows {
        /// Its ω′.
        raw: f64,
        /// The most that it can use.
        max: u32,
        /// How long nothing was started or scaled; `None` if nothing ever was.
        calm: Option<f64>,
        /// How long that has to be.
        quiet: f64,
    },
    /// It waits for room that is kept for it.
    Reserved {
        /// What it asks for.
        asks: Asks,
        /// The nodes of its plan.
        on: Vec<String>,
        /// How many workers of others were asked to go in this frame.
        asked: usize,
    },
    /// It does not fit, and nobody gives way.
    NoRoom {
        /// What it asks for.
        asks: Asks,
        /// Why nobody gives way.
        because: Reluctance,
    },
    /// A starving job is before it.
    Behind {
        /// That job.
        job: JobId,
    },
}

/// What a job needs to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Parameter servers.
    pub servers: u32,
    /// Workers.
    pub workers: u32,
}

/// When a job's turn comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Its ω′.
    pub raw: f64,
    /// How long it has waited.
    pub waited: f64,
    /// After how long it is starving.
    pub starve_after: f64,
}

/// Where a job's tasks go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum On {
    /// One node, which is left with this idle share.
    One(f64),
    /// So many nodes.
    Several(usize),
}

/// A job that another one gives way to.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// The job.
    pub job: JobId,
    /// Its ω′.
    pub raw: f64,
    /// By how much it was submitted earlier; below 0 if later.
    pub earlier: f64,
}

/// Why nobody gives way to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Reluctance {
    /// It is neither starving nor the first in line.
    NotItsTurn(Turn),
    /// It is the first in line, but a running job has a larger ω′.
    Outranked {
        /// Its ω′.
        raw: f64,
        /// The running job.
        by: JobId,
        /// That job's ω′.
        top: f64,
    },
    /// Those who would have to have too little to give.
    Exhausted {
        /// Its ω′.
        raw: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits { asks, turn, on } => write!(f, "{turn}: {asks} fit {on}"),
            Self::GivesWay { raw, min, to } => {
                write!(f, "raw {raw:.4}, keeps its min of {min}: gives way to ")?;
                for (at, better) in to.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{better}")?;
                }
                Ok(())
            }
            Self::Grows { raw, max, calm: Some(calm), quiet } => write!(
                f,
                "nobody waits, nothing was started or scaled for {calm:.1} s >= {quiet} s: \
                 raw {raw:.4}, up to its max of {max}"
            ),
            Self::Grows { raw, max, calm: None, .. } => write!(
                f,
                "nobody waits, nothing was started or scaled yet: \
                 raw {raw:.4}, up to its max of {max}"
            ),
            Self::Reserved { asks, on, asked } => write!(
                f,
                "{asks} do not fit now: room is kept on {}, {asked} workers asked to go for it now",
                on.join(", ")
            ),
            Self::NoRoom { asks, because } => write!(f, "{asks} do not fit now: {because}"),
            Self::Behind { job } => write!(f, "behind {job}, which is starving and goes first"),
        }
    }
}

impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps and {} workers", self.servers, self.workers)
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(left) => write!(f, "on one node, the one left least idle ({left:.3})"),
            Self::Several(nodes) => write!(f, "on no single node, but on {nodes}, idlest first"),
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { raw, waited, starve_after } = self;
        if waited >= starve_after {
            write!(f, "raw {raw:.4}, starving ({waited:.1} s >= {starve_after} s)")
        } else {
            write!(f, "raw {raw:.4}, not starving ({waited:.1} s < {starve_after} s)")
        }
    }
}

impl fmt::Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, raw, earlier } = self;
        write!(f, "{job} (raw {raw:.4}, submitted {:.1} s ", earlier.abs())?;
        f.write_str(if *earlier < 0.0 { "later)" } else { "earlier)" })
    }
}

impl fmt::Display for Reluctance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotItsTurn(turn) => write!(f, "{turn} and not first in line"),
            Self::Outranked { raw, by, top } => {
                write!(f, "first in line, but its raw {raw:.4} < {top:.4} of {by}, which runs")
            }
            Self::Exhausted { raw } => {
                write!(f, "no removal of workers ranked below raw {raw:.4} makes it fit")
            }
        }
    }
}
