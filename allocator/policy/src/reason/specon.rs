//! `SpeCon`'s reasons.

use std::fmt;

/// Why a job is in its category, and why it moves or stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The category after this frame.
    pub class: Class,
    /// How its loss changed.
    pub trend: Trend,
    /// Whether it moves or stays; `None` when there was nothing to decide.
    pub outcome: Option<MoveDecision>,
}

/// The decision about a job that might move.
#[derive(Clone, Debug, PartialEq)]
pub enum MoveDecision {
    /// It was already moved once for convergence.
    Settled,
    /// Its node is unknown.
    NoNode,
    /// Too few jobs on its node would gain if it left.
    Alone {
        /// The PC and WC jobs there.
        active: usize,
        /// The number that a move requires.
        needed: usize,
    },
    /// It was refused a short time ago.
    Refused {
        /// The time from which it may ask again, in seconds.
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
        /// What it adds to a score, where the variant counts that (P1, P2).
        margin: Option<f64>,
    },
    /// It asked, and stays.
    Stays {
        /// The score of its node.
        source: f64,
        /// The lowest score of the nodes that it was compared with, if there are any.
        target: Option<f64>,
        /// What it adds to a score, where the variant counts that (P1, P2).
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
        self.outcome.as_ref().map_or(Ok(()), |outcome| write!(f, "; {outcome}"))
    }
}

impl fmt::Display for MoveDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("its one move for convergence is used up"),
            Self::NoNode => f.write_str("it stays: its node is unknown"),
            Self::Alone { active, needed } => {
                write!(f, "it stays: {active} PC or WC jobs on its node < {needed}")
            }
            Self::Refused { until } => write!(f, "refused before, may ask again from t = {until}"),
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
                f.write_str("it stays: no other node available")
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

/// The paper's categories of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// PC.
    Progressing,
    /// WC.
    Watching,
    /// CC.
    Converged,
}

impl Class {
    /// Its name in the paper.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Progressing => "PC",
            Self::Watching => "WC",
            Self::Converged => "CC",
        }
    }
}

/// How a job's loss changed in a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trend {
    /// No loss, no earlier loss, or an earlier one that is too close.
    Unmeasured,
    /// The first gain.
    First {
        /// The gain.
        gain: f64,
    },
    /// The gain is α or more.
    Growing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
    },
    /// The gain is below α, but not below the previous one.
    Bouncing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
        /// The gain before.
        previous: f64,
    },
    /// The gain is below α and not above the previous one.
    Slowing {
        /// The gain.
        gain: f64,
        /// α.
        alpha: f64,
        /// The gain before.
        previous: f64,
        /// The category before.
        from: Class,
    },
}
