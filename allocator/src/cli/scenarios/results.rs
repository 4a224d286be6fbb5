//! `paceline scenarios run`: every policy in every scenario, beside the bounds and the papers.

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_sim::Scenario;
use paceline_sim::bounds::fewest_crossing;
use paceline_sim::claims::{self, Checked, Claim};
use paceline_sim::compare::{Comparison, compare, every_arm};
use paceline_sim::gangs::{self, Exchange};
use paceline_sim::scenario::LIBRARY;

use super::wrong::Wrong;
use super::{as_json, page, wrong};
use crate::cli::{parallel, plain};
use crate::exit::BadUsage;

/// Run every policy that has something to decide in each scenario, and say who is best by what
///
/// Prints, by scenario, each policy's figures with their distance to the bound that no policy can
/// beat, and what the papers claim of it: what comes of it here, and what cannot be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline scenarios run
  paceline scenarios run FC-3 DQ-var
  paceline scenarios run --markdown > allocator/sim/RESULTS.md
  paceline scenarios run --check allocator/sim/RESULTS.md      whether that is still so")]
pub(super) struct RunArgs {
    /// Scenarios, as TOML files or by the names that `paceline scenarios` lists [default: all of
    /// those]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,

    /// Print a page of Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print nothing, and end with 1 if this file is not what --markdown prints
    #[arg(long, value_name = "FILE", conflicts_with_all = ["markdown", "json"])]
    check: Option<PathBuf>,
}

/// What came of one scenario.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) scenario: Scenario,
    pub(super) figures: Figures,
    pub(super) claims: Vec<Checked>,
    /// What comes of wrong totals, in some scenarios.
    pub(super) wrong: Vec<Wrong>,
}

#[derive(Debug)]
pub(super) enum Figures {
    /// Policies over time.
    Runs(Comparison),
    /// Placements, and for each gang the fewest pairs that can be on different nodes.
    Placements(Vec<Exchange>, Vec<Option<u32>>),
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let names = LIBRARY.iter().map(|listed| listed.name.to_owned());
    let names: Vec<String> =
        if args.scenarios.is_empty() { names.collect() } else { args.scenarios.clone() };
    let scenarios: Result<Vec<Scenario>, BadUsage> =
        names.iter().map(|name| super::open(name)).collect();
    let entries = all(&scenarios?)?;
    if let Some(path) = &args.check {
        let text = fs::read_to_string(path)
            .map_err(|error| BadUsage(format!("{} cannot be read: {error}", path.display())))?;
        anyhow::ensure!(
            text == page::markdown(&entries),
            "{} is not what comes of the scenarios now: write it anew by --markdown",
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

/// Runs scenarios, several at a time; the order of what comes of them is theirs.
fn all(scenarios: &[Scenario]) -> anyhow::Result<Vec<Entry>> {
    let claims = claims::published().context("the claims that come with the program")?;
    let bar = progress(scenarios.len());
    let done = parallel::map(scenarios, |scenario| {
        bar.set_message(scenario.name.clone());
        let entry = Entry::of(scenario.clone(), &claims);
        bar.inc(1);
        entry
    });
    bar.finish_and_clear();
    done.into_iter().collect()
}

/// A bar on a terminal; nothing elsewhere.
fn progress(scenarios: usize) -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let length = u64::try_from(scenarios).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    ProgressBar::with_draw_target(Some(length), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Entry {
    pub(super) fn of(scenario: Scenario, claims: &[Claim]) -> anyhow::Result<Self> {
        let bad =
            |error: paceline_sim::ScenarioError| BadUsage(format!("{}: {error}", scenario.name));
        let interval = |policy: &str| scenario.params.get(policy)?.get("interval");
        let own = claims.iter().filter(|claim| {
            claim.scenario == scenario.name && claim.is_at(interval(&claim.policy))
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
        let wrong = wrong::of(&scenario, &all).map_err(bad)?;
        Ok(Self { figures: Figures::Runs(all), scenario, claims, wrong })
    }

    /// The runs of all policies, if the scenario is one over time.
    pub(super) fn comparison(&self) -> Option<&Comparison> {
        if let Figures::Runs(all) = &self.figures { Some(all) } else { None }
    }
}
