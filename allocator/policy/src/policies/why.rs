use std::fmt;

use serde::{Serialize, Serializer};

use super::flowcon;

/// Why a job gets its share: what a policy compared with what, and what follows.
///
/// Policies give reasons as data, since most are never read; `Display` puts one into words that a
/// person can check.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// No policy: the engine shares by itself.
    Unlimited,
    /// FlowCon's.
    FlowCon(flowcon::Why),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("no policy: the engine shares by itself"),
            Self::FlowCon(why) => why.fmt(f),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
