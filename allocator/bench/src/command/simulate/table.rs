//! A comparison for people: a row for each metric, a column for each policy.

use paceline_api::plain::plain;
use paceline_sim::Scenario;
use paceline_sim::bounds::fewest_crossing;
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::gangs::Exchange;
use paceline_sim::metrics::{Interval, Metric};

use super::columns::{Column, write_block, write_blocks};
use crate::command::compared::{LEAVES_OUT_JOBS, figure, has_mark, marked};
use crate::text::titled;
use crate::text::wrap::wrap;

/// Intervals smaller than this part of the mean are rounding errors and not shown.
const ROUNDING: f64 = 1e-9;
/// Bounds that differ relatively by less than this are equal.
const SAME: f64 = 1e-4;

pub(super) fn comparison(scenario: &Scenario, all: &Comparison) -> String {
    let mut text = head(scenario);
    let metrics = all.metrics();
    let names = names(all, &metrics);
    let bound = bound_column(all, &metrics);
    let columns = all.results.iter().map(|results| policy_column(all, &metrics, results));
    let columns: Vec<Column> = columns.collect();
    write_blocks(&mut text, &names, &columns, &bound);
    let seeds = all.seeds.len();
    let word = if seeds == 1 { "seed" } else { "seeds" };
    let known = if bound.iter().any(|cell| cell.starts_with("known")) {
        "; known: reached by a schedule with foresight"
    } else {
        ""
    };
    let foot = format!("{seeds} {word}; the bound is what no policy can beat{known}\n");
    text.push_str(&foot);
    text.push_str(&note(columns.iter().flatten()));
    differences(&mut text, all, &metrics);
    text
}

/// What marked figures leave out, if one of these cells is marked: a line.
fn note<'a>(cells: impl IntoIterator<Item = &'a String>) -> String {
    if has_mark(cells) { format!("{LEAVES_OUT_JOBS}\n") } else { String::new() }
}

/// The policies' differences from the first one, seed by seed. With a single seed they would repeat what
/// the figures show.
fn differences(text: &mut String, all: &Comparison, metrics: &[&Metric]) {
    let Some((first, others)) = all.results.split_first() else { return };
    if all.seeds.len() < 2 || others.is_empty() {
        return;
    }
    let differs = |metric: &&&Metric| {
        let each = others.iter().filter_map(|results| all.difference(results, metric));
        each.into_iter().any(|apart| apart.mean.abs() > 0.0)
    };
    let metrics: Vec<&Metric> = metrics.iter().filter(differs).copied().collect();
    let mut names = vec![format!("less {}, by seed", first.arm)];
    names.extend(metrics.iter().map(|metric| titled(metric.title, metric.unit)));
    let column = |results: &Results| {
        let mut column = vec![results.arm.to_string()];
        column.extend(metrics.iter().map(|metric| {
            let apart = all.difference(results, metric);
            let leaves_out = all.difference_leaves_out_jobs(results, metric);
            marked(signed(apart), apart.is_some() && leaves_out)
        }));
        column
    };
    let columns: Vec<Column> = others.iter().map(column).collect();
    text.push('\n');
    write_blocks(text, &names, &columns, &vec![String::new(); names.len()]);
    text.truncate(text.trim_end().len());
    text.push('\n');
}

fn signed(interval: Option<Interval>) -> String {
    let text = cell(interval);
    if interval.is_some_and(|interval| interval.mean > 0.0) { format!("+{text}") } else { text }
}

pub(super) fn head(scenario: &Scenario) -> String {
    wrap(&format!("{}: {}", plain(&scenario.name), plain(&scenario.description)), "", "") + "\n"
}

fn names(all: &Comparison, metrics: &[&Metric]) -> Column {
    let mut column = vec![String::new()];
    for metric in metrics {
        column.push(titled(metric.title, metric.unit));
        column.extend(all.bound(metric).map(|_| "  of the bound".to_owned()));
    }
    column
}

fn policy_column(all: &Comparison, metrics: &[&Metric], results: &Results) -> Column {
    let mut column = vec![results.arm.to_string()];
    for metric in metrics {
        column.push(mean(results, metric));
        let ratio = all.ratio(results, metric);
        let ratio = ratio.map_or_else(dash, |ratio| format!("{ratio:.3} x"));
        column.extend(all.bound(metric).map(|_| ratio));
    }
    column
}

/// A policy's mean, marked if it leaves out jobs that did not finish.
pub(super) fn mean(results: &Results, metric: &Metric) -> String {
    let mean = results.mean(metric);
    marked(cell(mean), mean.is_some() && results.leaves_out_jobs(metric))
}

fn bound_column(all: &Comparison, metrics: &[&Metric]) -> Column {
    let mut column = vec!["bound".to_owned()];
    for metric in metrics {
        let bound = all.bound(metric);
        column.push(bound.map_or_else(String::new, |bound| cell(Some(bound))));
        column.extend(bound.map(|bound| reached(all, metric, bound)));
    }
    column
}

/// The value that a schedule with foresight reaches, if it differs from the bound.
fn reached(all: &Comparison, metric: &Metric, bound: Interval) -> String {
    let reached = all.reached(metric).map(|reached| reached.mean);
    let other = reached.filter(|reached| (reached / bound.mean - 1.0).abs() > SAME);
    other.map_or_else(String::new, |reached| format!("known: {}", figure(reached)))
}

pub(super) fn cell(interval: Option<Interval>) -> String {
    let Some(Interval { mean, half }) = interval else { return dash() };
    // Runs without randomness differ by rounding only.
    match half.filter(|half| *half > ROUNDING * mean.abs()) {
        Some(half) => format!("{} ± {}", figure(mean), figure(half)),
        None => figure(mean),
    }
}

pub(super) fn dash() -> String {
    "-".to_owned()
}

pub(super) fn exchanges(scenario: &Scenario, all: &[Exchange]) -> String {
    let mut text = head(scenario);
    let fewest = |exchange: &Exchange| {
        let gang = scenario.gangs.iter().find(|gang| gang.id.as_str() == exchange.gang);
        let fewest = gang.and_then(|gang| fewest_crossing(gang, &scenario.nodes));
        fewest.map_or_else(dash, |fewest| fewest.to_string())
    };
    let column = |title: &str, cell: &dyn Fn(&Exchange) -> String| {
        let mut column = vec![title.to_owned()];
        column.extend(all.iter().map(cell));
        column
    };
    let columns = [
        column("placement", &|exchange| plain(&exchange.placement)),
        column("gang", &|exchange| plain(&exchange.gang)),
        column("pairs", &|exchange| exchange.pairs.to_string()),
        column("across nodes", &|exchange| exchange.crossing.to_string()),
        column("fewest", &fewest),
        column("MB a step", &|exchange| format!("{:.1}", exchange.step_bytes / 1e6)),
        column("GB in all", &|exchange| format!("{:.1}", exchange.bytes / 1e9)),
        column("unplaced", &|exchange| exchange.unplaced.to_string()),
    ];
    write_block(&mut text, &columns.iter().collect::<Vec<_>>());
    text
}

#[cfg(test)]
mod tests;
