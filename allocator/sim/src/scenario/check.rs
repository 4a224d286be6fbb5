//! The rules for a scenario's values.

mod gangs;

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::limiter::{Enforcement, Limiter, WEIGHTS};
use paceline_policy::{Params, Variant, policies};

use super::file::{JobFile, NodeFile, ScenarioFile};
use super::rules::{
    Checked, MAX_JOBS, MAX_NODES, MAX_SEEDS, arrival, differ, failing, in_all, known, listed,
    numbered, require, within,
};
use super::{Arm, Layout, Node, Scenario, ScenarioError};
use crate::SpeedProfile;
use crate::curve::Curve;

/// The least part of a node that a job can use. With less, a run would have events without end.
const MIN_SHARE: f64 = 1e-4;

pub(super) fn check(file: ScenarioFile) -> Checked<Scenario> {
    let arms: Vec<Arm> = file.policies.iter().map(|name| name.parse()).collect::<Checked<_>>()?;
    if file.jobs.is_empty() == file.gangs.is_empty() {
        let rule = "there must be [[job]] or [[gang]], but not both";
        return Err(ScenarioError::value("job", &file.jobs.len(), rule));
    }
    if file.name.trim().is_empty() {
        return Err(ScenarioError::value("name", &"\"\"", "must be a name, for example mine"));
    }
    let params = params(file.params)?;
    Limiter::with(1.0, file.limiter.below(Enforcement::default()))?;
    // Before any group is expanded.
    in_all("node", file.nodes.iter().map(|node| (&*node.name, node.count)), MAX_NODES)?;
    in_all("job", file.jobs.iter().map(|job| (&*job.name, job.count)), MAX_JOBS)?;
    in_all("gang", file.gangs.iter().map(|gang| (&*gang.name, gang.count)), MAX_JOBS)?;
    let nodes = nodes(&file.nodes, file.until)?;
    if let Some(node) = nodes.iter().find(|node| node.failures.is_some() && file.jobs.is_empty()) {
        let rule = "distributed jobs are simulated on nodes that do not fail";
        return Err(ScenarioError::value(
            format!("node {:?}: failures", node.name),
            &"given",
            rule,
        ));
    }
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for job in &file.jobs {
        differ("job", &job.name, job.count, &mut seen)?;
        check_job(job, &names, file.until)?;
    }
    let mut all_gangs = Vec::new();
    for gang in &file.gangs {
        differ("gang", &gang.name, gang.count, &mut seen)?;
        all_gangs.extend(gangs::check(gang, &names)?);
    }
    let layouts = file.layouts.into_iter();
    let layouts: Vec<Layout> =
        layouts.map(|layout| Layout { name: layout.name, servers: layout.servers }).collect();
    for layout in &layouts {
        known("layout", &layout.name, &layout.servers, &names)?;
    }
    if let Some(until) = file.until {
        within("until", until, "must be a number of seconds above 0", until > 0.0)?;
    }
    let rule = format!("must be from 1 to {MAX_SEEDS}");
    let fits = (1..=MAX_SEEDS).contains(&file.seeds);
    require("seeds", f64::from(file.seeds), &rule, fits)?;
    Ok(Scenario {
        name: file.name,
        description: file.description,
        arms,
        seeds: file.seeds,
        until: file.until.unwrap_or(f64::INFINITY),
        placement: file.placement,
        limiter: file.limiter,
        params,
        nodes,
        speed_profile: SpeedProfile::default(),
        gangs: all_gangs,
        layouts,
        groups: file.jobs,
    })
}

fn params(file: BTreeMap<String, BTreeMap<String, f64>>) -> Checked<BTreeMap<String, Params>> {
    let mut all = BTreeMap::new();
    for (policy, values) in file {
        let mut params = Params::default();
        for (name, value) in values {
            params.set(name, value);
        }
        policies::build(&policy, Variant::Resolved, &params)?;
        all.insert(policy, params);
    }
    Ok(all)
}

fn nodes(files: &[NodeFile], until: Option<f64>) -> Checked<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files {
        let field = |field: &str| format!("node {:?}: {field}", file.name);
        differ("node", &file.name, file.count, &mut seen)?;
        require(field("cpus"), file.cpus, "must be a number above 0", file.cpus > 0.0)?;
        let rule = "must be a number of at least 0";
        require(field("contention"), file.contention, rule, file.contention >= 0.0)?;
        let rule = "must be a share of the node, from 0 to less than 1";
        require(field("background"), file.background, rule, (0.0..1.0).contains(&file.background))?;
        if let Some(memory) = file.memory {
            require(field("memory"), memory, "must be bytes above 0", memory > 0.0)?;
        }
        if let Some(failures) = &file.failures {
            failing(failures, "node", &file.name, until)?;
        }
        for name in numbered(&file.name, file.count) {
            let NodeFile { cpus, memory, contention, background, .. } = *file;
            let failures = file.failures.clone();
            nodes.push(Node { name, cpus, memory, contention, background, failures });
        }
    }
    if nodes.is_empty() {
        return Err(ScenarioError::value(
            "node",
            &"missing",
            "there must be at least one [[node]]",
        ));
    }
    Ok(nodes)
}

fn check_job(job: &JobFile, nodes: &BTreeSet<&str>, until: Option<f64>) -> Checked<()> {
    let field = |field: &str| format!("job {:?}: {field}", job.name);
    let positive = "must be a number above 0";
    arrival(&job.arrive, "job", &job.name, job.count)?;
    known("job", &job.name, job.node.as_slice(), nodes)?;
    if job.work.is_some() && job.heavy_tail.is_some() {
        let rule = "only one of work and heavy_tail may be given";
        return Err(ScenarioError::value(field("heavy_tail"), &"given", rule));
    }
    if let Some(work) = job.work {
        within(field("work"), work, "must be machine-seconds above 0", work > 0.0)?;
    } else if let Some(tail) = job.heavy_tail {
        let fits = tail.least > 0.0 && tail.shape > 0.0 && tail.most >= tail.least;
        let rule = "must have least and shape above 0, and most no smaller than least";
        require(field("heavy_tail.least"), tail.least, rule, fits)?;
        within(field("heavy_tail.most"), tail.most, rule, fits)?;
    } else {
        let missing = |name, rule: &str| Err(ScenarioError::value(field(name), &"missing", rule));
        if until.is_none() {
            return missing("work", "a job without it never ends: the scenario needs `until`");
        }
        if job.batch.is_none() || job.loss.is_some() {
            return missing("work", "a job without it needs `batch`, and can have no `loss`");
        }
    }
    if let Some(declared) = job.declared {
        within(field("declared"), declared, "must be machine-seconds above 0", declared > 0.0)?;
    }
    job.stated_total.check(&field("stated_total"))?;
    check_pieces(job)?;
    for (name, share) in [("parallel", job.parallel), ("max", job.max)] {
        let Some(share) = share else { continue };
        let fits = (MIN_SHARE..=1.0).contains(&share);
        require(field(name), share, "must be a share of the node, from 0.0001 to 1", fits)?;
    }
    if let Some(share) = job.min {
        let fits = share > 0.0 && share <= 1.0;
        require(field("min"), share, "must be a share of the node, above 0 and at most 1", fits)?;
    }
    if let Some(part) = job.crowded {
        let fits = (MIN_SHARE..=1.0).contains(&part);
        require(field("crowded"), part, "must be from 0.0001 to 1", fits)?;
    }
    if let Some(contention) = job.contention {
        require(field("contention"), contention, "must be at least 0", contention >= 0.0)?;
    }
    for (name, value) in [("threads", job.threads), ("weight", job.weight)] {
        let Some(value) = value else { continue };
        require(field(name), value, positive, value > 0.0)?;
    }
    if let Some(shares) = job.cpu_shares.filter(|shares| !WEIGHTS.contains(shares)) {
        let rule = format!("must be from {} to {}", WEIGHTS.start(), WEIGHTS.end());
        return Err(ScenarioError::value(field("cpu_shares"), &shares, rule));
    }
    if let Some(slowdown) = job.max_slowdown {
        require(field("max_slowdown"), slowdown, "must be at least 1", slowdown >= 1.0)?;
    }
    let cost = job.throttle_cost;
    let fits = (0.0..1.0).contains(&cost);
    require(field("throttle_cost"), cost, "must be from 0 to less than 1", fits)?;
    check_loss(job)?;
    check_targets(job)?;
    if let Some(cost) = job.checkpoint {
        let fits = cost.mean >= 0.0 && cost.deviation >= 0.0 && cost.deviation.is_finite();
        let rule = "and its deviation must be seconds, at least 0";
        within(field("checkpoint.mean"), cost.mean, rule, fits)?;
        if cost.start && job.start.is_none() {
            let rule = "must be false, or the job have a `start`";
            return Err(ScenarioError::value(field("checkpoint.start"), &cost.start, rule));
        }
        let rule = "must be machine-seconds above 0";
        if let Some(every) = cost.every {
            within(field("checkpoint.every"), every, rule, every > 0.0)?;
        }
    }
    job.failures.as_ref().map_or(Ok(()), |failures| failing(failures, "job", &job.name, until))
}

/// Checks a job's start and its batches.
fn check_pieces(job: &JobFile) -> Checked<()> {
    let field = |field: &str| format!("job {:?}: {field}", job.name);
    let positive = "must be a number above 0";
    if let Some(start) = job.start {
        within(field("start.work"), start.work, positive, start.work > 0.0)?;
        let rule = "must be seconds, no fewer than `start.work`";
        within(field("start.seconds"), start.seconds, rule, start.seconds >= start.work)?;
    }
    if let Some(batch) = job.batch {
        within(field("batch.work"), batch.work, positive, batch.work > 0.0)?;
        let rule = "must be seconds, at least 0";
        within(field("batch.fixed"), batch.fixed, rule, batch.fixed >= 0.0)?;
        require(field("batch.noise"), batch.noise, "must be at least 0", batch.noise >= 0.0)?;
    }
    Ok(())
}

fn check_loss(job: &JobFile) -> Checked<()> {
    let field = |field: &str| format!("job {:?}: {field}", job.name);
    require(field("noise"), job.noise, "must be at least 0", job.noise >= 0.0)?;
    if let Some(residual) = job.residuals.iter().find(|one| job.loss.is_none() || !one.is_finite())
    {
        let rule = "must be numbers, of a job that has a `loss`";
        return Err(ScenarioError::value(field("residuals"), residual, rule));
    }
    if let Some((name, value, rule)) = job.loss.as_ref().and_then(Curve::problem) {
        return Err(ScenarioError::value(field(&format!("loss.{name}")), &value, rule));
    }
    if let Some(early) = job.early_reports {
        let fits = job.loss.is_some() && early.loss.is_finite();
        let rule = "must be a number, of a job that has a `loss`";
        require(field("told.loss"), early.loss, rule, fits)?;
        let fits = early.largest.is_finite() && early.largest >= early.loss.abs();
        let rule = "must be a number, at least the absolute value of `told.loss`";
        require(field("told.largest"), early.largest, rule, fits)?;
    }
    Ok(())
}

fn check_targets(job: &JobFile) -> Checked<()> {
    let field = |field: &str| format!("job {:?}: {field}", job.name);
    let needs_loss = [("acceptable", job.acceptable), ("objective", job.objective)];
    for (name, value) in needs_loss {
        if let Some(value) = value.filter(|value| job.loss.is_none() || !value.is_finite()) {
            let rule = "must be a number, of a job that has a `loss`";
            return Err(ScenarioError::value(field(name), &value, rule));
        }
    }
    if let (Some(acceptable), Some(objective), Some(curve)) =
        (job.acceptable, job.objective, &job.loss)
        && (objective - acceptable) * if curve.rises() { 1.0 } else { -1.0 } < 0.0
    {
        let rule = format!("must be no worse than acceptable, {acceptable}");
        return Err(ScenarioError::value(field("objective"), &objective, rule));
    }
    for (name, at, target) in [
        ("acceptable_at", job.acceptable_at, job.acceptable),
        ("objective_at", job.objective_at, job.objective),
    ] {
        let Some(at) = at else { continue };
        let of = name.trim_end_matches("_at");
        let rule = format!("must be a part of the work, at least 0, or inf, beside `{of}`");
        if !(at >= 0.0 && target.is_some()) {
            return Err(ScenarioError::value(field(name), &at, rule));
        }
    }
    let later = job.acceptable_at.zip(job.objective_at);
    if let Some((acceptable, objective)) = later.filter(|(first, last)| last < first) {
        let rule = format!("must be no less than acceptable_at, {acceptable}");
        return Err(ScenarioError::value(field("objective_at"), &objective, rule));
    }
    let ways = [
        job.batch_latency.is_some(),
        job.batch_latency_each.is_some(),
        job.batch_latency_between.is_some(),
    ];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        let rule = "may be given in one way only";
        return Err(ScenarioError::value(field("batch_latency"), &"given twice", rule));
    }
    let each = job.batch_latency_each.iter().flatten().copied();
    let bounds = job.batch_latency_between.into_iter().flat_map(|(low, high)| [low, high]);
    for seconds in job.batch_latency.into_iter().chain(each).chain(bounds) {
        within(field("batch_latency"), seconds, "must be seconds above 0", seconds > 0.0)?;
    }
    listed("job", &job.name, "batch_latency_each", job.batch_latency_each.as_deref(), job.count)
}
