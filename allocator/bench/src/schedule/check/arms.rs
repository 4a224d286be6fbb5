//! The arms of a schedule: its `policies`, each of which is an arm, and its `[[arm]]` tables.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use paceline_node::migration::MigrationMethod;
use toml::Spanned;

use super::super::file::ArmFile;
use super::super::{Arm, Job, Problem};
use super::jobs::unknown_work;
use super::{Lines, check_name, quoted, value};

/// The parts of a file that define arms.
#[derive(Debug)]
pub(super) struct ArmTables {
    pub(super) policies: Vec<Spanned<String>>,
    pub(super) arms: Vec<Spanned<ArmFile>>,
    pub(super) params: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
}

/// The arms of a schedule.
#[derive(Debug)]
pub(super) struct Arms {
    /// At least one.
    pub(super) always: Vec<Arm>,
    /// Those of the full form only.
    pub(super) in_full: Vec<Arm>,
}

/// Checks the arms, for this number of nodes; those of `policies` come first.
pub(super) fn check(
    tables: ArmTables,
    nodes: usize,
    jobs: &[Job],
    lines: Lines<'_>,
) -> Result<Arms, Problem> {
    let ArmTables { policies, arms, params } = tables;
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
            None if !seen.insert(arm.name.clone()) => {
                "each policy may be listed only once".to_owned()
            }
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
            let rule = "another arm has that name already: give this one another name";
            return Err(value(line, "[[arm]] name", &format!("{:?}", arm.name), rule));
        }
        if full { &mut found.in_full } else { &mut found.always }.push(arm);
    }
    if found.always.is_empty() {
        let rule = "there must be at least one policy, or an [[arm]]";
        return Err(value(lines.last(), "policies", &"missing", rule));
    }
    Ok(found)
}

fn problem(arm: &Arm, nodes: usize, jobs: &[Job]) -> Option<String> {
    arm.problem(nodes).or_else(|| arm.is_oracle().then(|| unknown_work(jobs)).flatten())
}

/// The arm of a table. Its parameters take precedence over those of `[params.POLICY]`.
fn read(
    file: ArmFile,
    mut params: BTreeMap<String, f64>,
    lines: Lines<'_>,
) -> Result<Arm, Problem> {
    params.extend(file.params);
    let mut arm = Arm::new(file.policy.get_ref(), params);
    if let Some(given) = &file.variant {
        let rule = |error: paceline_policy::variant::UnknownVariant| {
            value(lines.of(given), "[[arm]] variant", &quoted(given), error.to_string())
        };
        arm.variant = given.get_ref().parse().map_err(rule)?;
    }
    if let Some(given) = &file.enforcement {
        let rule = "must be quota, shares or quota+leftover";
        let wrong = |_| value(lines.of(given), "[[arm]] enforcement", &quoted(given), rule);
        arm.enforcement = given.get_ref().parse().map_err(wrong)?;
    }
    if let Some(given) = &file.migration {
        let all: Vec<String> =
            MigrationMethod::value_variants().iter().map(MigrationMethod::to_string).collect();
        let rule = format!("must be {}", all.join(" or "));
        let wrong = |_| value(lines.of(given), "[[arm]] migration", &quoted(given), rule);
        arm.migration = Some(MigrationMethod::from_str(given.get_ref(), false).map_err(wrong)?);
    }
    let arm = arm.named();
    Ok(match file.name {
        Some(name) => Arm { name: name.into_inner(), ..arm },
        None => arm,
    })
}
