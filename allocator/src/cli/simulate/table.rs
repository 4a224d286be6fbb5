//! A comparison for people: a row for each metric, a column for each policy.

use std::fmt::Write;

use paceline_sim::Scenario;
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::gangs::Exchange;
use paceline_sim::metrics::{Interval, Metric};

use crate::cli::plain::plain;

/// No line is longer.
const WIDTH: usize = 100;
/// Between two columns.
const GAP: usize = 2;

pub(super) fn comparison(scenario: &Scenario, all: &Comparison) -> String {
    let mut text = head(scenario);
    let metrics = all.metrics();
    let names = names(all, &metrics);
    let bound = bound_column(all, &metrics);
    let columns: Vec<Column> =
        all.results.iter().map(|results| policy_column(all, &metrics, results)).collect();
    let mut left = columns.as_slice();
    while let Some(most) = fitting(&names, left, &bound) {
        let (now, rest) = left.split_at(most);
        let mut block = vec![&names];
        block.extend(now);
        block.push(&bound);
        write_block(&mut text, &block);
        left = rest;
    }
    let seeds = all.seeds.len();
    let word = if seeds == 1 { "seed" } else { "seeds" };
    text + &format!("{seeds} {word}; the bound is what no policy can beat\n")
}

fn head(scenario: &Scenario) -> String {
    format!("{}: {}\n\n", plain(&scenario.name), plain(&scenario.description))
}

/// A column's cells, the first of which is its title.
type Column = Vec<String>;

fn names(all: &Comparison, metrics: &[&Metric]) -> Column {
    let mut column = vec![String::new()];
    for metric in metrics {
        let unit = if metric.unit == "-" { String::new() } else { format!(" [{}]", metric.unit) };
        column.push(format!("{}{unit}", metric.title));
        column.extend(all.bound(metric).map(|_| "  of the bound".to_owned()));
    }
    column
}

fn policy_column(all: &Comparison, metrics: &[&Metric], results: &Results) -> Column {
    let mut column = vec![results.arm.to_string()];
    for metric in metrics {
        column.push(cell(results.mean(metric)));
        let ratio = all.ratio(results, metric);
        let ratio = ratio.map_or_else(dash, |ratio| format!("{ratio:.3} x"));
        column.extend(all.bound(metric).map(|_| ratio));
    }
    column
}

fn bound_column(all: &Comparison, metrics: &[&Metric]) -> Column {
    let mut column = vec!["bound".to_owned()];
    for metric in metrics {
        let bound = all.bound(metric);
        column.push(bound.map_or_else(String::new, |bound| cell(Some(bound))));
        column.extend(bound.map(|_| String::new()));
    }
    column
}

fn cell(interval: Option<Interval>) -> String {
    let Some(Interval { mean, half }) = interval else { return dash() };
    match half.filter(|half| *half > 0.0) {
        Some(half) => format!("{} ± {}", figure(mean), figure(half)),
        None => figure(mean),
    }
}

/// A figure by its leading digits; a whole number as it is.
fn figure(x: f64) -> String {
    let whole = x.fract().abs() < 1e-9 && x.abs() < 1e6;
    if whole || x.abs() >= 1000.0 {
        format!("{x:.0}")
    } else if x.abs() >= 10.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.3}")
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn width(column: &[String]) -> usize {
    column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

/// How many of the columns fit beside the names and the bound: at least one, none if none is left.
fn fitting(names: &[String], columns: &[Column], bound: &[String]) -> Option<usize> {
    let mut room = WIDTH.saturating_sub(width(names) + GAP + width(bound));
    let fits = columns.iter().take_while(|column| {
        let needed = width(column) + GAP;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    });
    let number = fits.count();
    (!columns.is_empty()).then_some(number.max(1))
}

/// Names to the left, figures to the right of their columns.
fn write_block(text: &mut String, columns: &[&Column]) {
    let rows = columns.first().map_or(0, |column| column.len());
    for row in 0..rows {
        let mut line = String::new();
        for (number, column) in columns.iter().enumerate() {
            let cell = column.get(row).map_or("", String::as_str);
            let width = width(column);
            let written = if number == 0 {
                write!(line, "{cell:<width$}")
            } else {
                write!(line, "{:GAP$}{cell:>width$}", "")
            };
            written.expect("a string takes whatever is written to it");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
}

pub(super) fn exchanges(scenario: &Scenario, all: &[Exchange]) -> String {
    let mut text = head(scenario);
    let column = |title: &str, cell: fn(&Exchange) -> String| {
        let mut column = vec![title.to_owned()];
        column.extend(all.iter().map(cell));
        column
    };
    let columns = [
        column("placement", |exchange| plain(&exchange.placement)),
        column("gang", |exchange| plain(&exchange.gang)),
        column("pairs", |exchange| exchange.pairs.to_string()),
        column("across nodes", |exchange| exchange.crossing.to_string()),
        column("MB a step", |exchange| format!("{:.1}", exchange.step_bytes / 1e6)),
        column("GB in all", |exchange| format!("{:.1}", exchange.bytes / 1e9)),
        column("unplaced", |exchange| exchange.unplaced.to_string()),
    ];
    write_block(&mut text, &columns.iter().collect::<Vec<_>>());
    text
}

#[cfg(test)]
mod tests {
    use paceline_sim::compare::compare;
    use paceline_sim::scenario::LIBRARY;

    use super::*;

    fn scenario(name: &str) -> Scenario {
        let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
        Scenario::parse(listed.text).unwrap()
    }

    #[test]
    fn no_line_is_longer_than_a_hundred_columns_however_many_policies_there_are() {
        let scenario = scenario("FC-5");
        let names = ["none", "flowcon", "flowcon:published", "tradl", "tradl:published", "dqoes"];
        let arms: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
        let text = comparison(&scenario, &compare(&scenario, &arms, 3).unwrap());
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for name in names {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn a_table_has_the_figures_their_bounds_and_the_distance_between_them() {
        let scenario = scenario("FC-3");
        let text = comparison(&scenario, &compare(&scenario, &scenario.arms, 1).unwrap());
        let row = |title: &str| {
            let line = text.lines().find(|line| line.starts_with(title));
            line.unwrap_or_else(|| panic!("{title}: {text}")).to_owned()
        };
        let completion = row("mean completion [s]");
        assert!(completion.contains("267.9") && completion.ends_with("199.6"), "{completion}");
        assert!(row("  of the bound").contains("1.34"), "{text}");
        assert!(row("makespan [s]").contains("394"), "{text}");
    }

    #[test]
    fn placements_have_a_row_each() {
        let scenario = scenario("DL-3");
        let all = paceline_sim::gangs::exchanges(&scenario, &scenario.arms).unwrap();
        let text = exchanges(&scenario, &all);
        let row = text.lines().find(|line| line.starts_with("dltap")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["dltap", "fcn-8", "6", "2", "24.0", "240.0", "0"]);
    }
}
