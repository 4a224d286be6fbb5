//! Why a policy decided as it did, as data: one file for each policy.
//!
//! A decision carries reasons, and policies make decisions. So reasons are apart from the policies.

pub mod dltap;
pub mod dqoes;
pub mod fifo;
pub mod fifo_gang;
pub mod flowcon;
pub mod kod2;
pub mod paceline;
pub mod specon;
pub mod spread;
pub mod srpt;
pub mod tradl;

use std::fmt;

use serde::{Serialize, Serializer};

/// Why a job gets its share: the figures that a policy compared, and the result.
///
/// Policies give reasons as data, since most are never read. `Display` puts one into words that a
/// person can check. Large reasons are boxed, so that a map of decisions stays small.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// No policy: the kernel shares the CPU.
    Unlimited,
    /// FlowCon's.
    FlowCon(flowcon::Why),
    /// TRADL's.
    Tradl(Box<tradl::Why>),
    /// `DQoES`'s.
    Dqoes(Box<dqoes::Why>),
    /// Paceline's own.
    Paceline(paceline::Why),
    /// `SpeCon`'s.
    SpeCon(Box<specon::Why>),
    /// `spread`'s.
    Spread(spread::Why),
    /// `srpt`'s.
    Srpt(srpt::Why),
    /// KOD2's.
    Kod2(Box<kod2::Why>),
    /// `fifo`'s.
    Fifo(fifo::Why),
    /// `fifo-gang`'s.
    FifoGang(fifo_gang::Why),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("no policy: the kernel shares the CPU"),
            Self::FlowCon(why) => why.fmt(f),
            Self::Tradl(why) => why.fmt(f),
            Self::Dqoes(why) => why.fmt(f),
            Self::Paceline(why) => why.fmt(f),
            Self::SpeCon(why) => why.fmt(f),
            Self::Spread(why) => why.fmt(f),
            Self::Srpt(why) => why.fmt(f),
            Self::Kod2(why) => why.fmt(f),
            Self::Fifo(why) => why.fmt(f),
            Self::FifoGang(why) => why.fmt(f),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
