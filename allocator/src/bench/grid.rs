//! The figures as rows and columns, the same for the console and the report.

use super::outcome::{ArmOutcome, BASELINE, Figure, Findings, JobFacts, JobOutcome, Together};

/// The share of the machine that the allocator, the engine and the system may take: on two CPUs
/// these take 1 to 3 %.
const OTHERS_AT_MOST: f64 = 0.06;

/// A table: a row for each job, a column for each policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) jobs: Vec<Vec<Cell>>,
    /// What sums the jobs up, below them.
    pub(crate) totals: Vec<Vec<Cell>>,
}

/// One place in a [`Grid`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Time(Figure),
    /// Something that should not be.
    Failed(String),
}

impl Cell {
    /// What stands in the cell.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Failed(text) => text.clone(),
            Self::Time(Figure { seconds, change: None }) => format!("{seconds:.1} s"),
            Self::Time(Figure { seconds, change: Some(change) }) => {
                format!("{seconds:.1} s ({change:+.1} %)")
            }
        }
    }
}

/// The tables that show `findings`.
pub(crate) fn grids(findings: &Findings) -> Vec<Grid> {
    let compared =
        findings.arms.len() > 1 && findings.arms.iter().any(|arm| arm.policy == BASELINE);
    let against = if compared { " (change against none)" } else { "" };
    let policies = findings.arms.iter().map(|arm| arm.policy.clone());
    let head: Vec<String> =
        ["job", "arrives"].map(str::to_owned).into_iter().chain(policies).collect();
    let completion = Grid {
        title: format!("Completion: from a job's arrival to its end{against}"),
        head: head.clone(),
        jobs: rows(findings, |job| Some(completion(job))),
        totals: vec![
            total(findings, "mean", |arm| arm.mean),
            total(findings, "makespan", |arm| arm.makespan),
        ],
    };
    let acceptable = Grid {
        title: format!("Acceptable loss: from a job's arrival until it was reached{against}"),
        head,
        jobs: rows(findings, |job| {
            job.has_acceptable.then(|| time_or(job.acceptable, "not reached"))
        }),
        totals: Vec::new(),
    };
    [completion, acceptable].into_iter().filter(|grid| !grid.jobs.is_empty()).collect()
}

/// A row for each job that has a cell under any policy.
fn rows(findings: &Findings, cell: impl Fn(&JobOutcome) -> Option<Cell>) -> Vec<Vec<Cell>> {
    let row = |(at, facts): (usize, &JobFacts)| {
        let under = findings.arms.iter().filter_map(|arm| arm.jobs.get(at));
        let cells: Vec<Option<Cell>> = under.map(&cell).collect();
        let any = cells.iter().any(Option::is_some);
        let first = [facts.job.name.clone(), format!("{} s", facts.job.arrive)].map(Cell::Text);
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(dash));
        any.then(|| first.into_iter().chain(cells).collect())
    };
    findings.jobs.iter().enumerate().filter_map(row).collect()
}

fn total(findings: &Findings, name: &str, of: fn(&ArmOutcome) -> Option<Figure>) -> Vec<Cell> {
    let first = [name, ""].map(|text| Cell::Text(text.to_owned()));
    let cells = findings.arms.iter().map(|arm| of(arm).map_or_else(dash, Cell::Time));
    first.into_iter().chain(cells).collect()
}

fn completion(job: &JobOutcome) -> Cell {
    job.failure().map_or_else(|| job.completion.map_or_else(dash, Cell::Time), Cell::Failed)
}

fn time_or(figure: Option<Figure>, without: &str) -> Cell {
    figure.map_or_else(|| Cell::Text(without.to_owned()), Cell::Time)
}

fn dash() -> Cell {
    Cell::Text("-".to_owned())
}

/// What is left to say after the tables, one sentence each.
pub(crate) fn remarks(findings: &Findings) -> Vec<String> {
    let mut remarks: Vec<String> = findings.together.iter().map(Together::words).collect();
    remarks.extend(findings.together.as_ref().and_then(Together::doubt).map(str::to_owned));
    remarks.extend(disturbed(findings));
    let left: Vec<String> = findings
        .arms
        .iter()
        .flat_map(|arm| arm.limits_left.iter().map(move |left| (arm, left)))
        .map(|(arm, left)| {
            let (policy, job) = (&arm.policy, &left.job);
            format!(
                "limits: {policy} left {job} with NanoCpus {} and CpuQuota {}",
                left.nano_cpus, left.cpu_quota
            )
        })
        .collect();
    if left.is_empty() {
        remarks.push("limits: every limit was put back".to_owned());
    }
    remarks.extend(left);
    remarks
}

/// Says so when other work on the machine makes the figures doubtful.
fn disturbed(findings: &Findings) -> Option<String> {
    let others = |arm: &ArmOutcome| Some((arm.others?, arm.policy.clone()));
    let most = findings.arms.iter().filter_map(others).max_by(|a, b| a.0.total_cmp(&b.0));
    let (others, policy) = most.filter(|(others, _)| *others > OTHERS_AT_MOST)?;
    let percent = 100.0 * others;
    Some(format!("machine: not idle, other work took {percent:.0} % of it under {policy}"))
}
