use std::fmt;

use serde::{Serialize, Serializer};

/// Why a job has what it has: the last thing that moved it, as data; `Display` puts it into words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// As the policy chose.
    Chosen,
    /// The policy chose less than the job is to have at least.
    Least {
        /// The policy's choice.
        chosen: f64,
        /// The least.
        floor: f64,
    },
    /// The policy chose more than the job may have.
    Most {
        /// The policy's choice.
        chosen: f64,
        /// The most.
        ceiling: f64,
    },
    /// One decision does not move it further.
    Slewed {
        /// Its share before.
        from: f64,
        /// What was wanted.
        wanted: f64,
    },
    /// It has fallen behind an equal share.
    Fair {
        /// What it received, as a fraction of what an equal share would have given.
        received: f64,
        /// By how much it may be slowed down.
        max_slowdown: f64,
        /// An equal share.
        equal: f64,
    },
    /// A cut was undone, and the job is spared.
    RolledBack {
        /// The batch latency after the cut, in seconds.
        latency: f64,
        /// What was to be kept.
        budget: f64,
        /// Until when it is not cut again, in seconds since the run began.
        until: f64,
    },
    /// Others leave CPU unused.
    Lent {
        /// Its own share.
        own: f64,
        /// What is lent on top.
        lent: f64,
    },
    /// It has gone silent: it keeps what it has.
    Silent,
    /// Somebody has ordered this share.
    Pinned,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Chosen => f.write_str("as the policy chose"),
            Self::Least { chosen, floor } => {
                write!(f, "the policy chose {chosen:.3}, but its least is {floor:.3}")
            }
            Self::Most { chosen, ceiling } => {
                write!(f, "the policy chose {chosen:.3}, but its most is {ceiling:.3}")
            }
            Self::Slewed { from, wanted } => {
                write!(f, "one step from {from:.3} towards {wanted:.3}")
            }
            Self::Fair { received, max_slowdown, equal } => write!(
                f,
                "received {received:.3} of its equal share < 1/{max_slowdown}: raised to 1/n {equal:.3}"
            ),
            Self::RolledBack { latency, budget, until } => write!(
                f,
                "batch latency {latency:.3} s > {budget} s after a cut: undone, not cut until {until:.0} s"
            ),
            Self::Lent { own, lent } => {
                write!(f, "its own {own:.3} and {lent:.3} that others leave unused")
            }
            Self::Silent => f.write_str("silent: keeps what it has"),
            Self::Pinned => f.write_str("held there by an order"),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
