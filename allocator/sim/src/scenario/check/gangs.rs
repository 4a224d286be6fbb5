//! The rules for distributed jobs.

use std::collections::BTreeSet;

use paceline_policy::JobId;
use paceline_policy::frame::MAX_TASKS;

use crate::scenario::file::{GangFile, TasksFile};
use crate::scenario::rules::{Checked, arrival, known, numbered, require, within};
use crate::scenario::{Gang, ScenarioError, Tasks, draw};

pub(super) fn check(gang: &GangFile, nodes: &BTreeSet<&str>) -> Checked<Vec<Gang>> {
    let field = |field: &str| format!("gang {:?}: {field}", gang.name);
    arrival(&gang.arrive, "gang", &gang.name, gang.count)?;
    if gang.arrive.uniform.is_some() || gang.arrive.poisson.is_some() {
        let rule = "the arrivals of gangs are given by at, each or every";
        return Err(ScenarioError::value(field("arrive"), &"drawn", rule));
    }
    within(field("work"), gang.work, "must be core-seconds above 0", gang.work > 0.0)?;
    let amounts =
        [("overhead", gang.overhead), ("parameters", gang.parameters), ("steps", gang.steps)];
    for (name, value) in amounts {
        require(field(name), value, "must be a number of at least 0", value >= 0.0)?;
    }
    let servers = tasks(&gang.name, "servers", &gang.servers, nodes)?;
    let workers = tasks(&gang.name, "workers", &gang.workers, nodes)?;
    let names = numbered(&gang.name, gang.count);
    let arrivals = draw::fixed_arrivals(&gang.arrive, gang.count);
    let gang = |(name, arrive): (String, f64)| Gang {
        id: JobId::new(name).expect("a checked name is not empty"),
        arrive,
        work: gang.work,
        servers: servers.clone(),
        workers: workers.clone(),
        overhead: gang.overhead,
        parameters: gang.parameters,
        steps: gang.steps,
    };
    Ok(names.into_iter().zip(arrivals).map(gang).collect())
}

fn tasks(gang: &str, kind: &str, file: &TasksFile, nodes: &BTreeSet<&str>) -> Checked<Tasks> {
    let field = |field: &str| format!("gang {gang:?}: {kind}.{field}");
    require(field("cpu"), file.cpu, "must be cores, at least 0", file.cpu >= 0.0)?;
    require(field("memory"), file.memory, "must be bytes, at least 0", file.memory >= 0.0)?;
    known("gang", gang, &file.nodes, nodes)?;
    let Some(min) = file.count.or(file.min) else {
        return Err(ScenarioError::value(field("count"), &"missing", "count or min must be given"));
    };
    let max = file.max.unwrap_or(min);
    require(field("max"), f64::from(max), "must be no less than min", max >= min)?;
    let most = if file.max.is_some() {
        "max"
    } else if file.count.is_some() {
        "count"
    } else {
        "min"
    };
    let rule = format!("must be at most {MAX_TASKS}");
    require(field(most), f64::from(max), &rule, max <= MAX_TASKS)?;
    Ok(Tasks { min, max, cpu: file.cpu, memory: file.memory, nodes: file.nodes.clone() })
}
