//! `DQoES`'s reasons.

use std::fmt;

/// Why a job gets its share. Qualities are seconds, shares are fractions of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It has no target.
    NoTarget,
    /// It has a target, but no batch was ever measured.
    NoBatchYet,
    /// No batch was measured in this frame.
    NoBatch(Measurement),
    /// S.
    Satisfied(Measurement),
    /// G.
    Cut {
        /// By how much it is faster.
        measurement: Measurement,
        /// The limit before.
        limit: f64,
        /// The floor.
        least: f64,
        /// L, from which the cut is taken.
        base: f64,
        /// `1 − (q/Q_G)·R_G·β`.
        factor: f64,
    },
    /// B.
    Given {
        /// By how much it is slower.
        measurement: Measurement,
        /// The limit before.
        limit: f64,
        /// The share available for all of B.
        budget: f64,
        /// Its part by `q/Q_B`.
        gain: f64,
    },
    /// B, in print.
    Grown {
        /// By how much it is slower.
        measurement: Measurement,
        /// The limit before.
        limit: f64,
        /// `1 + (q/Q_B)·R_G·β`.
        factor: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoTarget => f.write_str("no target: limit kept"),
            Self::NoBatchYet => f.write_str("no batch measured yet: limit kept"),
            Self::NoBatch(Measurement { set, quality, .. }) => {
                write!(
                    f,
                    "no batch to measure, {} by the last q {quality:.4}: limit kept",
                    set.label()
                )
            }
            Self::Satisfied(Measurement { quality, band, .. }) => {
                write!(f, "q {quality:.4} within alpha o {band:.4}: as asked, limit kept")
            }
            Self::Cut {
                measurement: Measurement { quality, band, .. },
                limit,
                least,
                base,
                factor,
            } => {
                write!(
                    f,
                    "q {quality:.4} > alpha o {band:.4}: faster than asked, \
                     min(limit {limit:.4}, max(floor {least:.4}, {base:.4} x {factor:.4}))"
                )
            }
            Self::Given { measurement: Measurement { quality, band, .. }, limit, budget, gain } => {
                write!(
                    f,
                    "q {quality:.4} < -alpha o {:.4}: slower than asked, \
                 min(1, limit {limit:.4} + {gain:.4} of budget {budget:.4})",
                    -band
                )
            }
            Self::Grown { measurement: Measurement { quality, band, .. }, limit, factor } => {
                write!(
                    f,
                    "q {quality:.4} < -alpha o {:.4}: slower than asked, \
                 min(1, limit {limit:.4} x {factor:.4})",
                    -band
                )
            }
        }
    }
}

/// A job's batch duration compared with its target, as last measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// G, S or B.
    pub set: Set,
    /// q, in seconds.
    pub quality: f64,
    /// α·o, in seconds.
    pub band: f64,
}

/// The paper's three sets of jobs by their batch targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// G: faster than asked.
    Ahead,
    /// S: as asked.
    Satisfied,
    /// B: slower than asked.
    Behind,
}

impl Set {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Ahead => "G",
            Self::Satisfied => "S",
            Self::Behind => "B",
        }
    }
}
