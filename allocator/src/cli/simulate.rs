//! `paceline simulate`: policies side by side on a scenario, and the best that is possible.

mod as_json;
mod table;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use paceline_policy::policies::AnyPolicy;
use paceline_sim::compare::compare;
use paceline_sim::scenario::Arm;
use paceline_sim::{Run, Scenario, gangs};

use super::scenarios;
use crate::exit::BadUsage;

/// Simulate a scenario under several policies, and print what comes of each
///
/// The policies and the engine around them are the very code that runs live, fed with the same
/// events. The same scenario, policies and seeds print the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline simulate FC-3
  paceline simulate mine.toml --policy none,flowcon,flowcon:published --seeds 20
  paceline simulate DQ-var --json | jq '.policies[].metrics.met'
  paceline simulate TR-5 --policy tradl --record frames.jsonl

`paceline scenarios` lists what comes with the program. Figures are means over the seeds, and after
± half of the interval that holds the true mean with 95 % probability.")]
pub(super) struct SimulateArgs {
    /// A scenario's TOML file, or a name that `paceline scenarios` lists
    scenario: String,

    /// Policies to compare, each NAME or NAME:published [default: those of the scenario]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<String>,

    /// Over how many seeds, from 1 on [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,

    /// Print JSON, with every job of every run
    #[arg(long)]
    json: bool,

    /// Write what one policy saw with the first seed, as `paceline replay` reads it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

#[expect(clippy::print_stdout, reason = "this is what the command is for")]
pub(super) fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let bad = |error: &dyn std::fmt::Display| BadUsage(error.to_string());
    let scenario = scenarios::open(&args.scenario)?;
    let arms: Result<Vec<Arm>, _> = args.policy.iter().map(|name| name.parse()).collect();
    let mut arms = arms.map_err(|error| bad(&error))?;
    if arms.is_empty() {
        arms.clone_from(&scenario.arms);
    }
    if let Some(path) = &args.record {
        record(&scenario, &arms, path)?;
    }
    let places = |arm: &Arm| Ok(matches!(scenario.policy(arm)?, AnyPolicy::Tasks(_)));
    let places: Result<Vec<bool>, _> = arms.iter().map(places).collect();
    let text = if places.map_err(|error: paceline_sim::ScenarioError| bad(&error))?.contains(&true)
    {
        let all = gangs::exchanges(&scenario, &arms).map_err(|error| bad(&error))?;
        if args.json {
            as_json::exchanges(&scenario, &all)?
        } else {
            table::exchanges(&scenario, &all)
        }
    } else {
        let seeds = args.seeds.unwrap_or(scenario.seeds);
        let comparison = compare(&scenario, &arms, seeds).map_err(|error| bad(&error))?;
        if args.json {
            as_json::comparison(&scenario, &comparison)?
        } else {
            table::comparison(&scenario, &comparison)
        }
    };
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Writes the frames of one policy's run with the first seed.
fn record(scenario: &Scenario, arms: &[Arm], path: &Path) -> anyhow::Result<()> {
    let [arm] = arms else {
        let rule = "takes one policy: name it by --policy";
        return Err(BadUsage(format!("--record with {} policies: it {rule}", arms.len())).into());
    };
    if scenario.nodes.len() > 1 && !arm.is_of_a_cluster() {
        let nodes = scenario.nodes.len();
        let rule = "each node has a policy of its own, and a recording is one policy's";
        return Err(BadUsage(format!("--record of {arm} on {nodes} nodes: {rule}")).into());
    }
    let bad = |error: paceline_sim::ScenarioError| BadUsage(error.to_string());
    let done = if scenario.gangs.is_empty() {
        Run { scenario, arm, seed: 1, record: true }.simulate().map_err(bad)?
    } else {
        gangs::simulate(scenario, arm, true).map_err(bad)?
    };
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for line in &done.lines {
            writeln!(out, "{}", line.frame)?;
        }
        out.flush()
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}
