//! What papers claim, beside what comes of it here.

use paceline_sim::claims::{Checked, Figure, Target, Verdict};
use paceline_sim::metrics::Metric;

use super::blocks::{Block, Table};
use crate::cli::compared::compact;

/// A table of claims, and the remarks about those that are not what they seem.
pub(super) fn blocks(claims: &[&Checked]) -> Vec<Block> {
    let mut remarks: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for checked in claims {
        let claim = &checked.claim;
        let mark = claim.flaw.as_deref().map(|flaw| {
            let known = remarks.iter().position(|remark| *remark == flaw);
            let at = known.unwrap_or_else(|| {
                remarks.push(flaw);
                remarks.len() - 1
            });
            format!(" [{}]", at + 1)
        });
        let value =
            |value: Option<f64>| value.map_or_else(String::new, |value| shown(checked, value));
        rows.push(vec![
            claim.scenario.clone(),
            claim.policy.clone(),
            title(&claim.figure),
            claim.source.rsplit(", ").next().unwrap_or_default().to_owned(),
            value(Some(claim.value)),
            value(checked.published),
            value(checked.bound),
            word(checked.verdict).to_owned() + &mark.unwrap_or_default(),
        ]);
    }
    let head = ["scenario", "policy", "figure", "section", "printed", "here", "bound", "verdict"];
    let head = head.map(ToOwned::to_owned).to_vec();
    let table = Block::Table(Table { head, rows, words: 4 });
    let remarks = remarks.into_iter().enumerate();
    let remarks = remarks.map(|(at, remark)| Block::Remark(at + 1, remark.to_owned()));
    std::iter::once(table).chain(remarks).collect()
}

/// How many claims came to which end, as a sentence.
pub(super) fn sum(claims: &[&Checked]) -> String {
    let number = |verdict| claims.iter().filter(|checked| checked.verdict == verdict).count();
    format!(
        "Of {} figures that papers print, {} come out here as well, {} do not, and {} cannot be: a \
         bound says so, whatever the policy.",
        claims.len(),
        number(Verdict::Reproduced),
        number(Verdict::Different),
        number(Verdict::Impossible),
    )
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "yes",
        Verdict::Different => "no",
        Verdict::Impossible => "cannot",
    }
}

fn title(figure: &Figure) -> String {
    let metric = |name: &str| Metric::named(name).map_or(name, |metric| metric.title).to_owned();
    match figure {
        Figure::Value(name) | Figure::Change(name) => metric(name),
        Figure::Completion(job) | Figure::CompletionChange(job) => format!("{job} ends"),
        Figure::BestJob => "best job ends".to_owned(),
        Figure::BestChange(Target::Acceptable) => "best job acceptable".to_owned(),
        Figure::BestChange(Target::Objective) => "best job objective".to_owned(),
        Figure::Improved => "jobs sooner".to_owned(),
        Figure::Crossing => "pairs across nodes".to_owned(),
    }
}

/// A change with its sign, a part of the jobs without.
fn shown(checked: &Checked, value: f64) -> String {
    if checked.claim.figure == Figure::Improved {
        format!("{:.0} %", 100.0 * value)
    } else if !checked.claim.is_part() {
        compact(value)
    } else if value.abs() < 5e-4 {
        // Nothing has no sign.
        "0 %".to_owned()
    } else {
        format!("{:+.1} %", 100.0 * value)
    }
}
