//! Arms and the policies that stand for one each.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use toml::Spanned;

use super::super::file::ArmFile;
use super::super::{Arm, Job, Problem};
use super::jobs::unknown_work;
use super::{Lines, check_name, quoted, value};
use crate::migrate::Means;

/// What a file says of its arms.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) policies: Vec<Spanned<String>>,
    pub(super) arms: Vec<Spanned<ArmFile>>,
    pub(super) params: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
}

/// The arms of a schedule.
#[derive(Debug)]
pub(super) struct Arms {
    /// At least one.
    pub(super) always: Vec<Arm>,
    /// Those of the full form alone.
    pub(super) in_full: Vec<Arm>,
}

/// The arms on so many nodes: those of `policies` first.
pub(super) fn check(
    said: Said,
    nodes: usize,
    jobs: &[Job],
    lines: Lines<'_>,
) -> Result<Arms, Problem> {
    let Said { policies, arms, params } = said;
    for (name, its) in &params {
        if let Some(problem) = Arm::new(name, its.get_ref().clone()).problem(nodes.max(2)) {
            return Err(value(lines.of(its), "params", &format!("[params.{name}]"), problem));
        }
    }
    let params = |policy: &str| params.get(policy).map(|its| its.get_ref().clone());
    let mut seen = BTreeSet::new();
    let mut found = Arms { always: Vec::new(), in_full: Vec::new() };
    for policy in &policies {
        let name = policy.get_ref();
        let arm = Arm::new(name, params(name).unwrap_or_default());
        let problem = match problem(&arm, nodes, jobs) {
            None if !seen.insert(arm.name.clone()) => "no policy may stand there twice".to_owned(),
            None => {
                found.always.push(arm);
                continue;
            }
            Some(problem) => problem,
        };
        return Err(value(lines.of(policy), "policies", &quoted(policy), problem));
    }
    for arm in arms {
        let line = lines.of(&arm);
        let arm = arm.into_inner();
        let (policy, full) = (arm.policy.clone(), arm.full);
        if let Some(name) = &arm.name {
            check_name("[[arm]] name", name, lines)?;
        }
        let usual = params(policy.get_ref()).unwrap_or_default();
        let arm = read(arm, usual, lines)?;
        if let Some(problem) = problem(&arm, nodes, jobs) {
            return Err(value(lines.of(&policy), "[[arm]] policy", &quoted(&policy), problem));
        }
        if !seen.insert(arm.name.clone()) {
            let rule = "another arm is called that already: give this one a name of its own";
            return Err(value(line, "[[arm]] name", &format!("{:?}", arm.name), rule));
        }
        if full { &mut found.in_full } else { &mut found.always }.push(arm);
    }
    if found.always.is_empty() {
        let rule = "there must be at least one, or an [[arm]]";
        return Err(value(lines.last(), "policies", &"missing", rule));
    }
    Ok(found)
}

fn problem(arm: &Arm, nodes: usize, jobs: &[Job]) -> Option<String> {
    arm.problem(nodes).or_else(|| arm.is_oracle().then(|| unknown_work(jobs)).flatten())
}

/// The arm that a table describes: its parameters rule over those that its policy has everywhere.
fn read(
    file: ArmFile,
    mut params: BTreeMap<String, f64>,
    lines: Lines<'_>,
) -> Result<Arm, Problem> {
    params.extend(file.params);
    let mut arm = Arm::new(file.policy.get_ref(), params);
    if let Some(said) = &file.variant {
        let rule = |error: paceline_policy::policy::UnknownVariant| {
            value(lines.of(said), "[[arm]] variant", &quoted(said), error.to_string())
        };
        arm.variant = said.get_ref().parse().map_err(rule)?;
    }
    if let Some(said) = &file.enforcement {
        let rule = "must be quota, shares or quota+leftover";
        let wrong = |_| value(lines.of(said), "[[arm]] enforcement", &quoted(said), rule);
        arm.enforcement = said.get_ref().parse().map_err(wrong)?;
    }
    if let Some(said) = &file.migration {
        let all: Vec<String> = Means::value_variants().iter().map(Means::to_string).collect();
        let rule = format!("must be {}", all.join(" or "));
        let wrong = |_| value(lines.of(said), "[[arm]] migration", &quoted(said), rule);
        arm.migration = Some(Means::from_str(said.get_ref(), false).map_err(wrong)?);
    }
    let arm = arm.named();
    Ok(match file.name {
        Some(name) => Arm { name: name.into_inner(), ..arm },
        None => arm,
    })
}
