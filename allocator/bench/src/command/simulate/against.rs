//! `paceline simulate --against`: a simulation beside the recording of a real run.

use std::fmt::Write;
use std::path::Path;

use paceline_api::plain::{fit as shortened, plain, plain_json};
use paceline_api::usage::BadUsage;
use paceline_sim::fit::{Accuracy, Figure, accuracy};
use paceline_sim::scenario::Arm;
use paceline_sim::{Outcome, Run, Scenario};
use serde_json::json;

use crate::command::fit;

/// The width of a job's name, in columns.
const NAME: usize = 20;

/// Simulates one policy and compares it with the recording, as a table or as JSON.
pub(super) fn against(
    (scenario, arms): (&Scenario, &[Arm]),
    seeds: u32,
    path: &Path,
    as_json: bool,
) -> anyhow::Result<String> {
    let [arm] = arms else {
        let rule = "expected the one policy of the recording; name it with --policy";
        return Err(BadUsage(format!("--against with {} policies: {rule}", arms.len())).into());
    };
    let recording = fit::read(path)?;
    let run = |seed| Run { scenario, arm, seed, record: false }.simulate();
    let runs: Result<Vec<Outcome>, _> =
        (1..=u64::from(seeds)).map(|seed| Ok(run(seed)?.outcome)).collect();
    let runs = runs.map_err(|error: paceline_sim::ScenarioError| BadUsage(error.to_string()))?;
    let found = accuracy(&recording, &runs);
    if found.jobs.is_empty() {
        let [recorded, simulated] = [&found.only_recorded, &found.only_simulated].map(|n| names(n));
        let rule = format!("expected jobs of the scenario ({simulated}), but it has {recorded}");
        return Err(BadUsage(format!("--against {}: {rule}", path.display())).into());
    }
    if as_json {
        let value = json!({"scenario": scenario.name, "policy": arm.to_string(), "against": found});
        return Ok(plain_json(&(serde_json::to_string_pretty(&value)? + "\n")));
    }
    Ok(table(scenario, arm, seeds, &found))
}

fn table(scenario: &Scenario, arm: &Arm, seeds: u32, found: &Accuracy) -> String {
    let mut lines = vec![
        format!("{} under {arm}; seconds after each job's arrival\n", plain(&scenario.name)),
        row("", &["", "measured", "simulated", "error"].map(str::to_owned)),
    ];
    for job in &found.jobs {
        lines.push(figures(&job.id, "completion", job.completion));
        for (what, figure) in [("acceptable", job.acceptable), ("objective", job.objective)] {
            if figure.measured.or(figure.simulated).is_some() {
                lines.push(figures("", what, figure));
            }
        }
    }
    lines.push(String::new());
    lines.push(figures("mean", "completion", found.mean));
    lines.push(figures("all", "makespan", found.makespan));
    lines.push(String::new());
    let error = found.mean_error.map_or_else(|| "-".to_owned(), |e| format!("{:.1} %", 100.0 * e));
    lines.push(format!("completion times are off by {error} on average; seeds: {seeds}"));
    for (jobs, other) in
        [(&found.only_recorded, "the scenario"), (&found.only_simulated, "the recording")]
    {
        if !jobs.is_empty() {
            lines.push(format!("not in {other}: {}", names(jobs)));
        }
    }
    lines.join("\n") + "\n"
}

fn figures(name: &str, what: &str, figure: Figure) -> String {
    let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |s| format!("{s:.1}"));
    let error = figure.error.map_or_else(|| "-".to_owned(), |e| format!("{:+.1} %", 100.0 * e));
    row(name, &[what.to_owned(), seconds(figure.measured), seconds(figure.simulated), error])
}

fn row(name: &str, cells: &[String; 4]) -> String {
    let [what, measured, simulated, error] = cells;
    let mut line = String::new();
    let name = shortened(name, NAME);
    write!(line, "{name:<NAME$}  {what:<10}  {measured:>10}  {simulated:>10}  {error:>9}")
        .expect("a string takes whatever is written to it");
    line.trim_end().to_owned()
}

fn names(jobs: &[String]) -> String {
    let jobs: Vec<String> = jobs.iter().map(|name| plain(name)).collect();
    jobs.join(", ")
}
