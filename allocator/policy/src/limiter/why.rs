use std::fmt;

use serde::{Serialize, Serializer};

/// Why a job has its share: the last rule that changed it, as data. `Display` puts it into words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// The policy chose this share.
    Chosen,
    /// The policy chose less than the job's minimum.
    Least {
        /// The policy's choice.
        chosen: f64,
        /// The minimum.
        floor: f64,
    },
    /// The policy chose more than the job's maximum.
    Most {
        /// The policy's choice.
        chosen: f64,
        /// The maximum.
        ceiling: f64,
    },
    /// One decision may not move the share further.
    Slewed {
        /// Its share before.
        from: f64,
        /// The share before the bound on steps.
        wanted: f64,
    },
    /// It has fallen behind an equal share.
    Fair {
        /// The CPU time received, as a fraction of what an equal share would have given.
        received: f64,
        /// The allowed slowdown compared with an equal share.
        max_slowdown: f64,
        /// An equal share.
        equal: f64,
    },
    /// A cut was undone, and the job is not cut again for a while.
    RolledBack {
        /// The batch latency after the cut, in seconds.
        latency: f64,
        /// The target batch latency, in seconds.
        budget: f64,
        /// The job is not cut again before this time, in seconds since the run began.
        until: f64,
    },
    /// The job borrows CPU that others leave unused.
    Lent {
        /// Its own share.
        own: f64,
        /// The loan on top of it.
        lent: f64,
    },
    /// The job no longer reports, so its limit is kept.
    Silent,
    /// A command holds the job at this share.
    Pinned,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Chosen => f.write_str("as the policy chose"),
            Self::Least { chosen, floor } => {
                write!(f, "the policy chose {chosen:.3}: raised to the minimum of {floor:.3}")
            }
            Self::Most { chosen, ceiling } => {
                write!(f, "the policy chose {chosen:.3}: lowered to the maximum of {ceiling:.3}")
            }
            Self::Slewed { from, wanted } => {
                write!(f, "limited to one step from {from:.3} towards {wanted:.3}")
            }
            Self::Fair { received, max_slowdown, equal } => write!(
                f,
                "received {received:.3} of an equal share < 1/{max_slowdown}: raised to the equal share {equal:.3}"
            ),
            Self::RolledBack { latency, budget, until } => write!(
                f,
                "batch latency {latency:.3} s > target {budget} s after a cut: cut undone, no further cut before t = {until:.0} s"
            ),
            Self::Lent { own, lent } => {
                write!(f, "own share {own:.3} plus {lent:.3} that other jobs leave unused")
            }
            Self::Silent => f.write_str("no recent reports: limit kept"),
            Self::Pinned => f.write_str("pinned by a command"),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
