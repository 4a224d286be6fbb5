//! `spread`'s reasons.

use std::fmt;

/// Why a job runs where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has a node, and no job ever moves.
    Stays,
    /// It is new.
    Placed {
        /// The node with the fewest jobs.
        node: String,
        /// The number of jobs on it before.
        held: usize,
    },
    /// It is new, and no node is available.
    NoNode,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stays => f.write_str("it has a node: it stays there"),
            Self::Placed { node, held } => {
                write!(f, "new: placed on {node}, which has the fewest jobs ({held})")
            }
            Self::NoNode => f.write_str("new, no node available: it waits"),
        }
    }
}
