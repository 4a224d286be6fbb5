//! The settings that a container's owner gives in its labels.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use paceline_wire::{DEFAULT_PORT, Direction, Targets};

use crate::plain::{MAX_NAME, MAX_PATH, is_plain};

/// The label that opts a container in. No container without it is ever changed.
pub const ENABLE: &str = "paceline.enable";

/// The label that names a job.
pub const JOB: &str = "paceline.job";
/// The label of a container whose process answers for the job that it names.
pub const SIDECAR_OF: &str = "paceline.sidecar-of";
/// On a service, and on the network of a distributed job: the job that it belongs to.
pub const GANG: &str = "paceline.gang";
/// The label of what a move has created: what it replaces. On a container of a move between the CPUs of one
/// machine, that is the id of a container. On a service of a Swarm and its tasks' containers, it is the id of a
/// service.
pub const MOVED_FROM: &str = "paceline.moved-from";
/// The label that declares a job's whole work.
pub const WORK: &str = "paceline.work";
/// The label that names the folder or file of a job's checkpoints.
pub const CHECKPOINT: &str = "paceline.checkpoint";

/// The prefix of our labels and annotations on a pod of Kubernetes.
pub const POD_PREFIX: &str = "paceline.dev/";
/// The label that opts a pod in.
pub const POD_ENABLE: &str = "paceline.dev/enable";
/// The annotation that names the container of a pod that trains.
pub const POD_CONTAINER: &str = "paceline.dev/container";
/// The prefix of our labels on a container.
pub const PREFIX: &str = "paceline.";

/// The labels of a container that has these labels and annotations on its pod. `paceline.dev/NAME` means
/// `paceline.NAME`, and an annotation overrides a label. Only a label opts in.
pub fn of_pod<'a>(
    labels: impl Iterator<Item = (&'a String, &'a String)> + Clone,
    annotations: impl Iterator<Item = (&'a String, &'a String)>,
) -> BTreeMap<String, String> {
    let own = |(key, value): (&String, &String)| {
        let name = key.strip_prefix(POD_PREFIX)?;
        Some((format!("{PREFIX}{name}"), value.clone()))
    };
    let mut all: BTreeMap<String, String> =
        labels.clone().map(|(key, value)| (key.clone(), value.clone())).collect();
    all.extend(labels.filter_map(own));
    all.extend(annotations.filter_map(own).filter(|(name, _)| name != ENABLE));
    all
}

/// The settings in the labels of one container, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The job's name, if it differs from the container's.
    pub job: Option<String>,
    /// Where the job's endpoint is.
    pub endpoint: Endpoint,
    /// Targets that override those of the endpoint.
    pub targets: Targets,
    /// Whether the loss is minimized or maximized; overrides the endpoint.
    pub direction: Option<Direction>,
    /// The fewest CPUs that the job is given.
    pub min_cpus: Option<f64>,
    /// The most CPUs that the job is given.
    pub max_cpus: Option<f64>,
    /// The job's weight relative to others; 1 by default.
    pub weight: f64,
    /// Whether it may be ended at its objective.
    pub terminate: bool,
    /// The largest factor by which it may be slower than under equal sharing: at least 1.
    pub max_slowdown: Option<f64>,
    /// Its whole work, in seconds of the whole machine. Only reference policies use it.
    pub work: Option<f64>,
    /// Where its checkpoints lie, inside the container. A new container with the same command
    /// continues from there, so the job may be moved.
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

/// A label that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum LabelError {
    /// The value of one label is invalid.
    #[error("invalid label {label}={value:?}: expected {allowed}")]
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
        "invalid labels {low}={low_value} and {high}={high_value}: expected the first to be at most the second"
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
const NAME: &str = "at most 64 characters, all of them printable";
const CHECKPOINT_PATH: &str = "an absolute path of at most 1024 printable characters";
const ENDPOINT: &str = "a port or unix:/path of at most 1024 printable characters";
/// The most characters of an invalid value that an error shows.
const MAX_SHOWN: usize = 64;

impl LabelError {
    /// The error in the words of a pod's owner, whose settings are annotations.
    pub fn of_pod(&self) -> String {
        self.renamed("annotation", POD_PREFIX)
    }

    /// The error in the words of a command line, whose settings are options.
    pub fn of_options(&self) -> String {
        self.renamed("option", "--")
    }

    /// The labels that it is about.
    pub fn labels(&self) -> Vec<&'static str> {
        match self {
            Self::Value { label, .. } => vec![label],
            Self::Order { low, high, .. } => vec![low, high],
        }
    }

    fn renamed(&self, kind: &str, prefix: &str) -> String {
        let name = |label: &str| label.replacen(PREFIX, prefix, 1);
        match self {
            Self::Value { label, value, allowed } => {
                format!("invalid {kind} {}={value:?}: expected {allowed}", name(label))
            }
            Self::Order { low, low_value, high, high_value } => format!(
                "invalid {kind}s {}={low_value} and {}={high_value}: expected the first to be at most \
                 the second",
                name(low),
                name(high)
            ),
        }
    }
}

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
            job: parsed(labels, JOB, NAME, |name| {
                is_plain(name, MAX_NAME).then(|| name.to_owned())
            })?
            .filter(|name| !name.is_empty()),
            endpoint: parsed(labels, "paceline.endpoint", ENDPOINT, endpoint)?
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
            checkpoint: parsed(labels, CHECKPOINT, CHECKPOINT_PATH, path)?,
        };
        read.in_order()?;
        Ok(read)
    }

    fn in_order(&self) -> Result<(), LabelError> {
        let (acceptable, objective) = ("paceline.acceptable", "paceline.objective");
        // An acceptable loss is reached before the objective (T10).
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
        None => Err(LabelError::Value { label, value: shown(value), allowed }),
    }
}

/// An invalid value, cut if it is long. The error escapes it.
fn shown(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

fn path(value: &str) -> Option<PathBuf> {
    (value.starts_with('/') && is_plain(value, MAX_PATH)).then(|| PathBuf::from(value))
}

fn endpoint(value: &str) -> Option<Endpoint> {
    match value.strip_prefix("unix:") {
        Some(socket) => path(socket).map(Endpoint::Unix),
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
    fn container_without_labels_has_documented_defaults() {
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
    fn invalid_label_is_named_with_its_value_and_what_is_allowed() {
        assert_eq!(
            error(&[("paceline.min-cpus", "-1")]),
            r#"invalid label paceline.min-cpus="-1": expected a number above 0"#
        );
        assert_eq!(
            error(&[("paceline.endpoint", "unix:relative")]),
            r#"invalid label paceline.endpoint="unix:relative": expected a port or unix:/path of at most 1024 printable characters"#
        );
        assert_eq!(
            error(&[("paceline.checkpoint", "ckpt")]),
            r#"invalid label paceline.checkpoint="ckpt": expected an absolute path of at most 1024 printable characters"#
        );
    }

    #[test]
    fn long_or_unprintable_name_is_refused_and_shown_in_part() {
        let long = "x".repeat(300_000);
        assert_eq!(
            error(&[(JOB, &long)]),
            format!(
                r#"invalid label paceline.job="{}…": expected at most 64 characters, all of them printable"#,
                "x".repeat(64)
            )
        );
        assert!(error(&[(JOB, "a\nb")]).starts_with(r#"invalid label paceline.job="a\nb":"#));
        let path = format!("/{long}");
        for (label, value) in
            [("paceline.endpoint", format!("unix:{path}")), (CHECKPOINT, path.clone())]
        {
            let error = error(&[(label, &value)]);
            assert!(error.len() < 250 && error.contains("at most 1024"), "{error}");
        }
        let name = "ü".repeat(64);
        let read = Labels::parse(&labels(&[(JOB, &name)])).unwrap();
        assert_eq!(read.job.as_deref(), Some(name.as_str()));
    }

    #[test]
    fn acceptable_loss_beyond_the_objective_is_refused() {
        let targets = [("paceline.acceptable", "110"), ("paceline.objective", "120")];
        assert_eq!(
            error(&targets),
            "invalid labels paceline.objective=120 and paceline.acceptable=110: expected the first to be at most the second"
        );
        let [acceptable, objective] = targets;
        let up = [acceptable, objective, ("paceline.direction", "maximize")];
        assert!(Labels::parse(&labels(&up)).is_ok());
    }

    #[test]
    fn annotations_of_a_pod_override_its_labels() {
        let label = labels(&[
            ("paceline.dev/enable", "true"),
            ("paceline.enable", "false"),
            ("paceline.dev/weight", "2"),
            ("paceline.min-cpus", "0.5"),
            ("app", "vae"),
        ]);
        let annotations = labels(&[
            ("paceline.dev/acceptable", "-0.3"),
            ("paceline.dev/weight", "3"),
            ("paceline.dev/enable", "false"),
            ("other.dev/weight", "9"),
        ]);
        let read = of_pod(label.iter(), annotations.iter());
        assert!(Labels::opted_in(&read) && read.get("app").is_some_and(|app| app == "vae"));
        let read = Labels::parse(&read).unwrap();
        assert_eq!((read.targets.acceptable, read.weight), (Some(-0.3), 3.0));
        assert_eq!(read.min_cpus, Some(0.5));
    }

    #[test]
    fn annotation_does_not_opt_a_pod_in() {
        let annotations = labels(&[(POD_ENABLE, "true")]);
        assert!(!Labels::opted_in(&of_pod(BTreeMap::new().iter(), annotations.iter())));
    }

    #[test]
    fn invalid_annotation_is_named_as_one() {
        let read = labels(&[("paceline.min-cpus", "-1")]);
        assert_eq!(
            Labels::parse(&read).unwrap_err().of_pod(),
            r#"invalid annotation paceline.dev/min-cpus="-1": expected a number above 0"#
        );
        let order = labels(&[("paceline.min-cpus", "2"), ("paceline.max-cpus", "1")]);
        assert_eq!(
            Labels::parse(&order).unwrap_err().of_pod(),
            "invalid annotations paceline.dev/min-cpus=2 and paceline.dev/max-cpus=1: expected the \
             first to be at most the second"
        );
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
