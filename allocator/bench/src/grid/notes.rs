//! Notes under a table with figures of disturbed runs, or of some runs only.

use super::super::outcome::{ArmFindings, BASELINE, Findings};
use super::{Grid, Tone};

/// The mark after a figure of disturbed runs.
pub(crate) const MARK: &str = "*";

/// The mark after a mean that leaves out runs without the figure.
pub(super) const PARTIAL: &str = "†";
/// What that mark means.
const LACKS_RUNS: &str =
    "† without the runs that lack the figure, for example because a job did not end";

/// What disturbed the runs of the marked figures: a line for each arm.
pub(crate) fn notes(findings: &Findings) -> Vec<String> {
    let note = |arm: &ArmFindings| {
        let each = arm.runs.iter().filter_map(|run| run.disturbance(&arm.facts.name));
        format!("{MARK} disturbed: {}", each.collect::<Vec<String>>().join("; "))
    };
    findings.arms.iter().filter(|arm| is_marked(findings, arm)).map(note).collect()
}

/// Whether a marked figure uses this arm's disturbed runs: its own figure, or a difference from `none`.
fn is_marked(findings: &Findings, arm: &ArmFindings) -> bool {
    let compared = |other: &ArmFindings| {
        let jobs = other.jobs.iter().flat_map(|job| job.figures.values());
        let mut all = other.figures.values().chain(jobs).flatten();
        all.any(|figure| figure.difference_disturbed && !figure.disturbed)
    };
    let is_disturbed = arm.runs.iter().any(|run| !run.is_clean());
    let is_compared = || arm.facts.policy == BASELINE && findings.arms.iter().any(compared);
    arm.is_disturbed() || (is_disturbed && is_compared())
}

impl Grid {
    /// Adds those notes to the table if a figure in it is marked.
    pub(super) fn noted(self, findings: &Findings) -> Self {
        let marked = self.rows.iter().flatten().any(|cell| cell.tone == Tone::Disturbed);
        let mut notes = if marked { notes(findings) } else { Vec::new() };
        let mut figures = self.rows.iter().flat_map(|row| row.iter().skip(self.words));
        if figures.any(|cell| cell.text.contains(PARTIAL)) {
            notes.push(LACKS_RUNS.to_owned());
        }
        Self { notes, ..self }
    }
}
