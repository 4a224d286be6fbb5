//! `paceline scenarios run`: every policy in every scenario, beside the bounds and the papers.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_api::usage::BadUsage;
use paceline_api::{bounded, plain};
use paceline_sim::Scenario;
use paceline_sim::bounds::fewest_crossing;
use paceline_sim::claims::{self, Checked, Claim};
use paceline_sim::compare::{Comparison, compare, every_arm};
use paceline_sim::gangs::{self, Exchange};
use paceline_sim::scenario::LIBRARY;

use super::wrong::Wrong;
use super::{as_json, page, wrong};
use rayon::prelude::*;

/// Run every applicable policy in each scenario, and show which is best by which metric
///
/// For each scenario, prints each policy's figures with their distance to the bound that no policy can
/// beat. Then it prints the papers' claims: which are reproduced here, and which are impossible.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline scenarios run
  paceline scenarios run FC-3 DQ-var
  paceline scenarios run --markdown > allocator/sim/RESULTS.md
  paceline scenarios run --check allocator/sim/RESULTS.md      is that file still current?")]
pub(super) struct RunArgs {
    /// Scenarios, as TOML files or names that `paceline scenarios` lists [default: all of the list]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,

    /// Print a page of Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print nothing, and exit with 1 if this file differs from what --markdown prints
    #[arg(long, value_name = "FILE", conflicts_with_all = ["markdown", "json"])]
    check: Option<PathBuf>,
}

/// The results of one scenario.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) scenario: Scenario,
    pub(super) figures: Figures,
    pub(super) claims: Vec<Checked>,
    /// Results with wrong step totals, in some scenarios.
    pub(super) wrong: Vec<Wrong>,
}

#[derive(Debug)]
pub(super) enum Figures {
    /// Policies over time.
    Runs(Comparison),
    /// Placements and, for each gang, the fewest pairs that must be on different nodes.
    Placements(Vec<Exchange>, Vec<Option<u32>>),
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let names = LIBRARY.iter().map(|listed| PathBuf::from(listed.name));
    let names: Vec<PathBuf> =
        if args.scenarios.is_empty() { names.collect() } else { args.scenarios.clone() };
    let scenarios: Result<Vec<Scenario>, BadUsage> =
        names.iter().map(|name| super::open(name)).collect();
    let entries = all(&scenarios?)?;
    if let Some(path) = &args.check {
        let text = bounded::RESULT
            .read(path)
            .map_err(|error| BadUsage(format!("cannot read {}: {error}", path.display())))?;
        anyhow::ensure!(
            text == page::markdown(&entries),
            "{} differs from the current results: regenerate it with --markdown",
            path.display(),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let text = if args.json {
        as_json::entries(&entries)?
    } else if args.markdown {
        page::markdown(&entries)
    } else {
        page::terminal(&entries)
    };
    plain::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs scenarios in parallel; the results are in the order of the scenarios.
fn all(scenarios: &[Scenario]) -> anyhow::Result<Vec<Entry>> {
    let claims = claims::published().context("cannot read the built-in claims")?;
    let bar = progress(scenarios.len());
    let done: Vec<_> = scenarios
        .par_iter()
        .map(|scenario| {
            bar.set_message(scenario.name.clone());
            let entry = Entry::run(scenario.clone(), &claims);
            bar.inc(1);
            entry
        })
        .collect();
    bar.finish_and_clear();
    done.into_iter().collect()
}

/// A progress bar on a terminal; hidden elsewhere.
fn progress(scenarios: usize) -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let length = u64::try_from(scenarios).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    ProgressBar::with_draw_target(Some(length), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Entry {
    pub(super) fn run(scenario: Scenario, claims: &[Claim]) -> anyhow::Result<Self> {
        let bad =
            |error: paceline_sim::ScenarioError| BadUsage(format!("{}: {error}", scenario.name));
        let interval = |policy: &str| scenario.params.get(policy)?.get("interval");
        let own = claims.iter().filter(|claim| {
            claim.scenario == scenario.name && claim.applies_to(interval(&claim.policy))
        });
        if !scenario.layouts.is_empty() {
            let all = gangs::exchanges(&scenario, &scenario.arms).map_err(bad)?;
            let fewest: Vec<Option<u32>> =
                scenario.gangs.iter().map(|gang| fewest_crossing(gang, &scenario.nodes)).collect();
            let first = fewest.first().copied().flatten();
            let claims = own.map(|claim| claim.check_placements(&all, first)).collect();
            let figures = Figures::Placements(all, fewest);
            return Ok(Self { figures, scenario, claims, wrong: Vec::new() });
        }
        let all = compare(&scenario, &every_arm(&scenario), scenario.seeds).map_err(bad)?;
        let claims = own.map(|claim| claim.check(&all)).collect();
        let wrong = wrong::run_cases(&scenario, &all).map_err(bad)?;
        Ok(Self { figures: Figures::Runs(all), scenario, claims, wrong })
    }

    /// The runs of all policies; `None` for a scenario of placements.
    pub(super) fn comparison(&self) -> Option<&Comparison> {
        if let Figures::Runs(all) = &self.figures { Some(all) } else { None }
    }
}
