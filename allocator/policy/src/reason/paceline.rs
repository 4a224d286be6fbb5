//! Why a job gets its share, in words that a person can check.

use std::fmt;

use crate::unit::JobId;

/// The reason. Work is in node-seconds, times in seconds from now, shares in fractions of the node.
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
        /// The share that meets the target; infinite if none does.
        need: f64,
        /// The share that it gets.
        share: f64,
        /// Whether it is admitted.
        admitted: bool,
        /// Whether the part reserved for training limits the services.
        bound: bool,
    },
    /// No job reports how much work it has left.
    Unstated {
        /// The number of jobs.
        jobs: usize,
    },
    /// It is the only job.
    Alone {
        /// Its work left.
        left: Option<f64>,
    },
    /// Its CPU demand and the work of its steps are not measured yet.
    New {
        /// The node-seconds that it has used.
        used: f64,
        /// Whether it is served now.
        served: bool,
    },
    /// It is served first.
    First {
        /// Its work left.
        left: f64,
        /// The number of jobs with less work left.
        less: usize,
        /// The number of jobs.
        jobs: usize,
        /// The least slack of the others.
        slack: Option<f64>,
        /// Whether nothing is lent to others, so that its CPU demand can be measured.
        measures: bool,
    },
    /// It runs beside the first, which cannot use the whole node.
    Beside {
        /// The first.
        first: JobId,
        /// Its own work left.
        left: f64,
        /// The share that it gets.
        share: f64,
    },
    /// It must run from now on to meet its deadline.
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
        /// The share that it gets.
        share: f64,
        /// The number of such jobs.
        jobs: usize,
        /// The service received, as a part of what equal sharing would have given.
        part: f64,
        /// Whether it has used far more than it stated.
        doubted: bool,
    },
    /// It waits.
    Waits {
        /// The job that is served first, if there is one.
        first: Option<JobId>,
        /// The work left of that job.
        first_left: Option<f64>,
        /// Its own end under equal sharing.
        fair: f64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(End { loss, objective }) => {
                write!(f, "objective {objective} reached, mean loss {loss}: job ended")
            }
            Self::Service { target, latency, need, share, admitted, bound } => {
                match latency {
                    Some(latency) => write!(f, "batches take {latency:.3} s, target {target} s")?,
                    None => write!(f, "no batch measured yet, target {target} s")?,
                }
                if need.is_finite() {
                    write!(f, ", needs share {need:.3}: ")?;
                } else {
                    f.write_str(", unreachable with any share: ")?;
                }
                if *admitted {
                    write!(f, "admitted with share {share:.3}")?;
                } else {
                    write!(f, "not admitted, gets share {share:.3} from the remaining CPU")?;
                }
                if *bound {
                    f.write_str("; the part reserved for training limits the services")?;
                }
                Ok(())
            }
            Self::Unstated { jobs } => {
                write!(f, "no job of {jobs} reports its remaining work: equal sharing")
            }
            Self::Alone { left: Some(left) } => {
                write!(f, "{left:.1} s of work left, the only job: no limit")
            }
            Self::Alone { left: None } => f.write_str("the only job: no limit"),
            Self::New { used, served } => {
                let now = if *served { "served first" } else { "waits" };
                write!(f, "new, {used:.1} s used so far: {now} until its CPU demand is measured")
            }
            Self::First { left, less, jobs, slack, measures } => {
                write!(f, "{left:.1} s of work left, ")?;
                match less {
                    0 => write!(f, "the least of {jobs}")?,
                    less => write!(f, "{less} of {jobs} jobs have less")?,
                }
                if let Some(slack) = slack {
                    write!(f, "; slack of the others {slack:.1} s")?;
                }
                if *measures {
                    f.write_str("; no limit while its CPU demand is measured")?;
                }
                Ok(())
            }
            Self::Beside { first, left, share } => {
                write!(f, "{left:.1} s of work left: {share:.3} that {first} cannot use")
            }
            Self::Must { left, cap, fair } => write!(
                f,
                "{left:.1} s of work left, can use at most {cap:.3}: must run now to end in {fair:.1} s"
            ),
            Self::Shares { share, jobs, part, doubted } => {
                f.write_str(if *doubted {
                    "used far more than it stated"
                } else {
                    "remaining work unknown"
                })?;
                if *jobs > 1 {
                    write!(f, ", one of {jobs} such jobs")?;
                }
                write!(f, ": gets {share:.3}, received {part:.2} of a fair share so far")
            }
            Self::Waits { first: Some(first), first_left, fair } => {
                write!(f, "waits: {first} ")?;
                match first_left {
                    Some(left) => write!(f, "has {left:.1} s of work left")?,
                    None => f.write_str("is served first")?,
                }
                write!(f, "; under equal sharing this job ends in {fair:.1} s")
            }
            Self::Waits { first: None, fair, .. } => {
                write!(f, "waits: under equal sharing it ends in {fair:.1} s")
            }
        }
    }
}

/// The mean loss that ended a job, and its objective. The loss may differ a little from the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// The loss.
    pub loss: f64,
    /// The objective.
    pub objective: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_the_figures_they_use() {
        let id = |name: &str| JobId::new(name).unwrap();
        for (why, expected) in [
            (
                Why::First { left: 12.0, less: 0, jobs: 3, slack: Some(41.0), measures: false },
                "12.0 s of work left, the least of 3; slack of the others 41.0 s",
            ),
            (
                Why::Waits { first: Some(id("mnist-t")), first_left: Some(5.0), fair: 62.0 },
                "waits: mnist-t has 5.0 s of work left; under equal sharing this job ends in 62.0 s",
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
                "batches take 1.900 s, target 2 s, needs share 0.170: admitted with share 0.173",
            ),
        ] {
            assert_eq!(why.to_string(), expected);
        }
    }
}
