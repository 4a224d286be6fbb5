//! The job's settings: annotations `paceline.dev/NAME` of its pod, or labels `paceline.NAME`.

use regex::Regex;

use crate::cursor::{Cursor, MAX_SHOWN};
use crate::keys::PREFIX;
use crate::problem::Problem;

/// The most characters of a job's name.
const MAX_NAME: usize = 64;
/// The most characters of a path.
const MAX_PATH: usize = 1024;
/// The most characters of a pattern.
const MAX_PATTERN: usize = 4096;

/// The named groups of a pattern, of which one is needed.
const GROUPS: &[&str] = &[
    "loss",
    "val_loss",
    "test_loss",
    "step",
    "epoch",
    "total_steps",
    "batch_seconds",
    "batch_ms",
    "rank",
];

/// A setting: its name, the sidecar's option, what a value is, an example.
type Setting = (&'static str, &'static str, fn(&str) -> bool, &'static str, &'static str);

const NUMBER: &str = "a finite number";
const COUNT: &str = "a whole number above 0";

const SETTINGS: &[Setting] = &[
    ("job", "job", is_name, "at most 64 characters, all of them printable", "resnet"),
    ("acceptable", "acceptable", is_number, NUMBER, "0.3"),
    ("objective", "objective", is_number, NUMBER, "0.25"),
    ("direction", "direction", is_direction, "minimize or maximize", "minimize"),
    ("batch-latency", "batch-latency", is_positive, "seconds, above 0", "0.2"),
    ("endpoint", "listen", is_endpoint, "a port or unix:/path", "7223"),
    ("loss", "loss", is_name, "a name of at most 64 printable characters", "train_loss"),
    (
        "pattern",
        "pattern",
        is_pattern,
        "a regular expression with a group such as loss",
        r"obj (?P<loss>\S+)",
    ),
    ("batch-size", "batch-size", is_count, COUNT, "32"),
    ("total-steps", "total-steps", is_count, COUNT, "5000"),
    ("expected-steps", "expected-steps", is_count, COUNT, "4000"),
];

/// The annotations that name files of a sidecar in its own container: the option, and an example.
const FILES: &[(&str, &str)] =
    &[("log", "/logs/train.log"), ("tfevents", "/runs"), ("csv", "/logs/metrics.csv")];

/// Annotations that the allocator or this program reads, and the sidecar does not.
const OTHERS: &[&str] = &[
    "container",
    "enable",
    "injected",
    "min-cpus",
    "max-cpus",
    "weight",
    "terminate",
    "max-slowdown",
    "work",
    "checkpoint",
    "group",
    "gang",
    "sidecar-of",
];

/// The settings of one pod.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The sidecar's options, each with its value.
    pub(crate) options: Vec<String>,
    /// Options that name files, and the files.
    pub(crate) files: Vec<File>,
    /// The field of an endpoint that is a Unix socket.
    pub(crate) socket: Option<String>,
    /// The annotations that nothing reads.
    pub(crate) unknown: Vec<String>,
}

/// A file or folder that the sidecar follows.
#[derive(Debug)]
pub(crate) struct File {
    /// The sidecar's option.
    pub(crate) option: &'static str,
    /// The path in the job's container.
    pub(crate) path: String,
    /// The annotation's field.
    pub(crate) field: String,
}

impl Settings {
    /// Reads and checks the settings in a pod's metadata. `name` is the job's unless one is set.
    pub(crate) fn read(metadata: &Cursor<'_>, name: &str) -> Result<Self, Problem> {
        let annotations = metadata.map("annotations")?;
        let labels = metadata.map("labels")?;
        let mut read = Self::default();
        let mut numbers = Targets::default();
        for (setting, option, holds, allowed, example) in SETTINGS {
            let value = value(annotations.as_ref(), labels.as_ref(), setting)?;
            let value = match (value, *setting) {
                (None, "job") if is_name(name) => Some((name, String::new())),
                (value, _) => value,
            };
            let Some((value, field)) = value else { continue };
            if !holds(value) {
                return Err(invalid(field, value, allowed, example));
            }
            numbers.take(setting, value, &field);
            if *setting == "endpoint" && value.starts_with("unix:") {
                read.socket = Some(field);
            }
            read.options.push(format!("--{option}={}", literal(&address(setting, value))));
        }
        numbers.are_in_order()?;
        read.files = files(annotations.as_ref())?;
        read.unknown = unknown(annotations.as_ref());
        Ok(read)
    }
}

/// The value of a setting and its field: the annotation, else the label.
fn value<'a>(
    annotations: Option<&Cursor<'a>>,
    labels: Option<&Cursor<'a>>,
    setting: &str,
) -> Result<Option<(&'a str, String)>, Problem> {
    let places =
        [(annotations, format!("{PREFIX}{setting}")), (labels, format!("paceline.{setting}"))];
    for (place, key) in places {
        let Some(place) = place else { continue };
        if let Some(value) = place.text(&key)? {
            return Ok(Some((value.trim(), place.field_of(&key))));
        }
    }
    Ok(None)
}

fn invalid(field: String, value: &str, allowed: &str, example: &str) -> Problem {
    let shown: String = value.chars().take(MAX_SHOWN).collect();
    let cause = format!("invalid value {shown:?}");
    Problem::new(field, cause, format!("expected {allowed}, for example {example:?}"))
}

fn files(annotations: Option<&Cursor<'_>>) -> Result<Vec<File>, Problem> {
    let Some(annotations) = annotations else { return Ok(vec![]) };
    let mut files = Vec::new();
    for (option, example) in FILES {
        let key = format!("{PREFIX}{option}");
        let Some(value) = annotations.text(&key)? else { continue };
        let field = annotations.field_of(&key);
        for path in value.split(',').map(str::trim) {
            if !is_path(path) {
                let allowed = "absolute paths, separated by commas";
                return Err(invalid(field, path, allowed, example));
            }
            files.push(File { option, path: path.to_owned(), field: field.clone() });
        }
    }
    Ok(files)
}

fn unknown(annotations: Option<&Cursor<'_>>) -> Vec<String> {
    let is_known = |name: &str| {
        SETTINGS.iter().any(|setting| setting.0 == name)
            || FILES.iter().any(|file| file.0 == name)
            || OTHERS.contains(&name)
    };
    let values = annotations.map(Cursor::values).unwrap_or_default();
    let ours = values.into_iter().filter_map(|(key, _)| Some((key, key.strip_prefix(PREFIX)?)));
    ours.filter(|(_, name)| !is_known(name)).map(|(key, _)| key.to_owned()).collect()
}

/// The address to listen on: a port alone is on loopback.
fn address(setting: &str, value: &str) -> String {
    let is_port = setting == "endpoint" && !value.starts_with("unix:");
    if is_port { format!("127.0.0.1:{value}") } else { value.to_owned() }
}

/// A text that Kubernetes passes on as it is: it replaces `$(NAME)` by variables, and `$$` by `$`.
pub(crate) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The target losses, to be compared.
#[derive(Default)]
struct Targets {
    acceptable: Option<f64>,
    objective: Option<(f64, String)>,
    maximizes: bool,
}

impl Targets {
    fn take(&mut self, setting: &str, value: &str, field: &str) {
        match setting {
            "acceptable" => self.acceptable = value.parse().ok(),
            "objective" => self.objective = value.parse().ok().map(|loss| (loss, field.to_owned())),
            "direction" => self.maximizes = value == "maximize",
            _ => {}
        }
    }

    /// The sidecar would refuse them, and the job would not start.
    fn are_in_order(self) -> Result<(), Problem> {
        let (Some(acceptable), Some((objective, field))) = (self.acceptable, self.objective) else {
            return Ok(());
        };
        let (low, high) =
            if self.maximizes { (acceptable, objective) } else { (objective, acceptable) };
        if low <= high {
            return Ok(());
        }
        let cause =
            format!("the objective {objective} is reached before the acceptable loss {acceptable}");
        Err(Problem::new(field, cause, "exchange them, or set paceline.dev/direction"))
    }
}

fn is_plain(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.is_empty() && !text.chars().any(char::is_control)
}

fn is_name(text: &str) -> bool {
    is_plain(text, MAX_NAME)
}

fn is_path(text: &str) -> bool {
    let steps_up = text.split('/').any(|step| step == "..");
    text.starts_with('/') && is_plain(text, MAX_PATH) && !steps_up
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_positive(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0)
}

fn is_count(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|count| count > 0)
}

fn is_direction(text: &str) -> bool {
    ["minimize", "maximize"].contains(&text)
}

fn is_endpoint(text: &str) -> bool {
    match text.strip_prefix("unix:") {
        Some(path) => is_path(path),
        None => text.parse::<u16>().is_ok_and(|port| port > 0),
    }
}

fn is_pattern(text: &str) -> bool {
    let Ok(regex) = (if is_plain(text, MAX_PATTERN) { Regex::new(text) } else { return false })
    else {
        return false;
    };
    let mut names = regex.capture_names().flatten().peekable();
    names.peek().is_some() && names.all(|name| GROUPS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_a_setting_holds() {
        for (setting, _, holds, _, example) in SETTINGS {
            assert!(holds(example), "{setting}");
        }
        for (option, example) in FILES {
            assert!(is_path(example), "{option}");
        }
    }

    #[test]
    fn values_that_the_sidecar_would_refuse_do_not_hold() {
        for (setting, values) in [
            ("job", &["", "a\nb"][..]),
            ("acceptable", &["", "x", "inf", "NaN", "0,3"]),
            ("direction", &["up", "Minimize"]),
            ("batch-latency", &["0", "-1"]),
            ("endpoint", &["0", "65536", "unix:", "unix:relative", "unix:/a/../b", "localhost:1"]),
            ("pattern", &["(", "loss", r"(?P<los>\d+)", ""]),
            ("total-steps", &["0", "-1", "1.5"]),
        ] {
            let holds = SETTINGS.iter().find(|known| known.0 == setting).unwrap().2;
            for value in values {
                assert!(!holds(value), "{setting}={value}");
            }
        }
    }

    /// The names between `ALLOWED` and the end of its list, in the sidecar's source.
    fn groups_of_the_sidecar() -> Vec<String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sidecar/grammar/src/patterns.rs");
        let source = std::fs::read_to_string(path).unwrap();
        let (_, list) = source.split_once("const ALLOWED").expect("the list of allowed groups");
        let (list, _) = list.split_once("];").expect("the end of the list");
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    // No crate that both use has words of patterns: the sidecar is not part of the allocator.
    #[test]
    fn groups_of_patterns_are_those_of_the_sidecar() {
        let groups = groups_of_the_sidecar();
        assert!(groups.len() > 5, "{groups:?}");
        assert_eq!(groups, GROUPS);
    }

    #[test]
    fn dollar_is_doubled_so_that_no_variable_is_put_in() {
        assert_eq!(literal("$(HOME) a$"), "$$(HOME) a$$");
    }
}
