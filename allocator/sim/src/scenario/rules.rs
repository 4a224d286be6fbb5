//! Rules that are common to many values of a scenario.

use std::collections::BTreeSet;

use super::file::ArriveFile;
use super::{Failures, ScenarioError};

pub(super) type Checked<T> = Result<T, ScenarioError>;

/// The most jobs or distributed jobs in all, and in one group.
pub(super) const MAX_JOBS: u32 = 20_000;
/// The most nodes in all, and in one group.
pub(super) const MAX_NODES: u32 = 1_000;
/// The most seeds.
pub(super) const MAX_SEEDS: u32 = 10_000;
/// The longest time and the most work, in seconds: 30 years. Beyond it, the numbers of a run lose
/// their small differences.
const MAX_SECONDS: f64 = 1e9;

pub(super) fn arrival(arrive: &ArriveFile, kind: &str, name: &str, count: u32) -> Checked<()> {
    let field = |way: &str| format!("{kind} {name:?}: arrive.{way}");
    let ArriveFile { at, each, every, uniform, poisson, from } = arrive;
    let ways =
        [at.is_some(), each.is_some(), every.is_some(), uniform.is_some(), poisson.is_some()];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        let rule = "only one of at, each, every, uniform and poisson may be given";
        return Err(ScenarioError::value(format!("{kind} {name:?}: arrive"), &"ambiguous", rule));
    }
    let one = |way: &'static str, seconds: &Option<f64>| seconds.map(|seconds| (way, seconds));
    let several = each.iter().flatten().map(|seconds| ("each", *seconds));
    let bounds = uniform.iter().flat_map(|(low, high)| [("uniform", *low), ("uniform", *high)]);
    let single = [one("at", at), one("every", every), one("from", from)].into_iter().flatten();
    for (way, seconds) in single.chain(several).chain(bounds) {
        within(field(way), seconds, "must be seconds, at least 0", seconds >= 0.0)?;
    }
    if let Some(gap) = poisson {
        within(field("poisson"), *gap, "must be a mean gap in seconds, above 0", *gap > 0.0)?;
    }
    let last = every.unwrap_or(0.0) * f64::from(count) + from.unwrap_or(0.0);
    within(field("every"), last, "must let all arrive in time", true)?;
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
        let rule = "exactly one of every and at must be given";
        let given = if at.is_empty() { "incomplete" } else { "ambiguous" };
        return Err(ScenarioError::value(format!("{kind} {name:?}: failures"), &given, rule));
    }
    if let Some(mean) = every {
        within(field("every"), *mean, "must be a mean in seconds, above 0", *mean > 0.0)?;
        if until.is_none() {
            let rule = "a run with repeated failures may never end: the scenario needs `until`";
            return Err(ScenarioError::value(field("every"), mean, rule));
        }
    }
    for moment in at {
        within(field("at"), *moment, "must be seconds, above 0", *moment > 0.0)?;
    }
    within(field("down"), *down, "must be seconds, at least 0", *down >= 0.0)
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
            let rule = format!("must have as many values as count, {count}");
            let length = format!("a list of {}", each.len());
            Err(ScenarioError::value(format!("{kind} {name:?}: {list}"), &length, rule))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks the names and sizes of all groups, and how many members they have together.
pub(super) fn in_all<'a>(
    kind: &str,
    groups: impl Iterator<Item = (&'a str, u32)>,
    most: u32,
) -> Checked<()> {
    let (mut all, rule) = (0_u32, format!("must be from 1 to {most}"));
    for (name, count) in groups {
        if name.is_empty() {
            let field = format!("{kind}: name");
            return Err(ScenarioError::value(field, &"\"\"", "must not be empty"));
        }
        let field = format!("{kind} {name:?}: count");
        require(field, f64::from(count), &rule, (1..=most).contains(&count))?;
        all = all.saturating_add(count);
    }
    let rule = format!("must be at most {most} in all");
    require(format!("{kind}: count"), f64::from(all), &rule, all <= most)
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

/// Checks that the names of a group and of its members differ from all others.
pub(super) fn differ(
    kind: &str,
    name: &str,
    count: u32,
    seen: &mut BTreeSet<String>,
) -> Checked<()> {
    let group = (count > 1).then(|| name.to_owned());
    for name in group.into_iter().chain(numbered(name, count)) {
        if let Some(name) = seen.replace(name) {
            let rule = "the names of groups and of their members must differ";
            let twice = format!("{name:?}, twice");
            return Err(ScenarioError::value(format!("{kind}: name"), &twice, rule));
        }
    }
    Ok(())
}

pub(super) fn require(field: impl Into<String>, value: f64, rule: &str, fits: bool) -> Checked<()> {
    if fits && value.is_finite() { Ok(()) } else { Err(ScenarioError::value(field, &value, rule)) }
}

/// The same for seconds and for work, which also have a largest value.
pub(super) fn within(field: impl Into<String>, value: f64, rule: &str, fits: bool) -> Checked<()> {
    let field = field.into();
    require(field.clone(), value, rule, fits)?;
    require(field, value, &format!("must be at most {MAX_SECONDS}"), value <= MAX_SECONDS)
}

/// The names of a group's members: its own name for one, else numbered so that they sort by number.
pub(super) fn numbered(name: &str, count: u32) -> Vec<String> {
    if count == 1 {
        return vec![name.to_owned()];
    }
    let digits = count.to_string().len();
    (1..=count).map(|number| format!("{name}-{number:0digits$}")).collect()
}
