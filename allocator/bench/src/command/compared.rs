//! Figures of a comparison, as text and as JSON.

use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::Metric;
use serde_json::{Map, Value, json};

/// A figure with three or four significant digits; a whole number as it is.
pub(super) fn figure(x: f64) -> String {
    let whole = x.fract().abs() < 1e-9 && x.abs() < 1e6;
    if whole || x.abs() >= 1000.0 {
        format!("{x:.0}")
    } else if x.abs() >= 10.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.3}")
    }
}

/// The mark after a figure that leaves out jobs that did not finish.
const MARK: &str = "*";
/// What the mark means.
pub(super) const LEAVES_OUT_JOBS: &str = "Figures marked * leave out jobs that did not finish.";

/// A figure's text, marked if it leaves out jobs that did not finish.
pub(super) fn marked(text: String, leaves_out_jobs: bool) -> String {
    if leaves_out_jobs { text + MARK } else { text }
}

/// Whether one of these cells has the mark.
pub(super) fn has_mark<'a>(cells: impl IntoIterator<Item = &'a String>) -> bool {
    cells.into_iter().any(|cell| cell.ends_with(MARK))
}

/// The bounds of some metrics, by name.
///
/// `mean` is the limit that no policy can beat, averaged over the seeds, and `half` is half of its interval.
/// A schedule that knows the future reaches `reached`, which is null if none was computed.
pub(super) fn bounds(all: &Comparison, metrics: &[&Metric]) -> Value {
    let bounds = metrics.iter().filter_map(|metric| {
        let limit = all.bound(metric)?;
        let reached = all.reached(metric).map(|reached| reached.mean);
        let value = json!({"mean": limit.mean, "half": limit.half, "reached": reached});
        Some((metric.name.to_owned(), value))
    });
    Value::Object(bounds.collect())
}

/// A policy's figures for some metrics, by name.
///
/// `leaves_out_jobs` says whether the mean leaves out jobs that did not finish, and
/// `difference_leaves_out_jobs` the same of the difference.
pub(super) fn figures(all: &Comparison, metrics: &[&Metric], results: &Results) -> Value {
    let figure = |metric: &&Metric| {
        let figure = results.mean(metric)?;
        let value = json!({
            "mean": figure.mean,
            "half": figure.half,
            "unit": metric.unit,
            "over_bound": all.ratio(results, metric),
            "difference": all.difference(results, metric),
            "leaves_out_jobs": results.leaves_out_jobs(metric),
            "difference_leaves_out_jobs": all.difference_leaves_out_jobs(results, metric),
        });
        Some((metric.name.to_owned(), value))
    };
    Value::Object(metrics.iter().filter_map(figure).collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_significant_digits_only() {
        for (x, text) in [(394.0, "394"), (267.93, "267.9"), (1.2345, "1.234"), (1234.5, "1234")] {
            assert_eq!(figure(x), text);
        }
    }
}
