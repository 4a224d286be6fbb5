//! The figures of all policies, beside their bounds.

use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::Metric;

use super::super::table::{cell, dash, mean};
use crate::command::compared::LEAVES_OUT_JOBS;
use crate::figure::html::{each, escape};
use crate::text::titled;

/// A row for each metric and a column for each policy, with the bounds in the last one.
pub(super) fn comparison(all: &Comparison) -> String {
    let names = all.results.iter().map(|results| results.arm.to_string());
    let head = each(names, |name| format!("<th>{}</th>", escape(&name)));
    let metrics = all.metrics();
    let rows = each(&metrics, |metric| row(all, metric));
    let marked = |metric: &&Metric| all.results.iter().any(|own| own.leaves_out_jobs(metric));
    let note = if metrics.iter().any(marked) {
        format!("<p class=\"note\">{LEAVES_OUT_JOBS}</p>\n")
    } else {
        String::new()
    };
    format!(
        "<div class=\"wide\"><table><caption>Each policy's figures, and their ratio to the bound\
         </caption>\n<thead><tr><th></th>{head}<th>bound</th></tr></thead>\n\
         <tbody>{rows}</tbody></table></div>\n{note}"
    )
}

fn row(all: &Comparison, metric: &Metric) -> String {
    let bound = all.bound(metric);
    let figures = each(&all.results, |results: &Results| data(&mean(results, metric)));
    let row = format!(
        "<tr><td title=\"{}\">{}</td>{figures}{}</tr>\n",
        escape(metric.about),
        escape(&titled(metric.title, metric.unit)),
        data(&bound.map_or_else(String::new, |bound| cell(Some(bound)))),
    );
    if bound.is_none() {
        return row;
    }
    let ratios = each(&all.results, |results: &Results| {
        let ratio = all.ratio(results, metric);
        format!("<td class=\"part\">{}</td>", ratio.map_or_else(dash, |x| format!("{x:.3} x")))
    });
    format!("{row}<tr><td class=\"part\">of the bound</td>{ratios}<td></td></tr>\n")
}

fn data(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}
