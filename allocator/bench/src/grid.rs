//! The findings as tables, the same for the console, the report and EXPERIMENTS.md.

mod figures;
mod notes;
mod verdicts;

use paceline_api::table::Table;
use paceline_sim::metrics::Better;

use super::outcome::Figure;
pub(crate) use figures::{all_of_jobs, figures, jobs};
use notes::PARTIAL;
pub(crate) use notes::{MARK, notes};
pub(crate) use verdicts::{NOT_JUDGED, claims, fidelity, runs};

/// A table with a title.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// How many columns are text. They are repeated if a table is split.
    pub(crate) words: usize,
    /// Lines under the table.
    pub(crate) notes: Vec<String>,
}

/// One cell of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// What a figure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Better than `none`; the interval of the difference excludes 0.
    Better,
    /// Worse than `none`; the interval of the difference excludes 0.
    Worse,
    /// Of disturbed runs.
    Disturbed,
    /// A failure.
    Failed,
}

impl Cell {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// A figure, marked if it comes from disturbed runs.
    pub(crate) fn figure(text: impl Into<String>, disturbed: bool) -> Self {
        let plain = Self::plain(text);
        if disturbed { Self { text: plain.text + MARK, tone: Tone::Disturbed } } else { plain }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Failed }
    }
}

/// A figure with its interval and its change from `none`; each is marked if it comes from disturbed
/// runs, and the figure if some runs lack it.
pub(crate) fn cell(figure: Option<&Figure>, better: Option<Better>) -> Cell {
    let Some(figure) = figure else { return Cell::plain("-") };
    let change = figure.change();
    let marked = if figure.difference_disturbed { MARK } else { "" };
    let shown_change =
        change.map(|change| format!(" ({change:+.1} %{marked})")).unwrap_or_default();
    let text = value(figure.measured.mean, figure.measured.half) + &marks(figure) + &shown_change;
    let tone = match (better, change.filter(|_| figure.certain())) {
        _ if figure.disturbed || (change.is_some() && figure.difference_disturbed) => {
            Tone::Disturbed
        }
        (Some(better), Some(change)) if change.abs() > 0.0 => {
            if (change < 0.0) == (better == Better::Less) { Tone::Better } else { Tone::Worse }
        }
        _ => Tone::Plain,
    };
    Cell { text, tone }
}

/// The marks after a mean: of disturbed runs, and of some runs only.
pub(crate) fn marks(figure: &Figure) -> String {
    let disturbed = if figure.disturbed { MARK } else { "" };
    let partial = if figure.partial { PARTIAL } else { "" };
    format!("{disturbed}{partial}")
}

impl Grid {
    /// The table without tones.
    pub(crate) fn table(&self) -> Table {
        let row = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.clone()).collect();
        Table::new(self.words, &self.head, self.rows.iter().map(row).collect())
    }
}

/// A mean with half of its interval, with significant digits only.
pub(crate) fn value(mean: f64, half: Option<f64>) -> String {
    let whole = (mean - mean.round()).abs() < 1e-9 && half.is_none_or(|half| half < 1e-9);
    let digits = if whole || mean.abs() >= 1000.0 {
        0
    } else if mean.abs() >= 10.0 {
        1
    } else {
        2
    };
    match half {
        Some(half) if half > 0.0 => format!("{mean:.digits$} ± {half:.digits$}"),
        Some(_) | None => format!("{mean:.digits$}"),
    }
}

/// A fraction as a percentage with a sign.
pub(crate) fn percent(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}
