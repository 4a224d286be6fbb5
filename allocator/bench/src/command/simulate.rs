//! `paceline simulate`: policies side by side on a scenario, with the bounds that no policy can beat.

mod against;
mod as_json;
mod columns;
mod report;
mod sweep;
mod table;
mod time_needed;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_api::plain;
use paceline_api::usage::{BadUsage, whole_number, writable};
use paceline_policy::policies::AnyPolicy;
use paceline_sim::compare::compare_noting;
use paceline_sim::scenario::Arm;
use paceline_sim::sweep::{Axis, Measure};
use paceline_sim::{Run, Scenario, ScenarioError, gangs};

use super::scenarios;
use time_needed::TimeNeeded;

/// Simulate a scenario under several policies, and print the results of each
///
/// The simulation uses the same code for policies and decisions as the daemon. The same scenario,
/// policies and seeds always print the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline simulate FC-3
  paceline simulate mine.toml --policy none,flowcon,flowcon:published --seeds 20
  paceline simulate SP-20 --report sp-20.html
  paceline simulate DQ-var --json | jq '.policies[].metrics.met'
  paceline simulate TR-5 --policy tradl --record frames.jsonl
  paceline simulate mine.toml --policy flowcon --against flowcon/frames.jsonl

The sweeps of FlowCon's Table 2 and SpeCon's Table III:
  paceline simulate FC-3 --policy none,flowcon:published --metric completion:mnist-t \\
    --sweep flowcon.alpha=0.01,0.03,0.05,0.1,0.15 --sweep flowcon.interval=20..60/10
  paceline simulate SP-20v --policy spread,specon --metric makespan \\
    --sweep specon.alpha=0.01,0.05,0.1 --sweep specon.interval=20..30/5 --report table-3.html

`paceline scenarios` lists the built-in scenarios, `paceline policies` the parameters. Figures are
means over the seeds. After ± is half of the interval that contains the true mean with 95 %
probability.")]
pub struct SimulateArgs {
    /// A scenario's TOML file, or a name that `paceline scenarios` lists; `-` is standard input
    scenario: PathBuf,

    /// Policies to compare, each as NAME or NAME:published [default: those of the scenario]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<String>,

    /// Number of seeds; the first is 1 [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = whole_number(1_u32, 10_000))]
    seeds: Option<u32>,

    /// Print JSON, with every job of every run
    #[arg(long)]
    json: bool,

    /// Write the frames of one policy with the first seed; `paceline replay` reads them
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    record: Option<PathBuf>,

    /// Write a report with pictures, as one HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Vary a policy's parameter over numbers and ranges FROM..TO/STEP; give it twice for two parameters
    #[arg(long, value_name = "POLICY.PARAMETER=VALUES")]
    sweep: Vec<String>,

    /// The figure of a sweep: a metric as `--json` names it, or completion:JOB
    #[arg(long, value_name = "NAME", requires = "sweep", default_value = "completion_mean")]
    metric: String,

    /// Compare the simulation of one policy with the recorded frames of a real run, job by job
    #[arg(long, value_name = "FILE", conflicts_with_all = ["report", "sweep"])]
    against: Option<PathBuf>,
}

/// Simulates a scenario under several policies, and prints the results of each.
pub fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    // Before the simulation, which may take minutes.
    for path in args.report.iter().chain(&args.record) {
        writable(path)?;
    }
    let scenario = scenarios::open(&args.scenario)?;
    let arms: Result<Vec<Arm>, _> = args.policy.iter().map(|name| name.parse()).collect();
    let mut arms = arms.map_err(refused)?;
    if arms.is_empty() {
        arms.clone_from(&scenario.arms);
    }
    if arms.is_empty() {
        let advice = "name one by --policy, or in the scenario's `policies`";
        return Err(BadUsage(format!(
            "cannot simulate {}: no policy is given; {advice}",
            scenario.name
        ))
        .into());
    }
    if !args.sweep.is_empty() {
        return sweep(args, &scenario, arms);
    }
    if let Some(path) = &args.record {
        record(&scenario, &arms, path)?;
    }
    if let Some(path) = &args.against {
        return accuracy(args, &scenario, &arms, path);
    }
    let places = |arm: &Arm| Ok(matches!(scenario.policy(arm)?, AnyPolicy::Tasks(_)));
    let places: Result<Vec<bool>, _> = arms.iter().map(places).collect();
    if places.map_err(refused)?.contains(&true) {
        placements(args, &scenario, &arms)
    } else {
        comparison(args, &scenario, &arms)
    }
}

/// Prints how close the simulation of a policy comes to a recording.
fn accuracy(
    args: &SimulateArgs,
    scenario: &Scenario,
    arms: &[Arm],
    path: &Path,
) -> anyhow::Result<ExitCode> {
    let seeds = args.seeds.unwrap_or(scenario.seeds);
    plain::print(&against::against((scenario, arms), seeds, path, args.json)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares policies over time.
fn comparison(args: &SimulateArgs, scenario: &Scenario, arms: &[Arm]) -> anyhow::Result<ExitCode> {
    let seeds = args.seeds.unwrap_or(scenario.seeds);
    let mut time = TimeNeeded::start();
    let noted = |done, all| time.note(done, all);
    let comparison = compare_noting(scenario, arms, seeds, noted).map_err(refused)?;
    let text = if args.json {
        as_json::comparison(scenario, &comparison)?
    } else {
        table::comparison(scenario, &comparison)
    };
    plain::print(&text)?;
    if let Some(path) = &args.report {
        let traces = report::traces(scenario, arms).map_err(refused)?;
        let subject = report::Subject { scenario, comparison: &comparison, traces };
        write(path, &report::page(&subject)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares policies that place all tasks at once.
fn placements(args: &SimulateArgs, scenario: &Scenario, arms: &[Arm]) -> anyhow::Result<ExitCode> {
    if args.report.is_some() {
        let rule = "it places all tasks at once, so there is nothing over time to show";
        return Err(BadUsage(format!("--report of {}: {rule}; use --json", scenario.name)).into());
    }
    let all = gangs::exchanges(scenario, arms).map_err(refused)?;
    let text = if args.json {
        as_json::exchanges(scenario, &all)?
    } else {
        table::exchanges(scenario, &all)
    };
    plain::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a policy over a range of its parameters.
fn sweep(args: &SimulateArgs, scenario: &Scenario, arms: Vec<Arm>) -> anyhow::Result<ExitCode> {
    let axes: Result<Vec<Axis>, _> = args.sweep.iter().map(|axis| axis.parse()).collect();
    let axes = axes.map_err(refused)?;
    let measure: Measure = args.metric.parse().map_err(refused)?;
    let seeds = args.seeds.unwrap_or(scenario.seeds);
    let swept = sweep::run(scenario, arms, axes, measure, seeds).map_err(refused)?;
    plain::print(&if args.json { swept.json()? } else { swept.text() })?;
    if let Some(path) = &args.report {
        write(path, &swept.page())?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it on")]
fn refused(error: ScenarioError) -> BadUsage {
    BadUsage(error.to_string())
}

fn write(path: &Path, page: &str) -> anyhow::Result<()> {
    fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the frames of one policy's run with the first seed.
fn record(scenario: &Scenario, arms: &[Arm], path: &Path) -> anyhow::Result<()> {
    let [arm] = arms else {
        let rule = "expected one policy; name it with --policy";
        return Err(BadUsage(format!("--record with {} policies: {rule}", arms.len())).into());
    };
    if scenario.nodes.len() > 1 && !arm.is_cluster_policy() {
        let nodes = scenario.nodes.len();
        let rule = "each node runs its own policy, and a recording holds one; use one node";
        return Err(BadUsage(format!("--record of {arm} on {nodes} nodes: {rule}")).into());
    }
    let done = if scenario.gangs.is_empty() {
        Run { scenario, arm, seed: 1, record: true }.simulate().map_err(refused)?
    } else {
        gangs::simulate(scenario, arm, true).map_err(refused)?
    };
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for line in &done.lines {
            writeln!(out, "{}", line.frame)?;
        }
        out.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
