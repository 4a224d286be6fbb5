//! TRADL's reasons.

use std::fmt;

use crate::unit::count;

/// Why a job gets its share, or is ended. Usage and shares are fractions of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It has reached its objective.
    Ended(End),
    /// Every running job is in AS.
    AllAcceptable {
        /// n.
        jobs: usize,
    },
    /// The node has room left, and no cap is the cause.
    Roomy {
        /// The usage of all running jobs.
        used: f64,
        /// α.
        alpha: f64,
        /// The frames in a row for which this has held.
        frames: u64,
        /// The frames in a row for which it must hold.
        hold: f64,
    },
    /// In print: the node has room left.
    Unused {
        /// The usage of all running jobs.
        used: f64,
        /// α.
        alpha: f64,
    },
    /// It has no acceptable loss.
    NoTarget,
    /// Its acceptable loss is its objective.
    OneTarget {
        /// Both.
        target: f64,
    },
    /// It has not reached its acceptable loss since that was set.
    NotYet {
        /// Its last loss.
        loss: Option<f64>,
        /// The acceptable loss.
        target: f64,
    },
    /// It is in AS.
    Capped(Cap),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ended(End { loss, objective, losses }) => {
                write!(f, "loss {loss} reaches objective {objective}, {losses} in a row: job ended")
            }
            Self::AllAcceptable { jobs } => {
                write!(f, "all running jobs ({jobs}) are acceptable: no limit")
            }
            Self::Roomy { used, alpha, frames, hold } => write!(
                f,
                "total usage {used:.4} < alpha {alpha} and no acceptable job at its cap, \
                 {frames} frames in a row >= hold {hold}: no limit"
            ),
            Self::Unused { used, alpha } => {
                write!(f, "total usage {used:.4} < alpha {alpha}: no limit")
            }
            Self::NoTarget => f.write_str("no acceptable loss is set: no limit"),
            Self::OneTarget { target } => {
                write!(
                    f,
                    "acceptable loss {target} equals the objective: no limit until the job ends"
                )
            }
            Self::NotYet { loss: Some(loss), target } => {
                write!(f, "acceptable loss {target} not reached, last loss {loss}: no limit")
            }
            Self::NotYet { loss: None, target } => {
                write!(f, "acceptable loss {target} not reached, no loss yet: no limit")
            }
            Self::Capped(cap @ Cap { jobs, usage, tolerance }) => {
                let heavy = cap.is_heavy();
                let (sign, parts) = (if heavy { ">" } else { "<=" }, cap.parts(heavy));
                write!(f, "acceptable, usage {usage:.4} {sign} {tolerance}/{jobs}, so 1/{parts}")
            }
        }
    }
}

/// Why a job was ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// The last loss that reached the objective.
    pub loss: f64,
    /// The objective that it reached.
    pub objective: f64,
    /// The number of losses in a row that reached it.
    pub losses: u64,
}

/// How the cap of an acceptable job was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    /// n when the cap was chosen.
    pub jobs: usize,
    /// The job's usage when the cap was chosen.
    pub usage: f64,
    /// A job that uses more than this many equal shares is a heavy user.
    pub tolerance: f64,
}

impl Cap {
    /// Lines 15 and 17. The tolerance keeps a job that uses its equal share from flipping (T15).
    pub(crate) fn is_heavy(&self) -> bool {
        self.usage > self.tolerance / count(self.jobs)
    }

    /// Lines 16 and 18: the cap is 1 over this. The heavier user gets the smaller one (T17).
    pub(crate) const fn parts(&self, heavy: bool) -> usize {
        if heavy { 2 * self.jobs } else { self.jobs + 1 }
    }

    pub(crate) fn share(&self) -> f64 {
        1.0 / count(self.parts(self.is_heavy()))
    }
}
