//! Why a job gets its share, in words that a person can check.

use std::fmt;

use super::ending::End;
use crate::unit::JobId;

/// The reason. Work is in node-seconds, times are seconds from now, shares fractions of the node.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It has reached its objective.
    Ended(End),
    /// It has a target for its batches.
    Service {
        /// The target.
        target: f64,
        /// The last latency measured.
        latency: Option<f64>,
        /// The share that keeps it: infinite if none does.
        need: f64,
        /// What it gets.
        share: f64,
        /// Whether it is admitted.
        admitted: bool,
        /// Whether training keeps services from more.
        bound: bool,
    },
    /// No job here says how much work it has left.
    Unstated {
        /// How many there are.
        jobs: usize,
    },
    /// It is the only one.
    Alone {
        /// Its work left.
        left: Option<f64>,
    },
    /// It has not shown yet what it is like.
    New {
        /// What it has used.
        used: f64,
        /// Whether it is served now.
        served: bool,
    },
    /// It is served first.
    First {
        /// Its work left.
        left: f64,
        /// How many have less, and how many there are.
        less: usize,
        /// The same.
        jobs: usize,
        /// The least slack of the others.
        slack: Option<f64>,
        /// Whether nothing is lent beside it, since it shows how much it can use.
        measures: bool,
    },
    /// It runs beside the first, which cannot use all.
    Beside {
        /// The first.
        first: JobId,
        /// Its own work left.
        left: f64,
        /// What it gets.
        share: f64,
    },
    /// It must run from now on to be done in time.
    Must {
        /// Its work left.
        left: f64,
        /// The most of the node that it can use.
        cap: f64,
        /// Its end under equal sharing.
        fair: f64,
    },
    /// The size of its work is unknown.
    Shares {
        /// What it gets.
        share: f64,
        /// How many there are.
        jobs: usize,
        /// What it has received of what equal sharing would have given.
        part: f64,
        /// Whether it has used far more than it stated.
        doubted: bool,
    },
    /// It waits.
    Waits {
        /// For this one, if one is served first.
        first: Option<JobId>,
        /// The work left of that one.
        first_left: Option<f64>,
        /// Its own end under equal sharing.
        fair: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(End { loss, objective }) => {
                write!(f, "objective {objective} is reached, mean loss {loss}: ended for good")
            }
            Self::Service { target, latency, need, share, admitted, bound } => {
                match latency {
                    Some(latency) => write!(f, "batches take {latency:.3} s of {target} s")?,
                    None => write!(f, "no batch measured yet, target {target} s")?,
                }
                if need.is_finite() {
                    write!(f, ", needs {need:.3}: ")?;
                } else {
                    f.write_str(", which no share keeps: ")?;
                }
                if *admitted {
                    write!(f, "admitted with {share:.3}")?;
                } else {
                    write!(f, "not admitted, {share:.3} of what is left")?;
                }
                if *bound {
                    f.write_str("; training keeps its part of the node")?;
                }
                Ok(())
            }
            Self::Unstated { jobs } => write!(
                f,
                "none of {jobs} states how much work is left: the engine shares by itself"
            ),
            Self::Alone { left: Some(left) } => {
                write!(f, "{left:.1} s of work left, the only job: no limit")
            }
            Self::Alone { left: None } => f.write_str("the only job: no limit"),
            Self::New { used, served } => {
                let now = if *served { "served first" } else { "waits" };
                write!(f, "new, {used:.1} s used: {now} until it has shown what it can use")
            }
            Self::First { left, less, jobs, slack, measures } => {
                write!(f, "{left:.1} s of work left, ")?;
                match less {
                    0 => write!(f, "the least of {jobs}")?,
                    less => write!(f, "{less} of {jobs} have less")?,
                }
                if let Some(slack) = slack {
                    write!(f, "; slack of the others {slack:.1} s")?;
                }
                if *measures {
                    f.write_str("; no limit while it shows how much it can use")?;
                }
                Ok(())
            }
            Self::Beside { first, left, share } => {
                write!(f, "{left:.1} s of work left: {share:.3} that {first} cannot use")
            }
            Self::Must { left, cap, fair } => write!(
                f,
                "{left:.1} s of work left at {cap:.3} at the most: must run to end in {fair:.1} s"
            ),
            Self::Shares { share, jobs, part, doubted } => {
                f.write_str(if *doubted {
                    "used far more than it stated"
                } else {
                    "states no work that is left"
                })?;
                write!(f, ", one of {jobs} such: {share:.3}, has {part:.2} of a fair share so far")
            }
            Self::Waits { first: Some(first), first_left, fair } => {
                write!(f, "waits: {first} ")?;
                match first_left {
                    Some(left) => write!(f, "has {left:.1} s of work left")?,
                    None => f.write_str("is served first")?,
                }
                write!(f, ", and the fair end of this one is in {fair:.1} s")
            }
            Self::Waits { first: None, fair, .. } => {
                write!(f, "waits: its fair end is in {fair:.1} s")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_what_they_go_by() {
        let id = |name: &str| JobId::new(name).unwrap();
        for (why, expected) in [
            (
                Why::First { left: 12.0, less: 0, jobs: 3, slack: Some(41.0), measures: false },
                "12.0 s of work left, the least of 3; slack of the others 41.0 s",
            ),
            (
                Why::Waits { first: Some(id("mnist-t")), first_left: Some(5.0), fair: 62.0 },
                "waits: mnist-t has 5.0 s of work left, and the fair end of this one is in 62.0 s",
            ),
            (
                Why::Service {
                    target: 2.0,
                    latency: Some(1.9),
                    need: 0.17,
                    share: 0.173,
                    admitted: true,
                    bound: false,
                },
                "batches take 1.900 s of 2 s, needs 0.170: admitted with 0.173",
            ),
        ] {
            assert_eq!(why.to_string(), expected);
        }
    }
}
