//! The rules that hold for many values of a scenario.

use std::collections::BTreeSet;

use super::file::ArriveFile;
use super::{Failures, ScenarioError};

pub(super) type Checked<T> = Result<T, ScenarioError>;

/// More jobs of one group than this are a mistake in the file.
const MOST: u32 = 1_000_000;

pub(super) fn arrival(arrive: &ArriveFile, kind: &str, name: &str, count: u32) -> Checked<()> {
    let field = |way: &str| format!("{kind} {name:?}: arrive.{way}");
    let ArriveFile { at, each, every, uniform, poisson, from } = arrive;
    let ways =
        [at.is_some(), each.is_some(), every.is_some(), uniform.is_some(), poisson.is_some()];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        let rule = "one of at, each, every, uniform and poisson may be given";
        return Err(ScenarioError::value(format!("{kind} {name:?}: arrive"), &"several", rule));
    }
    let one = |way: &'static str, seconds: &Option<f64>| seconds.map(|seconds| (way, seconds));
    let several = each.iter().flatten().map(|seconds| ("each", *seconds));
    let bounds = uniform.iter().flat_map(|(low, high)| [("uniform", *low), ("uniform", *high)]);
    let single = [one("at", at), one("every", every), one("from", from)].into_iter().flatten();
    for (way, seconds) in single.chain(several).chain(bounds) {
        require(field(way), seconds, "must be seconds, at least 0", seconds >= 0.0)?;
    }
    if let Some(gap) = poisson {
        require(field("poisson"), *gap, "must be a mean gap in seconds, above 0", *gap > 0.0)?;
    }
    listed(kind, name, "arrive.each", each.as_deref(), count)
}

pub(super) fn failing(
    failures: &Failures,
    kind: &str,
    name: &str,
    until: Option<f64>,
) -> Checked<()> {
    let field = |field: &str| format!("{kind} {name:?}: failures.{field}");
    let Failures { every, at, down } = failures;
    if every.is_some() != at.is_empty() {
        let rule = "one of failures.every and failures.at must be given";
        let given = if at.is_empty() { "neither" } else { "both" };
        return Err(ScenarioError::value(format!("{kind} {name:?}: failures"), &given, rule));
    }
    if let Some(mean) = every {
        require(field("every"), *mean, "must be a mean in seconds, above 0", *mean > 0.0)?;
        if until.is_none() {
            let rule = "what fails again and again may never end: the scenario needs `until`";
            return Err(ScenarioError::value(field("every"), mean, rule));
        }
    }
    for moment in at {
        require(field("at"), *moment, "must be seconds, above 0", *moment > 0.0)?;
    }
    require(field("down"), *down, "must be seconds, at least 0", *down >= 0.0)
}

pub(super) fn listed(
    kind: &str,
    name: &str,
    list: &str,
    each: Option<&[f64]>,
    count: u32,
) -> Checked<()> {
    match each {
        Some(each) if u32::try_from(each.len()) != Ok(count) => {
            let rule = format!("must have as many members as count says, {count}");
            let length = format!("a list of {}", each.len());
            Err(ScenarioError::value(format!("{kind} {name:?}: {list}"), &length, rule))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn count(kind: &str, name: &str, count: u32) -> Checked<()> {
    if name.is_empty() {
        return Err(ScenarioError::value(format!("{kind}: name"), &"\"\"", "must not be empty"));
    }
    let fits = (1..=MOST).contains(&count);
    let rule = format!("must be from 1 to {MOST}");
    require(format!("{kind} {name:?}: count"), f64::from(count), &rule, fits)
}

pub(super) fn known(
    kind: &str,
    name: &str,
    wanted: &[String],
    nodes: &BTreeSet<&str>,
) -> Checked<()> {
    let unknown = wanted.iter().find(|node| !nodes.contains(node.as_str()));
    let Some(node) = unknown else { return Ok(()) };
    let rule = format!(
        "must be one of the nodes {}",
        nodes.iter().copied().collect::<Vec<_>>().join(", ")
    );
    Err(ScenarioError::value(format!("{kind} {name:?}: node"), &format!("{node:?}"), rule))
}

/// No other group has this one's name, and none of its members has that of another.
pub(super) fn differ(
    kind: &str,
    name: &str,
    count: u32,
    seen: &mut BTreeSet<String>,
) -> Checked<()> {
    let group = (count > 1).then(|| name.to_owned());
    for name in group.into_iter().chain(numbered(name, count)) {
        if let Some(name) = seen.replace(name) {
            let rule = "names must differ, of groups and of their members";
            let twice = format!("{name:?}, twice");
            return Err(ScenarioError::value(format!("{kind}: name"), &twice, rule));
        }
    }
    Ok(())
}

pub(super) fn require(field: impl Into<String>, value: f64, rule: &str, fits: bool) -> Checked<()> {
    if fits && value.is_finite() { Ok(()) } else { Err(ScenarioError::value(field, &value, rule)) }
}

/// The names of a group: its own for one, numbered for several, so that their order is that of the
/// numbers.
pub(super) fn numbered(name: &str, count: u32) -> Vec<String> {
    if count == 1 {
        return vec![name.to_owned()];
    }
    let digits = count.to_string().len();
    (1..=count).map(|number| format!("{name}-{number:0digits$}")).collect()
}
