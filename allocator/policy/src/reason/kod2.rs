//! KOD2's reasons.

use std::fmt;

use crate::unit::JobId;

/// Why a distributed job starts, shrinks, grows or waits. Times are in seconds; raw is ω′.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It starts.
    Fits {
        /// The tasks that it needs.
        needs: TaskCounts,
        /// Its turn.
        turn: Turn,
        /// The nodes of the tasks.
        on: Span,
    },
    /// It loses workers to other jobs: of larger ω′, or of equal ω′ and submitted earlier.
    Shrinks {
        /// Its ω′.
        raw: f64,
        /// The least number of workers that it keeps.
        min: u32,
        /// The jobs that it shrinks for.
        to: Vec<Beneficiary>,
    },
    /// It gets more workers.
    Grows {
        /// Its ω′.
        raw: f64,
        /// The most that it can use.
        max: u32,
        /// Seconds since the last start or scaling; `None` if there was none.
        calm: Option<f64>,
        /// Seconds that must pass before jobs grow.
        quiet: f64,
    },
    /// It waits for capacity that is reserved for it.
    Reserved {
        /// The tasks that it needs.
        needs: TaskCounts,
        /// The nodes of its plan.
        on: Vec<String>,
        /// The number of workers of other jobs whose removal this frame requests.
        asked: usize,
    },
    /// It does not fit, and no other job shrinks for it.
    NoRoom {
        /// The tasks that it needs.
        needs: TaskCounts,
        /// Why no job shrinks for it.
        because: Refusal,
    },
    /// A starving job is before it.
    Behind {
        /// That job.
        job: JobId,
    },
}

/// Numbers of a job's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCounts {
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
    /// Seconds that it has waited.
    pub waited: f64,
    /// Seconds after which it counts as starving.
    pub starve_after: f64,
}

/// The number of nodes that a job's tasks use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// One node, with the idle share that is left.
    One(f64),
    /// Several nodes.
    Several(usize),
}

/// A job that another one shrinks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Beneficiary {
    /// The job.
    pub job: JobId,
    /// Its ω′.
    pub raw: f64,
    /// Seconds by which it was submitted earlier; negative if later.
    pub earlier: f64,
}

/// Why no job shrinks for a waiting one.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
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
    /// The jobs that might shrink have too few workers to give.
    Exhausted {
        /// Its ω′.
        raw: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits { needs, turn, on } => write!(f, "{turn}: {needs} fit {on}"),
            Self::Shrinks { raw, min, to } => {
                write!(f, "raw {raw:.4}, keeps its min of {min}: shrinks for ")?;
                for (at, beneficiary) in to.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{beneficiary}")?;
                }
                Ok(())
            }
            Self::Grows { raw, max, calm: Some(calm), quiet } => write!(
                f,
                "no job waits, no start or scaling for {calm:.1} s >= {quiet} s: \
                 raw {raw:.4}, grows up to its max of {max}"
            ),
            Self::Grows { raw, max, calm: None, .. } => write!(
                f,
                "no job waits, no start or scaling yet: \
                 raw {raw:.4}, grows up to its max of {max}"
            ),
            Self::Reserved { needs, on, asked } => write!(
                f,
                "{needs} do not fit now: capacity reserved on {}, {asked} workers of others to be removed now",
                on.join(", ")
            ),
            Self::NoRoom { needs, because } => write!(f, "{needs} do not fit now: {because}"),
            Self::Behind { job } => write!(f, "behind {job}, which is starving and goes first"),
        }
    }
}

impl fmt::Display for TaskCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps and {} workers", self.servers, self.workers)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(left) => write!(f, "on one node, the one left least idle ({left:.3})"),
            Self::Several(nodes) => {
                write!(f, "on {nodes} nodes, idlest first (no single node fits)")
            }
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

impl fmt::Display for Beneficiary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, raw, earlier } = self;
        write!(f, "{job} (raw {raw:.4}, submitted {:.1} s ", earlier.abs())?;
        f.write_str(if *earlier < 0.0 { "later)" } else { "earlier)" })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotItsTurn(turn) => write!(f, "{turn} and not first in line"),
            Self::Outranked { raw, by, top } => {
                write!(
                    f,
                    "first in line, but its raw {raw:.4} < {top:.4} of {by}, which is running"
                )
            }
            Self::Exhausted { raw } => {
                write!(f, "removing workers of jobs ranked below raw {raw:.4} does not make it fit")
            }
        }
    }
}
