use std::fmt;

use super::monitor::{Class, Trend};

/// Why a job is in its category, and why it moves or stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The category after this frame.
    pub class: Class,
    /// What its loss did.
    pub trend: Trend,
    /// What became of it on its node; `None` when there was nothing to decide.
    pub fate: Option<Fate>,
}

/// What is decided of a job that might move.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It has had its one move for convergence.
    Settled,
    /// Its node is not known.
    NoNode,
    /// Too few jobs on its node would gain by its going.
    Alone {
        /// The PC and WC jobs there.
        active: usize,
        /// How many it takes.
        needed: usize,
    },
    /// It was refused not long ago.
    Refused {
        /// It asks again from then on.
        until: f64,
    },
    /// It asked, and moves.
    Moves {
        /// The score of its node.
        source: f64,
        /// Where it goes.
        to: String,
        /// The score there.
        target: f64,
        /// What it adds to a score, where that is looked at (P1, P2).
        margin: Option<f64>,
    },
    /// It asked, and stays.
    Stays {
        /// The score of its node.
        source: f64,
        /// The lowest score of the nodes that it was compared with, if there are any.
        target: Option<f64>,
        /// What it adds to a score, where that is looked at (P1, P2).
        margin: Option<f64>,
    },
    /// It moves to even out the numbers of jobs.
    Rebalanced {
        /// The number of jobs on its node.
        jobs: usize,
        /// Where it goes.
        to: String,
        /// The number of jobs there.
        there: usize,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.label();
        match self.trend {
            Trend::Unmeasured => write!(f, "no gain measured: {class} kept")?,
            Trend::First { gain } => write!(f, "first gain {gain:.6}: {class} kept")?,
            Trend::Growing { gain, alpha } => {
                write!(f, "gain {gain:.6} >= alpha {alpha}: {class}")?;
            }
            Trend::Bouncing { gain, alpha, previous } => write!(
                f,
                "gain {gain:.6} < alpha {alpha}, but not down from {previous:.6}: {class} kept"
            )?,
            Trend::Slowing { gain, alpha, previous, from } => write!(
                f,
                "gain {gain:.6} < alpha {alpha}, not up from {previous:.6}: {} to {class}",
                from.label()
            )?,
        }
        self.fate.as_ref().map_or(Ok(()), |fate| write!(f, "; {fate}"))
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("it has had its one move for convergence"),
            Self::NoNode => f.write_str("it stays: its node is not known"),
            Self::Alone { active, needed } => {
                write!(f, "it stays: {active} PC or WC jobs on its node < {needed}")
            }
            Self::Refused { until } => write!(f, "refused before, it asks again from t = {until}"),
            Self::Moves { source, to, target, margin: Some(margin) } => {
                write!(f, "it moves: score {target} of {to} + {margin} < {source} of its node")
            }
            Self::Moves { source, to, target, margin: None } => {
                write!(f, "it moves: score {target} of {to} is the lowest, < {source} of its node")
            }
            Self::Stays { source, target: Some(target), margin: Some(margin) } => {
                write!(
                    f,
                    "it stays: lowest other score {target} + {margin} >= {source} of its node"
                )
            }
            Self::Stays { target: None, margin: Some(_), .. } => {
                f.write_str("it stays: there is no other node")
            }
            Self::Stays { source, margin: None, .. } => {
                write!(f, "it stays for good: score {source} of its node is among the lowest")
            }
            Self::Rebalanced { jobs, to, there } => {
                write!(f, "it moves to even out: {jobs} jobs on its node > {there} on {to} + 1")
            }
        }
    }
}
