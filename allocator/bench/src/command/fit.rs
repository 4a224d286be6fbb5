//! `paceline fit`: from recorded frames to a scenario.

mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use paceline_api::bounded;
use paceline_api::plain::{plain_json, print};
use paceline_api::usage::BadUsage;
use paceline_api::usage::{in_one_line, unreadable, writable};
use paceline_policy::params::{Param, ParamError};
use paceline_policy::{Params, Variant, policies};
use paceline_sim::Scenario;
use paceline_sim::fit::{FitError, Heading, Recording, fit};
use paceline_sim::scenario::Arm;
use serde_json::json;

/// Fit a scenario to recorded runs, so that a simulation repeats what was measured
///
/// The first recording defines the jobs and when they arrive; best is a run of `none`. All recordings
/// show how long batches take at which share, what a limit costs and how much jobs slow each other
/// down. So add runs of the same jobs alone, without a limit and at 1/2 and 1/4 of the node
/// (`docker run --cpus`). Work is counted in seconds of the whole node, from a job's first frame on.
/// It excludes the start of the job's container.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline run --policy none --param interval=2 --record none.jsonl
  paceline fit none.jsonl > mine.toml
  paceline fit none.jsonl alone.jsonl half.jsonl quarter.jsonl --output mine.toml
  cd paceline-bench/demo
  paceline fit runs/001-none/frames.jsonl calibration/frames.jsonl \\
      --policy none,flowcon --param flowcon.interval=5 --param flowcon.alpha=0.04 -o demo.toml
  paceline simulate demo.toml --policy none --against runs/001-none/frames.jsonl

The command prints what it fitted with the error of each fit, and what it could not fit with the
reason: to standard output if the scenario goes to a file, else to standard error. A malformed
recording ends the command with exit code 2 and the line's number.")]
pub struct FitArgs {
    /// Recorded frames, one JSON object per line; the first file defines the jobs, which must not
    /// move; `-` is standard input
    #[arg(required = true)]
    frames: Vec<PathBuf>,

    /// Write the scenario to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The scenario's name
    #[arg(long, default_value = "fitted", value_parser = NonEmptyStringValueParser::new())]
    name: String,

    /// Policies that the scenario compares, each as NAME or NAME:published
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "none")]
    policy: Vec<String>,

    /// A parameter that the scenario sets; may be given several times
    #[arg(long = "param", value_name = "POLICY.NAME=NUMBER")]
    params: Vec<Param>,

    /// Print the fit as JSON, including the scenario's text
    #[arg(long)]
    json: bool,
}

#[expect(
    clippy::print_stderr,
    reason = "what was fitted, where the scenario is on standard output"
)]
/// Fits a scenario to recordings and prints it.
pub fn run(args: &FitArgs) -> anyhow::Result<ExitCode> {
    let heading = heading(args)?;
    args.output.as_deref().map_or(Ok(()), writable)?;
    let mut recordings = args.frames.iter().map(|path| read(path));
    let first =
        recordings.next().unwrap_or_else(|| Err(BadUsage("no recording was given".to_owned())))?;
    let others = recordings.collect::<Result<Vec<Recording>, BadUsage>>()?;
    let named = |error: FitError| {
        let number = if let FitError::Moved { number, .. } = &error { *number } else { 1 };
        let file = args.frames.get(number - 1).map(|path| bounded::shown(path).to_string());
        BadUsage(format!("{}: {error}", file.unwrap_or_default()))
    };
    let fit = fit(&first, &others).map_err(named)?;
    let text = fit.scenario(&heading);
    Scenario::parse(&text).context("cannot simulate the fitted scenario")?;
    if let Some(path) = &args.output {
        fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        let value = json!({"fit": fit, "scenario": text});
        print(&plain_json(&(serde_json::to_string_pretty(&value)? + "\n")))?;
    } else if args.output.is_some() {
        print(&words::report(&fit))?;
    } else {
        eprint!("{}", words::report(&fit));
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a recording; errors name the file and the line.
pub(super) fn read(path: &Path) -> Result<Recording, BadUsage> {
    let text = bounded::RECORDING.read_given(path).map_err(|error| unreadable(path, &error))?;
    Recording::parse(&text)
        .map_err(|error| BadUsage(format!("{}: {}", bounded::shown(path), in_one_line(&error))))
}

fn heading(args: &FitArgs) -> Result<Heading, BadUsage> {
    for policy in &args.policy {
        policy.parse::<Arm>().map_err(|error| BadUsage(error.to_string()))?;
    }
    let mut params = Vec::new();
    for Param { name, value } in &args.params {
        let form = || {
            BadUsage(format!(
                "invalid --param {name:?}: expected POLICY.NAME=NUMBER, for example flowcon.alpha=0.04"
            ))
        };
        let (policy, name) = name.split_once('.').ok_or_else(form)?;
        check(policy, name, *value).map_err(|error| BadUsage(error.to_string()))?;
        params.push((policy.to_owned(), name.to_owned(), *value));
    }
    params.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    if let Some(pair) = params.windows(2).find(|pair| same_name(pair)) {
        let names = pair.first().map(|(policy, name, _)| format!("{policy}.{name}"));
        return Err(BadUsage(format!(
            "--param {}: given twice; keep one",
            names.unwrap_or_default()
        )));
    }
    let files = args.frames.iter().map(|path| bounded::shown(path).to_string());
    let files: Vec<String> = files.collect();
    Ok(Heading {
        name: args.name.clone(),
        description: format!("The jobs of {}.", files.join(", ")),
        policies: args.policy.clone(),
        params,
    })
}

fn same_name(pair: &[(String, String, f64)]) -> bool {
    pair.iter().map(|(policy, name, _)| (policy, name)).is_sorted_by(|a, b| a == b)
}

fn check(policy: &str, name: &str, value: f64) -> Result<(), ParamError> {
    let mut params = Params::default();
    params.set(name, value);
    policies::build(policy, Variant::default(), &params).map(drop)
}
