//! Tables that compare the measured figures with predictions and claims, and the table of all runs.

use paceline_sim::claims::Verdict;

use super::super::outcome::{ArmFindings, BASELINE, Compared, Fidelity, Findings, Measure};
use super::super::record::Host;
use super::{Cell, Grid, Tone, percent, value};

/// Replaces a verdict where runs were disturbed.
pub(crate) const NOT_JUDGED: &str = "not judged";

/// The simulator's predictions beside what was measured, a row for each arm and figure.
pub(crate) fn fidelity(findings: &Findings) -> Option<Grid> {
    let mut rows = Vec::new();
    let was_fitted = findings.prediction.from.is_some();
    for arm in &findings.arms {
        for found in &arm.fidelity {
            rows.push(fidelity_row(arm, found));
        }
        if was_fitted && arm.is_disturbed() {
            rows.push(not_judged(arm));
        }
    }
    let worst = "worst job (its spread)";
    let head = ["arm", "figure", "measured", "predicted", "error", "spread", "holds", worst, ""];
    let title = "Prediction, fitted to the solo runs and those of none only".to_owned();
    let head = head.map(str::to_owned).to_vec();
    (!rows.is_empty()).then_some(Grid { title, head, rows, words: 2, notes: Vec::new() })
}

/// The row of an arm whose runs were all disturbed.
fn not_judged(arm: &ArmFindings) -> Vec<Cell> {
    let row =
        [arm.facts.name.as_str(), "every run disturbed", "-", "-", "-", "-", NOT_JUDGED, "-", "-"];
    row.map(Cell::plain).to_vec()
}

fn fidelity_row(arm: &ArmFindings, found: &Fidelity) -> Vec<Cell> {
    let title = Measure::named(&found.figure).map_or("", |measure| measure.title);
    let verdict = |holds: bool| {
        if holds { Cell::plain("yes") } else { Cell::failed("no") }
    };
    let spread = |part: f64| format!("{:.1} %", 100.0 * part);
    let (worst, jobs) = match (found.worst(), found.jobs_hold) {
        (Some(worst), Some(hold)) => {
            let its = worst.spread.map(|part| format!(" ({:.0} %)", 100.0 * part));
            let text = format!("{} {}{}", worst.job, percent(worst.error), its.unwrap_or_default());
            (Cell::plain(text), verdict(hold))
        }
        _ => (Cell::plain("-"), Cell::plain("-")),
    };
    let fitted = arm.facts.policy == BASELINE;
    vec![
        Cell::plain(arm.facts.name.clone()),
        Cell::plain(title),
        Cell::plain(value(found.measured, None)),
        Cell::plain(value(found.predicted, None)),
        Cell::plain(percent(found.error)),
        Cell::plain(found.spread.map_or_else(|| "-".to_owned(), spread)),
        if fitted { Cell::plain("fitted") } else { verdict(found.holds) },
        worst,
        jobs,
    ]
}

/// The papers' figures beside the measured ones.
pub(crate) fn claims(findings: &Findings) -> Option<Grid> {
    let row = |compared: &Compared| {
        let claim = &compared.claim;
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |x| claim.shown(x));
        let measured = compared.measured.map(|it| {
            let half = it.half.filter(|half| *half > 0.0);
            let half = half.map(|half| claim.shown(half).trim_start_matches('+').to_owned());
            half.map_or_else(
                || claim.shown(it.mean),
                |half| format!("{} ± {half}", claim.shown(it.mean)),
            )
        });
        let (word, tone) = match compared.verdict {
            _ if compared.not_judged.is_some() => (NOT_JUDGED, Tone::Disturbed),
            Verdict::Reproduced => ("yes", Tone::Better),
            Verdict::Different => ("no", Tone::Plain),
            Verdict::Impossible => ("impossible", Tone::Plain),
        };
        vec![
            Cell::plain(claim.source.clone()),
            Cell::plain(claim.figure.title()),
            Cell::plain(compared.arm.clone().unwrap_or_else(|| "-".to_owned())),
            Cell::plain(claim.shown(claim.value)),
            Cell::plain(measured.unwrap_or_else(|| "-".to_owned())),
            Cell::plain(shown(compared.simulated)),
            Cell::plain(shown(compared.bound)),
            Cell { text: word.to_owned(), tone },
        ]
    };
    let rows: Vec<Vec<Cell>> = findings.claims.iter().map(row).collect();
    let head =
        ["source", "figure", "arm", "printed", "measured", "simulated", "bound", "reproduced"];
    let title = "The paper's claims, in the paper's times".to_owned();
    let head = head.map(str::to_owned).to_vec();
    (!rows.is_empty()).then_some(Grid { title, head, rows, words: 3, notes: Vec::new() })
}

/// Every run, with the machine's other load.
pub(crate) fn runs(findings: &Findings) -> Grid {
    let mut rows = Vec::new();
    let runs = findings.arms.iter().flat_map(|arm| &arm.runs);
    let fastest = runs.filter_map(|run| run.host.speed).fold(0.0, f64::max);
    let speed = |host: &Host| match host.speed {
        Some(speed) if fastest > 0.0 => format!("{:.0} %", 100.0 * speed / fastest),
        _ => "-".to_owned(),
    };
    for arm in &findings.arms {
        for run in &arm.runs {
            let figure = |name: &str| {
                let known = run.figures.get(name).copied().flatten();
                known.map_or_else(
                    || Cell::plain("-"),
                    |x| Cell::figure(value(x, None), !run.is_clean()),
                )
            };
            let host = &run.host;
            rows.push(vec![
                Cell::plain(arm.facts.name.clone()),
                Cell::plain(run.repeat.to_string()),
                figure("completion_mean"),
                figure("makespan"),
                Cell::plain(format!("{:.2}", host.load)),
                Cell::plain(
                    host.others.map_or_else(|| "-".to_owned(), |x| format!("{:.1} %", 100.0 * x)),
                ),
                Cell::plain(format!("{:.1} %", 100.0 * host.steal)),
                Cell::plain(speed(host)),
                host.spoiled.as_ref().map_or_else(
                    || Cell::plain("yes"),
                    |why| Cell::failed(format!("no, disturbed: {why}")),
                ),
            ]);
        }
    }
    let head = [
        "arm",
        "repeat",
        "mean [s]",
        "makespan [s]",
        "load before",
        "other work",
        "stolen",
        "speed",
        "counts",
    ];
    let title = "All runs, and the machine's other load".to_owned();
    Grid { title, head: head.map(str::to_owned).to_vec(), rows, words: 1, notes: Vec::new() }
}
