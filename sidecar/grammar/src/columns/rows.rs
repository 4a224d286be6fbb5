//! What the rows of a table are: steps, moments, or data sets.

use paceline_lines::names;
use paceline_lines::observation::{Phase, Span};

use super::Parted;
use crate::keys::Field;

/// What a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rows {
    /// A step or an epoch, which one of its cells counts.
    #[default]
    Counted,
    /// A moment of the training, by its time in the first cell.
    Timed,
    /// A moment of the training, of which nothing is counted: numbers between tabs alone.
    Plain,
    /// A data set, by its name in the first cell. The epoch is in a heading.
    OfData,
}

/// Names of the first column of a list that begins with a time.
const TIMES: [&str; 6] = ["date", "datetime", "elapsed", "elapsed time", "wall time", "seconds"];

/// Names of the loss in a table without a counter.
const MAIN: [&str; 6] =
    ["train loss", "Train loss", "Train Loss", "training loss", "Training loss", "Training Loss"];
/// Minimum number of columns of such a table.
const MIN_PLAIN: usize = 3;

impl Rows {
    /// The rows of a table without a counter, if it is one of a training.
    pub(super) fn of(parted: Parted, columns: &[(String, Field)]) -> Option<Self> {
        let ((name, field), others) = columns.split_first()?;
        let is_time = || TIMES.iter().any(|time| name.eq_ignore_ascii_case(time));
        if matches!(parted, Parted::Commas | Parted::Semicolons) {
            return (*field == Field::At || is_time()).then_some(Self::Timed);
        }
        let is_plain = |(_, field): &(String, Field)| {
            matches!(field, Field::Loss { phase: Phase::Train, span: None | Some(Span::Step) })
        };
        if parted == Parted::Gaps {
            let is_main = |(name, _): &(String, Field)| MAIN.contains(&name.as_str());
            return (columns.len() >= MIN_PLAIN && columns.iter().any(is_main))
                .then_some(Self::Plain);
        }
        let is_of_data = parted == Parted::Bars
            && !matches!(field, Field::Loss { .. })
            && others.iter().all(|(name, _)| !name.is_empty())
            && others.iter().any(is_plain);
        is_of_data.then_some(Self::OfData)
    }
}

/// The data that a cell names.
pub(super) fn data_of(cell: &str) -> Option<Phase> {
    let is_train = ["train", "training"].iter().any(|train| cell.eq_ignore_ascii_case(train));
    if is_train { Some(Phase::Train) } else { names::held_out_by(cell) }
}

/// A cell in brackets before the others, and the text behind it.
pub(super) fn behind_brackets(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((inside, rest.trim_start())).filter(|(_, rest)| !rest.is_empty())
}

/// The words before the numbers of a row, and the rest: `! Validation  1  0.5`.
pub(super) fn label(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("! ").unwrap_or(line).trim_start();
    let start = line.find(|c: char| c.is_ascii_digit())?;
    let (label, numbers) = line.split_at_checked(start)?;
    let is_word = |c: char| c.is_ascii_alphabetic() || c == ' ';
    let label = Some(label).filter(|label| label.ends_with(' ') && label.chars().all(is_word))?;
    Some((label.trim_end(), numbers)).filter(|(label, _)| !label.is_empty())
}
