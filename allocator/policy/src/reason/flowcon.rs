//! FlowCon's reasons.

use std::fmt;

/// Why a job gets its share. Growth is per second and node, shares are fractions of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It was never measured.
    Newcomer,
    /// Every job is in CL.
    AllCompleting,
    /// The sum of all growth is 0.
    NoGrowth,
    /// NL.
    Growing {
        /// G.
        growth: f64,
        /// α.
        alpha: f64,
        /// G/ΣG.
        part: f64,
        /// 1/n, where it is a floor.
        equal: Option<f64>,
    },
    /// WL.
    Watched {
        /// G.
        growth: f64,
        /// α.
        alpha: f64,
    },
    /// WL, in a frame in which a job went.
    Raised {
        /// The limit before.
        kept: f64,
        /// 1/n.
        equal: f64,
    },
    /// CL.
    Completing {
        /// G.
        growth: f64,
        /// α.
        alpha: f64,
        /// G/ΣG.
        part: f64,
        /// 1/(β·n).
        floor: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Newcomer => f.write_str("newcomer, not measured yet: no limit"),
            Self::AllCompleting => {
                f.write_str("all jobs are completing: no limit, longer interval")
            }
            Self::NoGrowth => f.write_str("no job is growing: limit kept"),
            Self::Growing { growth, alpha, part, equal: Some(equal) } => write!(
                f,
                "G {growth:.4} >= alpha {alpha}: growing, max(G/sum {part:.3}, 1/n {equal:.3})"
            ),
            Self::Growing { growth, alpha, part, equal: None } => {
                write!(f, "G {growth:.4} >= alpha {alpha}: growing, G/sum {part:.3}")
            }
            Self::Watched { growth, alpha } => {
                write!(f, "G {growth:.4} < alpha {alpha}: watched, limit kept")
            }
            Self::Raised { kept, equal } => {
                write!(f, "watched, a job went: max(limit {kept:.3}, 1/n {equal:.3})")
            }
            Self::Completing { growth, alpha, part, floor } => write!(
                f,
                "G {growth:.4} < alpha {alpha}: completing, \
                 max(G/sum {part:.3}, 1/(beta n) {floor:.3})"
            ),
        }
    }
}
