//! fastai: the bars of fastprogress, and the table with a row for each epoch.

use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use paceline_lines::terminal::End;

use super::draft::Draft;
use super::keys::{Field, Keys, main_loss_first};
use super::{Grammar, Reading};

/// The state between frames.
#[derive(Debug, Default)]
pub(super) struct Fastprogress {
    keys: Keys,
    /// The table's header.
    columns: Vec<String>,
    /// The epoch of the last frame, its step, and whether it was of the validation.
    last: Option<(u64, u64, bool)>,
}

/// The column of a table that shows it to be one of fastai.
const LOSS: &str = "train_loss";
/// The column of skorch's tables, which have empty cells.
const OF_SKORCH: &str = "dur";
/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 32;

impl Grammar for Fastprogress {
    fn name(&self) -> &'static str {
        "fastai"
    }

    fn is_of_bars(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str, end: End, draft: &mut Draft) -> Reading {
        if line.ends_with(']') && line.contains("| ") {
            return self.frame(line, draft);
        }
        if end == End::Flush {
            return Reading::Foreign;
        }
        // `epoch 1: train_loss 0.5` is not a header.
        let has_mark = || memchr::memchr3(b':', b',', b'=', line.as_bytes()).is_some();
        if line.starts_with("epoch ") && !has_mark() && line.contains(LOSS) {
            let columns: Vec<_> =
                line.split_whitespace().take(MAX_COLUMNS).map(str::to_owned).collect();
            let is_header = columns.iter().any(|column| column == LOSS)
                && columns.iter().all(|column| column != OF_SKORCH)
                && !columns.iter().any(|column| scan::number(column).is_some());
            if is_header {
                self.columns = columns;
                return Reading::Known;
            }
        }
        Reading::from_found(self.row(line), draft, Reading::Foreign)
    }
}

impl Fastprogress {
    /// `Epoch 1/2 : |████----| 40.00% [2/5 00:00<00:00 0.5123]`: the number at the end is the
    /// smoothed loss. A second bar in an epoch belongs to the validation and shows the same number.
    fn frame(&mut self, line: &str, draft: &mut Draft) -> Reading {
        let Some((epochs, frame)) = frame(line) else { return Reading::Foreign };
        let (epoch, step) = (epochs.map_or(0, |(epoch, _)| epoch), frame.step);
        let (validation, again) = match self.last {
            Some((last, at, validation)) if last == epoch => (validation || step < at, step == at),
            _ => (false, false),
        };
        self.last = Some((epoch, step, validation));
        let Some(value) = frame.loss.filter(|_| !validation && !again) else {
            return Reading::Known;
        };
        let loss =
            Loss { name: "loss".to_owned(), phase: Phase::Train, span: Span::Interval, value };
        draft.found = Observation {
            step: Some(step),
            step_in_epoch: true,
            total_steps: frame.total,
            epoch: u32::try_from(epoch).ok().filter(|epoch| *epoch > 0).map(f64::from),
            total_epochs: epochs.map(|(_, epochs)| epochs),
            losses: vec![loss],
            ..Observation::default()
        };
        Reading::Says
    }

    fn row(&mut self, line: &str) -> Option<Observation> {
        if self.columns.is_empty() || !line.as_bytes().first()?.is_ascii_digit() {
            return None;
        }
        let mut cells: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS + 1).collect();
        // Version 0 has the time behind the columns: `(00:13)`.
        if cells.len() == self.columns.len() + 1 {
            cells.pop_if(|last| last.starts_with('(') && last.ends_with(')') && last.contains(':'));
        }
        if cells.len() != self.columns.len() {
            return None;
        }
        let mut draft = Draft::default();
        for (column, cell) in self.columns.iter().zip(cells) {
            let field = self.keys.field(column);
            if let (Field::Loss { .. } | Field::Epoch, Some(value)) = (field, scan::whole(cell)) {
                self.keys.put(column, value, &mut draft);
            }
        }
        let mut found = draft.found;
        // The table counts from 0, the bars from 1.
        let of_bars = self.last.and_then(|(epoch, ..)| u32::try_from(epoch).ok());
        found.epoch = of_bars.filter(|epoch| *epoch > 0).map(f64::from).or(found.epoch);
        found.losses.iter_mut().for_each(|loss| loss.span = Span::Epoch);
        main_loss_first(&mut found.losses);
        (!found.losses.is_empty()).then_some(found)
    }
}

struct Frame {
    step: u64,
    total: Option<u64>,
    loss: Option<f64>,
}

/// The epoch and the number of epochs, and the rest of a frame.
fn frame(line: &str) -> Option<(Option<(u64, u64)>, Frame)> {
    let (before, rest) = line.split_once('|')?;
    let (_, rest) = rest.split_once("| ")?;
    let (percent, rest) = rest.split_once("% [")?;
    scan::whole(percent)?;
    let inside = rest.strip_suffix(']')?;
    let (step, inside) = scan::count(inside)?;
    let (total, inside) = scan::count(inside.strip_prefix('/')?)?;
    let mut words = inside.split_whitespace();
    words.next().filter(|times| times.contains('<'))?;
    let loss = words.next().and_then(scan::whole);
    let epochs = before.trim().strip_prefix("Epoch ").and_then(|text| {
        let (epoch, rest) = scan::count(text)?;
        let (epochs, _) = scan::count(rest.strip_prefix('/')?)?;
        Some((epoch, epochs))
    });
    Some((epochs, Frame { step, total: Some(total), loss }))
}

#[cfg(test)]
mod tests;
