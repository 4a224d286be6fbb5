//! What a container's labels ask for: the words of its owner.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use paceline_wire::{DEFAULT_PORT, Direction, Targets};

/// The label that opts a container in. Nothing without it is ever touched.
pub const ENABLE: &str = "paceline.enable";

/// The label that names a job.
pub const JOB: &str = "paceline.job";
/// The label that declares a job's whole work.
pub const WORK: &str = "paceline.work";
/// The label that says where a job's checkpoints lie.
pub const CHECKPOINT: &str = "paceline.checkpoint";

/// What the labels of one container say, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The job's name, where it is not the container's.
    pub job: Option<String>,
    /// Where the job's endpoint is.
    pub endpoint: Endpoint,
    /// Targets that rule over those of the endpoint.
    pub targets: Targets,
    /// Which way the loss goes, where the endpoint is not to be asked.
    pub direction: Option<Direction>,
    /// The least CPUs that the job is to have.
    pub min_cpus: Option<f64>,
    /// The most.
    pub max_cpus: Option<f64>,
    /// The job's weight beside others: 1 unless said.
    pub weight: f64,
    /// Whether it may be ended at its objective.
    pub terminate: bool,
    /// By how much it may be slowed down beside an equal share: at least 1.
    pub max_slowdown: Option<f64>,
    /// Its whole work, in seconds of the whole machine: a yardstick goes by it, no other policy.
    pub work: Option<f64>,
    /// Where its checkpoints lie, inside the container: a new one with the same command goes on from
    /// there, so the job may be moved.
    pub checkpoint: Option<PathBuf>,
}

/// Where a job's endpoint listens, seen from inside the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP port of the container's loopback.
    Port(u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A label that says nothing usable.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum LabelError {
    /// One label by itself.
    #[error("label {label}={value:?}: must be {allowed}")]
    Value {
        /// The label.
        label: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        allowed: &'static str,
    },
    /// Two labels that contradict each other.
    #[error(
        "labels {low}={low_value} and {high}={high_value}: the first must be at most the second"
    )]
    Order {
        /// The one that must not be larger.
        low: &'static str,
        /// Its value.
        low_value: f64,
        /// The one that must not be smaller.
        high: &'static str,
        /// Its value.
        high_value: f64,
    },
}

const POSITIVE: &str = "a number above 0";

impl Labels {
    /// Whether the labels opt the container in.
    pub fn opted_in(labels: &BTreeMap<String, String>) -> bool {
        labels.get(ENABLE).is_some_and(|value| value == "true")
    }

    /// Reads and checks the labels.
    pub fn parse(labels: &BTreeMap<String, String>) -> Result<Self, LabelError> {
        let number = |label, allowed, holds: fn(f64) -> bool| {
            parsed(labels, label, allowed, |value| f64::from_str(value).ok().filter(|x| holds(*x)))
        };
        let target = |label| number(label, "a finite number", f64::is_finite);
        let positive = |label| number(label, POSITIVE, |x| x.is_finite() && x > 0.0);
        let flag =
            |label| parsed(labels, label, "true or false", |value| bool::from_str(value).ok());
        let read = Self {
            job: labels.get(JOB).filter(|name| !name.is_empty()).cloned(),
            endpoint: parsed(labels, "paceline.endpoint", "a port or unix:/path", endpoint)?
                .unwrap_or(Endpoint::Port(DEFAULT_PORT)),
            targets: Targets {
                acceptable: target("paceline.acceptable")?,
                objective: target("paceline.objective")?,
                batch_latency: positive("paceline.batch-latency")?,
            },
            direction: parsed(labels, "paceline.direction", "minimize or maximize", direction)?,
            min_cpus: positive("paceline.min-cpus")?,
            max_cpus: positive("paceline.max-cpus")?,
            weight: positive("paceline.weight")?.unwrap_or(1.0),
            terminate: flag("paceline.terminate")?.unwrap_or(false),
            max_slowdown: number("paceline.max-slowdown", "a number, at least 1", |x| {
                x.is_finite() && x >= 1.0
            })?,
            work: positive(WORK)?,
            checkpoint: parsed(labels, CHECKPOINT, "an absolute path", |value| {
                value.starts_with('/').then(|| PathBuf::from(value))
            })?,
        };
        read.in_order()?;
        Ok(read)
    }

    fn in_order(&self) -> Result<(), LabelError> {
        let (acceptable, objective) = ("paceline.acceptable", "paceline.objective");
        // T10: an acceptable loss is one that comes before the objective.
        let (low, high) = match self.direction.unwrap_or_default() {
            Direction::Minimize => {
                ((objective, self.targets.objective), (acceptable, self.targets.acceptable))
            }
            Direction::Maximize => {
                ((acceptable, self.targets.acceptable), (objective, self.targets.objective))
            }
        };
        at_most(low, high)?;
        at_most(("paceline.min-cpus", self.min_cpus), ("paceline.max-cpus", self.max_cpus))
    }
}

fn at_most(
    (low, low_value): (&'static str, Option<f64>),
    (high, high_value): (&'static str, Option<f64>),
) -> Result<(), LabelError> {
    match (low_value, high_value) {
        (Some(low_value), Some(high_value)) if low_value > high_value => {
            Err(LabelError::Order { low, low_value, high, high_value })
        }
        _ => Ok(()),
    }
}

fn parsed<T>(
    labels: &BTreeMap<String, String>,
    label: &'static str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, LabelError> {
    let Some(value) = labels.get(label) else { return Ok(None) };
    match read(value.trim()) {
        Some(read) => Ok(Some(read)),
        None => Err(LabelError::Value { label, value: value.clone(), allowed }),
    }
}

fn endpoint(value: &str) -> Option<Endpoint> {
    match value.strip_prefix("unix:") {
        Some(path) => path.starts_with('/').then(|| Endpoint::Unix(PathBuf::from(path))),
        None => value.parse().ok().filter(|port| *port != 0).map(Endpoint::Port),
    }
}

fn direction(value: &str) -> Option<Direction> {
    match value {
        "minimize" => Some(Direction::Minimize),
        "maximize" => Some(Direction::Maximize),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect()
    }

    fn error(pairs: &[(&str, &str)]) -> String {
        Labels::parse(&labels(pairs)).unwrap_err().to_string()
    }

    #[test]
    fn a_bare_container_has_the_documented_defaults() {
        let read = Labels::parse(&BTreeMap::new()).unwrap();
        assert_eq!(read.endpoint, Endpoint::Port(7223));
        assert!(!read.terminate && read.weight.to_bits() == 1.0_f64.to_bits());
    }

    #[test]
    fn only_the_word_true_opts_in() {
        for (value, opted) in [("true", true), ("false", false), ("1", false), ("", false)] {
            assert_eq!(Labels::opted_in(&labels(&[(ENABLE, value)])), opted, "{value}");
        }
    }

    #[test]
    fn a_bad_label_is_named_with_its_value_and_what_is_allowed() {
        assert_eq!(
            error(&[("paceline.min-cpus", "-1")]),
            r#"label paceline.min-cpus="-1": must be a number above 0"#
        );
        assert_eq!(
            error(&[("paceline.endpoint", "unix:relative")]),
            r#"label paceline.endpoint="unix:relative": must be a port or unix:/path"#
        );
        assert_eq!(
            error(&[("paceline.checkpoint", "ckpt")]),
            r#"label paceline.checkpoint="ckpt": must be an absolute path"#
        );
    }

    #[test]
    fn an_acceptable_loss_beyond_the_objective_is_refused() {
        let targets = [("paceline.acceptable", "110"), ("paceline.objective", "120")];
        assert_eq!(
            error(&targets),
            "labels paceline.objective=120 and paceline.acceptable=110: the first must be at most the second"
        );
        let [acceptable, objective] = targets;
        let up = [acceptable, objective, ("paceline.direction", "maximize")];
        assert!(Labels::parse(&labels(&up)).is_ok());
    }

    proptest! {
        #[test]
        fn no_value_makes_the_reader_panic(value in ".*") {
            for label in [
                "endpoint", "acceptable", "direction", "min-cpus", "weight", "terminate",
                "checkpoint",
            ] {
                drop(Labels::parse(&labels(&[(&format!("paceline.{label}"), &value)])));
            }
        }
    }
}
