//! The figures of all arms side by side.

use paceline_sim::metrics::Better;

use super::super::outcome::{
    ArmFindings, Figure, Findings, JOB_MEASURES, JobFindings, Measure, ORACLE,
};
use super::{Cell, Grid, cell};

/// A figure as a multiple of another.
type Ratio = fn(&Figure) -> Option<f64>;

/// What figures are compared with, in rows below theirs.
const OVER: [(&str, Ratio); 2] =
    [(OF_ORACLE, |its| its.over_oracle), ("of the bound", |its| its.over_bound)];
const OF_ORACLE: &str = "of the oracle's";

/// A first column, and one for each arm.
fn head(findings: &Findings, first: &str) -> Vec<String> {
    let names = findings.arms.iter().map(|arm| arm.facts.name.clone());
    std::iter::once(first.to_owned()).chain(names).collect()
}

fn against(findings: &Findings) -> &'static str {
    if findings.baseline().is_some() && findings.arms.len() > 1 {
        " (change from none)"
    } else {
        ""
    }
}

/// Each job's most important figures, one table per figure.
pub(crate) fn jobs(findings: &Findings) -> Vec<Grid> {
    const SHOWN: [&str; 4] = ["completion", "acceptable", "objective", "batch_latency"];
    const TITLES: [&str; 4] = [
        "Completion: seconds from a job's arrival to its end",
        "Acceptable loss: seconds from a job's arrival until it reached it",
        "Objective: seconds from a job's arrival until it reached it",
        "Batch latency: seconds for each batch, while all jobs were running",
    ];
    let titles = SHOWN.iter().zip(TITLES);
    let grid = |(name, title): (&&str, &str)| {
        let rows: Vec<Vec<Cell>> =
            (0..findings.about.jobs.len()).filter_map(|at| job_row(findings, at, name)).collect();
        let title = format!("{title}{}", against(findings));
        let notes = Vec::new();
        let mut grid = Grid { title, head: head(findings, "job"), rows, words: 1, notes };
        if *name == "completion" {
            let totals = ["completion_mean", "makespan"].into_iter().filter_map(Measure::named);
            grid.rows.extend(totals.map(|measure| row(findings, measure, measure.title)));
        }
        (!grid.rows.is_empty()).then(|| grid.noted(findings))
    };
    titles.filter_map(grid).collect()
}

/// A row of one job, if any arm has its figure.
fn job_row(findings: &Findings, at: usize, name: &str) -> Option<Vec<Cell>> {
    let facts = findings.about.jobs.get(at)?;
    let shown = |arm: &ArmFindings| {
        let failed = arm.runs.iter().find_map(|run| run.jobs.get(at)?.failure.clone());
        let figure = arm.jobs.get(at).and_then(|job| job.figure(name));
        match failed.filter(|_| name == "completion") {
            Some(failure) => Cell::failed(failure),
            None => cell(figure, Some(Better::Less)),
        }
    };
    let known = |arm: &ArmFindings| {
        arm.jobs.get(at).is_some_and(|job: &JobFindings| job.figure(name).is_some())
    };
    let any = name == "completion" || findings.arms.iter().any(known);
    let first = Cell::plain(facts.job.name.clone());
    any.then(|| std::iter::once(first).chain(findings.arms.iter().map(shown)).collect())
}

fn row(findings: &Findings, measure: &Measure, name: &str) -> Vec<Cell> {
    let shown = |arm: &ArmFindings| cell(arm.figure(measure.name), measure.better);
    std::iter::once(Cell::plain(name)).chain(findings.arms.iter().map(shown)).collect()
}

/// Whether the oracle's figures come from disturbed runs.
fn oracle_is_disturbed(findings: &Findings) -> bool {
    let mut oracles = findings.arms.iter().filter(|arm| arm.facts.policy == ORACLE);
    oracles.any(ArmFindings::is_disturbed)
}

/// Every figure that some arm has, with its ratio to the oracle's figure and to the bound.
pub(crate) fn figures(findings: &Findings) -> Grid {
    let mut rows = Vec::new();
    for measure in findings.measures() {
        rows.push(row(findings, measure, &measure.titled()));
        for (name, over) in OVER {
            let ratio = |arm: &ArmFindings| arm.figure(measure.name).and_then(over);
            if findings.arms.iter().any(|arm| ratio(arm).is_some()) {
                let other = name == OF_ORACLE && oracle_is_disturbed(findings);
                let cell = |arm: &ArmFindings| {
                    ratio(arm).map_or_else(
                        || Cell::plain("-"),
                        |x| Cell::figure(format!("{x:.3} x"), other || arm.is_disturbed()),
                    )
                };
                let cells = findings.arms.iter().map(cell);
                rows.push(std::iter::once(Cell::plain(format!("  {name}"))).chain(cells).collect());
            }
        }
    }
    let title = format!("Figures of each arm{}", against(findings));
    let head = head(findings, "figure");
    Grid { title, head, rows, words: 1, notes: Vec::new() }.noted(findings)
}

/// All figures of all jobs, a row for each job and figure. Only the report has room for it.
pub(crate) fn all_of_jobs(findings: &Findings) -> Grid {
    let mut rows = Vec::new();
    for at in 0..findings.about.jobs.len() {
        for figure in JOB_MEASURES {
            let Some(mut row) = job_row(findings, at, figure.name) else { continue };
            if let Some(first) = row.first_mut() {
                let unit =
                    if figure.unit == "-" { String::new() } else { format!(" [{}]", figure.unit) };
                first.text = format!("{}: {}{unit}", first.text, figure.title);
            }
            rows.push(row);
        }
    }
    let title = format!("All figures of each job{}", against(findings));
    let head = head(findings, "job");
    Grid { title, head, rows, words: 1, notes: Vec::new() }.noted(findings)
}
