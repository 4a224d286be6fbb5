//! The papers' claims beside the results here.

use paceline_api::table::Table;
use paceline_sim::claims::{Checked, Verdict};

use crate::text::blocks::Block;

/// A table of claims, and numbered remarks about the flaws of some claims.
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
        let value = |value: Option<f64>| value.map_or_else(String::new, |value| claim.shown(value));
        rows.push(vec![
            claim.scenario.clone(),
            claim.policy.clone(),
            claim.figure.title(),
            claim.source.rsplit(", ").next().unwrap_or_default().to_owned(),
            value(Some(claim.value)),
            value(checked.published),
            value(checked.bound),
            word(checked.verdict).to_owned() + &mark.unwrap_or_default(),
        ]);
    }
    let head = ["scenario", "policy", "figure", "section", "printed", "here", "bound", "verdict"];
    let table = Block::Table(Table::new(4, head, rows));
    let remarks = remarks.into_iter().enumerate();
    let remarks = remarks.map(|(at, remark)| Block::Remark(at + 1, remark.to_owned()));
    std::iter::once(table).chain(remarks).collect()
}

/// How many claims have which verdict, as a sentence.
pub(super) fn sum(claims: &[&Checked]) -> String {
    let number = |verdict| claims.iter().filter(|checked| checked.verdict == verdict).count();
    format!(
        "Of {} figures that papers print, {} come out here as well, {} do not, and {} cannot be: a \
         bound rules them out, whatever the policy.",
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
