//! Results with wrong totals: jobs that state more or fewer steps than they take, or none.

use paceline_api::table::Table;
use paceline_policy::Variant;
use paceline_policy::policies::Paceline;
use paceline_sim::compare::{Comparison, Results, runs};
use paceline_sim::metrics::Metric;
use paceline_sim::scenario::{Arm, Stated};
use paceline_sim::{Scenario, ScenarioError};

use super::results::Entry;
use super::standing::{part, worst_fairness};

/// The scenarios that are run with wrong totals.
const SCENARIOS: [&str; 3] = ["FC-5", "FC-10", "FC-15"];

/// What all jobs of a scenario state, with its description on the page.
const CASES: [(&str, Stated); 8] = [
    ("the truth", Stated::Truthful),
    ("by a factor, lognormal with σ 0.3", Stated::Error(0.3)),
    ("the same with σ 0.7", Stated::Error(0.7)),
    ("double", Stated::Factor(2.0)),
    ("half", Stated::Factor(0.5)),
    ("a tenth", Stated::Factor(0.1)),
    ("half of them nothing", Stated::Silent(0.5)),
    ("nothing", Stated::Silent(1.0)),
];

/// The results of one case.
#[derive(Debug)]
pub(super) struct Wrong {
    /// What jobs state.
    pub(super) states: &'static str,
    pub(super) results: Results,
}

/// Runs each case of a scenario; empty unless it is one of `SCENARIOS`.
pub(super) fn run_cases(
    scenario: &Scenario,
    all: &Comparison,
) -> Result<Vec<Wrong>, ScenarioError> {
    if !SCENARIOS.contains(&scenario.name.as_str()) {
        return Ok(Vec::new());
    }
    let arm = Arm { policy: Paceline::NAME.to_owned(), variant: Variant::Resolved };
    let run = |(states, stated): (&'static str, Stated)| {
        let results = runs(&scenario.clone().stating(stated), &arm, &all.seeds)?;
        Ok(Wrong { states, results })
    };
    CASES.into_iter().map(run).collect()
}

/// A row for each case: for each scenario the part of the gap that is closed, and the worst ρ.
pub(super) fn table(entries: &[Entry]) -> Table {
    let with: Vec<&Entry> = entries.iter().filter(|entry| !entry.wrong.is_empty()).collect();
    let titles = with.iter().map(|entry| format!("{}, worst ρ", entry.scenario.name));
    let head = std::iter::once("jobs state".to_owned()).chain(titles);
    let rows = CASES.iter().enumerate().filter(|_| !with.is_empty()).map(|(at, (states, _))| {
        let cells = with.iter().map(|entry| cell(entry, at).unwrap_or_default());
        std::iter::once((*states).to_owned()).chain(cells).collect()
    });
    Table::new(1, head, rows.collect())
}

fn cell(entry: &Entry, at: usize) -> Option<String> {
    let results = &entry.wrong.get(at)?.results;
    let closed = entry.comparison()?.gap_closed(results, Metric::named("completion_mean")?);
    Some(format!("{}, {}", part(closed), worst_fairness(results)))
}
