//! The meaning of the columns of a file.

use paceline_lines::names::{self, Meaning};
use paceline_lines::observation::{Elapsed, Loss, Observation, Phase, Span};

/// The columns in the order of the header.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    columns: Vec<Column>,
    /// The span of a training loss whose name does not give one.
    usual: Span,
    /// Whether a comma within a number is a decimal point.
    comma: bool,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    meaning: Option<Meaning>,
}

impl Layout {
    /// Reads a header. `comma`: columns are not separated by commas, so numbers may contain a
    /// decimal comma.
    pub(super) fn new<'a>(header: impl Iterator<Item = &'a str>, comma: bool) -> Self {
        let column =
            |name: &str| Column { name: name.trim().to_owned(), meaning: names::meaning(name) };
        let columns: Vec<_> = header.map(column).collect();
        let is = |meaning| columns.iter().any(|column| column.meaning == Some(meaning));
        let named = |name: &str| columns.iter().any(|column| column.name == name);
        let usual = if is(Meaning::Step) || is(Meaning::Batch) || !is(Meaning::Epoch) {
            Span::Step
        } else if named("train_loss") && named("valid_loss") && named("time") {
            // fastai writes a moving mean at the end of each epoch.
            Span::Interval
        } else {
            Span::Epoch
        };
        Self { columns, usual, comma }
    }

    /// Whether a row repeats the header, as an appending logger writes it after a restart.
    pub(super) fn is_header<'a>(&self, mut row: impl Iterator<Item = &'a str> + Clone) -> bool {
        !row.clone().any(|cell| self.number(cell).is_some())
            && row.any(|cell| names::meaning(cell).is_some())
    }

    /// A checksum of a row's content, independent of the order and number of columns.
    pub(super) fn checksum<'a>(&self, row: impl Iterator<Item = &'a str>) -> u32 {
        let cells = self.columns.iter().map(|column| column.name.as_str()).zip(row);
        let mut cells: Vec<_> = cells.filter(|(_, cell)| !cell.is_empty()).collect();
        cells.sort_unstable();
        let add = |crc, text: &str| crc32c::crc32c_append(crc, text.as_bytes());
        cells.iter().fold(0, |crc, (name, cell)| {
            [name, "\0", cell, "\0"].iter().fold(crc, |crc, text| add(crc, text))
        })
    }

    /// The observation in a row, if there is any.
    pub(super) fn observation<'a>(
        &self,
        row: impl Iterator<Item = &'a str>,
    ) -> Option<Observation> {
        let mut found = Observation::default();
        let mut batch = None;
        for (column, cell) in self.columns.iter().zip(row) {
            let Some(meaning) = column.meaning else { continue };
            let Some(value) = self.number(cell) else { continue };
            let positive = Some(value).filter(|value| value.is_finite() && *value > 0.0);
            let counted = Some(value).filter(|value| value.is_finite() && *value >= 0.0);
            match meaning {
                Meaning::Loss { phase, span } => {
                    let phase = phase.unwrap_or(Phase::Train);
                    let usual = if phase == Phase::Train { self.usual } else { Span::Epoch };
                    let (name, span) = (column.name.clone(), span.unwrap_or(usual));
                    found.losses.push(Loss { name, phase, span, value });
                }
                Meaning::BatchTime { per_second } => {
                    found.batch_seconds = positive.map(|value| value / per_second);
                }
                Meaning::BatchRate => found.batch_seconds = positive.map(f64::recip),
                Meaning::Epoch => found.epoch = counted,
                Meaning::Step => found.step = whole(cell),
                Meaning::Batch => batch = whole(cell),
                Meaning::TotalSteps => found.total_steps = whole(cell),
                Meaning::TotalEpochs => found.total_epochs = whole(cell),
                Meaning::Elapsed => {
                    found.elapsed = positive.map(|seconds| Elapsed { seconds, is_named: true });
                }
                // Seconds since the start of the job are not wall time.
                Meaning::WallTime => found.at = positive.filter(|at| *at > 1e9),
            }
        }
        if found.step.is_none() && batch.is_some() {
            (found.step, found.step_in_epoch) = (batch, true);
        }
        let says = found.step.is_some()
            || found.epoch.is_some()
            || found.batch_seconds.is_some()
            || !found.losses.is_empty();
        says.then_some(found)
    }

    fn number(&self, cell: &str) -> Option<f64> {
        let cell = cell.trim();
        let plain = cell.parse().ok();
        plain.or_else(|| cell.replace(',', ".").parse().ok().filter(|_| self.comma))
    }
}

/// Parses a counter, which some loggers write with `.0`.
fn whole(cell: &str) -> Option<u64> {
    let cell = cell.trim();
    cell.strip_suffix(".0").unwrap_or(cell).parse().ok()
}
