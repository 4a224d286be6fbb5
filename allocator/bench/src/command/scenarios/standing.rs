//! Tables of the policies' figures, and which policy is best by which metric.

use paceline_api::table::Table;
use paceline_sim::claims::compact;
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::{Better, Metric};
use paceline_sim::scenario::Arm;

use super::results::{Entry, Figures};
use crate::command::compared::marked;

/// The metrics that have a column, with the column's title.
const COLUMNS: &[(&str, &str)] = &[
    ("completion_mean", "completion"),
    ("makespan", "makespan"),
    ("fairness_worst", "worst ρ"),
    ("loss_area", "loss area"),
    ("acceptable_mean", "acceptable"),
    ("objective_mean", "objective"),
    ("satisfied", "satisfied"),
    ("met", "met"),
    ("distance", "distance"),
    ("stranded", "stranded"),
    ("moves", "moves"),
    ("preemptions", "preempted"),
    ("unfinished", "unfinished"),
];
/// More columns do not fit on the page.
const MAX_NAMED: usize = 6;
/// Figures that differ relatively by less than this are equal.
const SAME: f64 = 1e-3;

/// A policy's name; † marks it as printed in its paper.
pub(super) fn short(arm: &Arm) -> String {
    arm.to_string().replace(":published", "†")
}

/// Each policy's figures, with the distance to the bound in brackets. Also returns the policies whose
/// results equal those of the first, since nothing in this scenario affects them.
pub(super) fn table(all: &Comparison) -> (Table, Vec<String>) {
    let columns = columns(all);
    let titles = std::iter::once("policy").chain(columns.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, titles, Vec::new());
    let mut idle = Vec::new();
    for (number, results) in all.results.iter().enumerate() {
        if number > 0 && all.results.first().is_some_and(|first| same(first, results)) {
            idle.push(short(&results.arm));
            continue;
        }
        let cells = columns.iter().map(|(metric, _)| cell(all, results, metric));
        table.rows.push(std::iter::once(short(&results.arm)).chain(cells).collect());
    }
    let bounds = columns.iter().map(|(metric, _)| bound(all, metric));
    table.rows.push(std::iter::once("bound".to_owned()).chain(bounds).collect());
    (table, idle)
}

fn columns(all: &Comparison) -> Vec<(&'static Metric, &'static str)> {
    let known = COLUMNS.iter().filter_map(|(name, title)| Some((Metric::named(name)?, *title)));
    let differs = |metric: &Metric| {
        let mut means = all.results.iter().filter_map(|results| results.mean(metric));
        means.any(|figure| figure.mean.abs() > 0.0)
    };
    // Where no job ends, `unfinished` means nothing.
    let ends = Metric::named("makespan").is_some_and(|metric| all.bound(metric).is_some());
    let shown = known.filter(|(metric, _)| {
        all.bound(metric).is_some() || (differs(metric) && (ends || metric.name != "unfinished"))
    });
    shown.take(MAX_NAMED).collect()
}

fn same(a: &Results, b: &Results) -> bool {
    COLUMNS.iter().filter_map(|(name, _)| Metric::named(name)).all(|metric| {
        match (a.mean(metric), b.mean(metric)) {
            (Some(a), Some(b)) => near(a.mean, b.mean),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    })
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs())
}

fn cell(all: &Comparison, results: &Results, metric: &Metric) -> String {
    let Some(own) = results.mean(metric) else { return "-".to_owned() };
    match all.ratio(results, metric) {
        Some(ratio) => format!("{} ({ratio:.2})", compact(own.mean)),
        None => marked(compact(own.mean), results.leaves_out_jobs(metric)),
    }
}

/// Both ends of a bound, or the one that is known.
fn bound(all: &Comparison, metric: &Metric) -> String {
    let Some(limit) = all.bound(metric) else { return String::new() };
    match all.reached(metric) {
        Some(reached) if !near(reached.mean, limit.mean) => {
            format!("{}–{}", compact(limit.mean), compact(reached.mean))
        }
        Some(_) | None => compact(limit.mean),
    }
}

/// A row for each scenario that has some of these metrics: the best policy by each, and how far it is
/// from the bound.
pub(super) fn summary(entries: &[Entry], metrics: &[(&str, &str)]) -> Table {
    let head = std::iter::once("scenario").chain(metrics.iter().map(|(_, title)| *title));
    let row = |entry: &Entry| {
        let Figures::Runs(all) = &entry.figures else { return None };
        let metrics = metrics.iter().filter_map(|(name, _)| Metric::named(name));
        let cells: Vec<String> = metrics.map(|metric| best(all, metric)).collect();
        let any = cells.iter().any(|cell| !cell.is_empty());
        any.then(|| std::iter::once(entry.scenario.name.clone()).chain(cells).collect())
    };
    let rows = entries.iter().filter_map(row).collect();
    Table::new(metrics.len() + 1, head, rows)
}

/// The policies of the table of gaps, in their resolved variants.
const CLOSING: [&str; 4] = ["flowcon", "tradl", "specon", "paceline"];
/// The policy whose fairness the table of gaps shows.
const OWN: &str = "paceline";

/// A row for each scenario with a bound of the mean completion time. It has the part of the gap between
/// the first policy and the bound that each policy closes, and `paceline`'s finish-time fairness.
pub(super) fn gaps(entries: &[Entry]) -> Table {
    let head = std::iter::once("scenario").chain(CLOSING).chain(["worst ρ", "mean ρ"]);
    let row = |entry: &Entry| {
        let Figures::Runs(all) = &entry.figures else { return None };
        let completion = Metric::named("completion_mean")?;
        all.bound(completion)?;
        let of = |policy: &str| all.results.iter().find(|results| short(&results.arm) == policy);
        let closed = CLOSING
            .iter()
            .map(|policy| part(of(policy).and_then(|results| all.gap_closed(results, completion))));
        let own = of(OWN)?;
        let fairness = Metric::named("fairness_mean")?;
        let mean = own.mean(fairness).map_or_else(String::new, |interval| {
            marked(format!("{:.2}", interval.mean), own.leaves_out_jobs(fairness))
        });
        let name = std::iter::once(entry.scenario.name.clone());
        Some(name.chain(closed).chain([worst_fairness(own), mean]).collect())
    };
    Table::new(1, head, entries.iter().filter_map(row).collect())
}

/// A part as a percentage.
pub(super) fn part(part: Option<f64>) -> String {
    let whole = |part: f64| if (100.0 * part).abs() < 0.5 { 0.0 } else { 100.0 * part };
    part.map_or_else(String::new, |part| format!("{:.0} %", whole(part)))
}

/// The largest finish-time fairness of all jobs and seeds.
pub(super) fn worst_fairness(results: &Results) -> String {
    let Some(metric) = Metric::named("fairness_worst") else { return String::new() };
    let worst = results.outcomes.iter().filter_map(|run| metric.of(run)).reduce(f64::max);
    worst.map_or_else(String::new, |worst| {
        marked(format!("{worst:.2}"), results.leaves_out_jobs(metric))
    })
}

/// The best policy by a metric; the first of several equal ones.
fn best(all: &Comparison, metric: &Metric) -> String {
    if all.bound(metric).is_none() {
        return String::new();
    }
    let figures = all.results.iter().filter_map(|results| {
        let whole = !(metric.finished_only && results.is_cut_short());
        Some((results, results.mean(metric).filter(|_| whole)?.mean))
    });
    let better = |a: f64, b: f64| match metric.better {
        Better::Less => b < a * (1.0 - SAME),
        Better::More => b > a * (1.0 + SAME),
    };
    let best = figures.reduce(|best, other| if better(best.1, other.1) { other } else { best });
    let Some((results, value)) = best else { return "-".to_owned() };
    let name = short(&results.arm);
    match (metric.better, all.ratio(results, metric), all.bound(metric)) {
        (Better::More, _, Some(bound)) => {
            format!("{name} {} of {}", compact(value), compact(bound.mean))
        }
        (_, Some(ratio), _) => format!("{name} {ratio:.2}"),
        (_, None, _) => format!("{name} {}", compact(value)),
    }
}
