//! Tables: a header with the names of columns, then rows of numbers. spaCy, skorch, scikit-learn,
//! Chainer, and tables between bars.

mod parted;
mod rows;

use paceline_lines::observation::{Phase, Span};
use paceline_lines::scan;

use super::draft::Draft;
use super::key_value::abbreviated;
use super::keys::{Field, Keys, main_loss_first, put, put_text};
use parted::{Parted, inside, pieces};
use rows::{Rows, data_of};

/// The current table.
#[derive(Debug, Default)]
pub(super) struct Columns {
    keys: Keys,
    header: Vec<(String, Field)>,
    /// Where each name begins and ends in the header.
    places: Vec<(usize, usize)>,
    /// The row above, between bars, which may be the first row of a header.
    above: Vec<String>,
    parted: Parted,
    /// Lines since the last row.
    idle: u32,
    /// The table stands below a heading that says that it is of held-out data.
    pub(super) held_out: bool,
    /// Its loss is under `total`.
    has_total: bool,
    /// A cell in brackets, which belongs to no column, is before the first one.
    bracketed: bool,
    rows: Rows,
}

/// The characters that part the columns of a table with bars.
pub(super) const BARS: [char; 3] = ['|', '\u{2502}', '\u{2503}'];
/// Names of counters in tables alone.
const STEPS: [&str; 5] = ["itn", "n_trees", "number_of_trees", "number of trees", "trees"];
/// Names of columns that have no other meaning here.
const COLUMNS: [&str; 6] = ["lr", "time", "acc", "accuracy", "ppl", "perplexity"];
/// Maximum number of columns.
const MAX_COLUMNS: usize = 32;
/// Maximum number of digits in the names of a header, such as `top1`.
const MAX_DIGITS: usize = 8;
/// Maximum length of a column's name in bytes.
const MAX_NAME: usize = 40;
/// Maximum number of cells of a header above the name of the data.
const MAX_LABELS: usize = 2;
/// Minimum number of cells of a row that has empty ones.
const MIN_PLACED: usize = 3;
/// Maximum number of characters by which longer cells move those behind them.
const MAX_MOVE: usize = 4;
/// Lines without a row after which the table has ended.
const MAX_IDLE: u32 = 200;

impl Columns {
    /// Whether the rows of the table are those of data sets, without a counter.
    pub(super) fn is_of_data(&self) -> bool {
        self.is_active() && self.rows == Rows::OfData
    }

    /// Whether a table has begun.
    pub(super) fn is_active(&self) -> bool {
        !self.header.is_empty()
    }

    /// Takes a line that mentions a loss. Returns whether it is the header of a table. `is_first`: no loss has been
    /// read so far.
    pub(super) fn header(&mut self, line: &str, is_first: bool) -> bool {
        let may_be_plain = is_first && line.contains('\t') && !line.contains("  ");
        let line = line.strip_prefix("# ").unwrap_or(line);
        let (line, bracketed) = match rows::behind_brackets(line) {
            Some((inside, line)) if !inside.contains(char::is_alphanumeric) => (line, true),
            _ => (line, false),
        };
        if !self.is_header(line, may_be_plain) {
            return false;
        }
        self.bracketed = bracketed;
        true
    }

    /// Takes a line without what may be before its columns. Returns whether it is the header of a table. `may_be_plain`:
    /// the table may count nothing.
    fn is_header(&mut self, line: &str, may_be_plain: bool) -> bool {
        // A line of numbers is not a header.
        if line.bytes().filter(u8::is_ascii_digit).count() > MAX_DIGITS {
            return false;
        }
        let parted = Parted::of(line);
        let above = std::mem::take(&mut self.above);
        if self.names(&parted.names(line), above, parted, may_be_plain) {
            return true;
        }
        // Some columns are only one space apart.
        if parted != Parted::Gaps || !(line.contains("  ") || self.counts_first(line)) {
            return false;
        }
        self.names(&pieces(line, false), Vec::new(), parted, false)
    }

    /// Whether a line has names of columns alone, first that of a counter: `epoch loss lr`. A sentence may
    /// begin like that, so each word must be a name, and a table in use stays.
    fn counts_first(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let counts_first = words.next().is_some_and(|first| counts(&self.field(first)));
        counts_first && !self.is_active() && words.all(|word| self.is_column(word))
    }

    /// Whether a word of a line is the name of a column.
    fn is_column(&mut self, word: &str) -> bool {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/');
        let is_known = COLUMNS.iter().any(|known| word.eq_ignore_ascii_case(known));
        let field = self.field(word);
        word.chars().all(is_name)
            && (is_known
                || word.contains(['_', '/'])
                || counts(&field)
                || matches!(field, Field::Loss { .. } | Field::BatchTime(_) | Field::BatchRate))
    }

    /// Takes the names of columns, each with the place where it begins. Returns whether they are
    /// those of a table with losses. `above`: the cells of the row above, which may belong to them.
    fn names(
        &mut self,
        cells: &[(usize, &str)],
        above: Vec<String>,
        parted: Parted,
        may_be_plain: bool,
    ) -> bool {
        let is_name = |(_, cell): &(usize, &str)| {
            cell.len() <= MAX_NAME
                && !cell.contains(['=', ',', '{'])
                && !cell.contains(": ")
                && !cell.split(' ').any(|word| scan::number(word).is_some())
        };
        if !(2..=MAX_COLUMNS).contains(&cells.len()) || !cells.iter().all(is_name) {
            return false;
        }
        let places = cells.iter().map(|(at, cell)| (*at, at + cell.len())).collect();
        let mut names: Vec<String> = cells.iter().map(|(_, cell)| (*cell).to_owned()).collect();
        let is_of_values = above.iter().any(|cell| scan::whole(cell).is_some());
        if above.len() == names.len() && !is_of_values {
            for (name, above) in names.iter_mut().zip(above) {
                format!("{above} {name}").trim().clone_into(name);
            }
        }
        let mut columns: Vec<_> = names
            .into_iter()
            .map(|name| {
                let field = self.field(&name);
                (name, field)
            })
            .collect();
        let has_total = name_total(&mut columns);
        let has = |wanted: fn(&Field) -> bool| columns.iter().any(|(_, field)| wanted(field));
        let has_loss = has(|field| matches!(field, Field::Loss { .. }));
        let rows = if has(counts) { Some(Rows::Counted) } else { Rows::of(parted, &columns) };
        let is_plain = |rows: &Rows| *rows != Rows::Plain || may_be_plain;
        let Some(rows) = rows.filter(|rows| has_loss && is_plain(rows)) else { return false };
        (self.header, self.places, self.parted, self.idle) = (columns, places, parted, 0);
        (self.has_total, self.rows) = (has_total, rows);
        true
    }

    /// Takes another line. Returns whether it is a row, whose values are then in `draft`.
    pub(super) fn row(&mut self, line: &str, draft: &mut Draft) -> bool {
        if line.starts_with(BARS) {
            let names = Parted::Bars.names(line).into_iter();
            self.above = names.map(|(_, name)| name.to_owned()).collect();
        }
        if self.header.is_empty() {
            return false;
        }
        let line = match rows::behind_brackets(line) {
            Some((_, line)) if self.bracketed => line,
            _ => line,
        };
        self.idle += 1;
        if self.idle > MAX_IDLE {
            self.header.clear();
        }
        let of_data = self.header.first().is_some_and(|(_, field)| *field == Field::Data)
            || self.rows == Rows::OfData;
        if !of_data && !line.starts_with(|c: char| c.is_ascii_digit() || BARS.contains(&c)) {
            return self.labelled(line, draft);
        }
        let Some(cells) = self.cells(line) else { return false };
        // Rows of another matrix, such as counts of right answers.
        let is_count = |cell: &&str| cell.bytes().all(|byte| byte.is_ascii_digit());
        if self.parted == Parted::Gaps && cells.iter().all(is_count) {
            return false;
        }
        let between_tabs = || line.bytes().filter(|byte| *byte == b'\t').count() + 1;
        if self.rows == Rows::Plain && between_tabs() != cells.len() {
            return false;
        }
        if self.has_total && !self.is_sum(&cells) {
            return false;
        }
        if self.rows != Rows::Counted {
            let first = usize::from(self.rows != Rows::Plain);
            let numbers = cells.get(first..).unwrap_or_default();
            if !numbers.iter().all(|cell| self.value(cell).is_some()) {
                return false;
            }
        }
        if self.rows == Rows::OfData {
            let Some(phase) = cells.first().and_then(|cell| data_of(cell)) else { return false };
            draft.data = Some(phase).filter(|phase| *phase != Phase::Train);
        }
        self.put(&self.header, cells, draft);
        self.ends(draft)
    }

    /// Takes a row that begins with the name of its data: `! Validation  1  0.5`. The header has other cells above
    /// that, so that the columns are counted from the last one. Returns whether it is such a row.
    fn labelled(&mut self, line: &str, draft: &mut Draft) -> bool {
        if self.parted != Parted::Gaps || self.rows != Rows::Counted {
            return false;
        }
        let Some((label, numbers)) = rows::label(line) else { return false };
        let Some(phase) = data_of(label) else { return false };
        let cells: Vec<_> = pieces(numbers, false).into_iter().map(|(_, cell)| cell).collect();
        let before = self.header.len().checked_sub(cells.len());
        let Some(before) = before.filter(|before| (1..=MAX_LABELS).contains(before)) else {
            return false;
        };
        let Some(columns) = self.header.get(before..) else { return false };
        let is_counted = columns.first().is_some_and(|(_, field)| counts(field));
        if !is_counted || cells.iter().any(|cell| scan::whole(cell).is_none()) {
            return false;
        }
        draft.data = Some(phase).filter(|phase| *phase != Phase::Train);
        self.put(columns, cells, draft);
        self.ends(draft)
    }

    /// Writes the values of the cells below `columns` into `draft`.
    fn put(&self, columns: &[(String, Field)], cells: Vec<&str>, draft: &mut Draft) {
        let counts_steps = columns.iter().any(|(_, field)| counts(field) && *field != Field::Epoch);
        let is_of_steps = counts_steps || matches!(self.rows, Rows::Timed | Rows::Plain);
        let usual = if is_of_steps { Span::Step } else { Span::Epoch };
        for ((name, field), cell) in columns.iter().zip(cells) {
            let Some(value) = self.value(cell).or_else(|| self.sum(cell)) else {
                self.text(*field, cell, draft);
                continue;
            };
            if let Field::Loss { phase, span } = *field {
                let usual = if phase == Phase::Train { usual } else { Span::Epoch };
                draft.push(name, phase, span.unwrap_or(usual), value);
            } else if counts(field)
                || matches!(field, Field::BatchTime(_) | Field::BatchRate | Field::Elapsed)
            {
                put(*field, name, value, draft);
            }
        }
    }

    /// Completes the values of a row. Returns whether it is one.
    fn ends(&mut self, draft: &mut Draft) -> bool {
        draft.settle_data();
        let found = &mut draft.found;
        abbreviated(&mut found.losses);
        main_loss_first(&mut found.losses);
        let is_counted =
            self.rows != Rows::Counted || found.step.is_some() || found.epoch.is_some();
        let is_row = !found.losses.is_empty() && is_counted;
        if is_row {
            self.idle = 0;
        } else {
            draft.clear();
        }
        is_row
    }

    /// Takes a cell without a value. That of a counter may have its total: `5/90`. Without the total of the
    /// epochs beside them, two numbers under `batch` may be sizes.
    fn text(&self, field: Field, cell: &str, draft: &mut Draft) {
        let is_step =
            |(_, field): &(String, Field)| matches!(field, Field::Step | Field::GlobalStep);
        let counts = draft.found.total_epochs.is_some() && !self.header.iter().any(is_step);
        if matches!(field, Field::Data | Field::Flag(_) | Field::Epoch) {
            put_text(field, cell, draft);
        } else if field == Field::Batch && counts {
            put_text(Field::StepOf, cell, draft);
            draft.found.step_in_epoch = draft.found.step.is_some();
        }
    }

    /// Whether the total of a row is that of its parts, and not one of objects or of time. A sum of counts
    /// has no fraction.
    fn is_sum(&self, cells: &[&str]) -> bool {
        let (mut parts, mut total, mut has_fraction) = (0.0, f64::NAN, false);
        for ((name, _), cell) in self.header.iter().zip(cells) {
            let Some(value) = scan::whole(cell) else { continue };
            if name == TOTAL {
                total = value;
            } else if PARTS.iter().chain(&SIDES).any(|part| name == part) {
                parts += value;
            } else {
                continue;
            }
            has_fraction |= cell.contains('.');
        }
        // A total that is not finite has such a part.
        let is_lost = !total.is_finite() && !parts.is_finite();
        is_lost || (has_fraction && (total - parts).abs() <= MAX_ROUNDING * total.abs())
    }

    /// The sum of a list of parts: `[0.25, 0.5]`. Lists between bars have other meanings, too.
    fn sum(&self, cell: &str) -> Option<f64> {
        let inside = cell.strip_prefix('[')?.strip_suffix(']')?;
        let is_of_parts = self.parted == Parted::Gaps;
        inside.split(',').map(scan::whole).sum::<Option<f64>>().filter(|_| is_of_parts)
    }

    /// The value of a cell.
    fn value(&self, cell: &str) -> Option<f64> {
        let with_comma = || scan::whole(&cell.replace(',', "."));
        match self.parted {
            Parted::Semicolons => with_comma(),
            Parted::Bars | Parted::Commas | Parted::Gaps => scan::whole(cell),
        }
    }

    /// The cells of a row, as many as there are columns. Below a name for a time, the stamp may be gone with the
    /// prefix of a logger.
    fn cells<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let has_stamp = self.header.first().is_some_and(|(_, field)| *field == Field::At);
        self.cells_of(line, self.header.len()).or_else(|| {
            let mut cells = self.cells_of(line, self.header.len().checked_sub(1)?)?;
            cells.insert(0, "");
            Some(cells).filter(|_| has_stamp)
        })
    }

    /// So many cells of a row.
    fn cells_of<'a>(&self, line: &'a str, count: usize) -> Option<Vec<&'a str>> {
        let fits = |cells: &Vec<&str>| cells.len() == count;
        let most = MAX_COLUMNS + 1;
        match self.parted {
            Parted::Bars => {
                Some(inside(line).split(BARS).take(most).map(str::trim).collect()).filter(fits)
            }
            Parted::Commas => {
                Some(line.split(',').take(most).map(str::trim).collect()).filter(fits)
            }
            Parted::Semicolons => {
                Some(line.split(';').take(most).map(str::trim).collect()).filter(fits)
            }
            Parted::Gaps => {
                let tabs = || line.split('\t').take(most).map(str::trim).collect();
                let parts =
                    |is_wide| pieces(line, is_wide).into_iter().map(|(_, cell)| cell).collect();
                Some(parts(false))
                    .filter(fits)
                    .or_else(|| Some(tabs()).filter(fits))
                    .or_else(|| Some(parts(true)).filter(fits))
                    .or_else(|| self.placed(line).filter(fits))
            }
        }
    }

    /// The cells of a row of which some are empty: each other one begins or ends where the name of
    /// its column does. A cell that is longer than its column moves those behind it.
    fn placed<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let pieces = pieces(line, false);
        if !(MIN_PLACED..self.header.len()).contains(&pieces.len()) {
            return None;
        }
        let (_, first_name) = *self.places.first()?;
        let (at, first) = pieces.first()?;
        let first_end = at + first.len();
        let place = |place: fn(&(usize, usize)) -> usize, at: usize| {
            self.places.iter().position(|known| place(known) == at)
        };
        let by_start = pieces.iter().map(|(at, _)| place(|(start, _)| *start, *at));
        let by_end = pieces.iter().map(|(at, cell)| {
            let end = (at + cell.len() + first_name).checked_sub(first_end)?;
            place(|(_, end)| *end, end)
        });
        let moved = pieces.iter().map(|(at, _)| {
            self.places.iter().rposition(|(start, _)| *start <= *at && *at - start <= MAX_MOVE)
        });
        let columns: Vec<usize> = by_start
            .collect::<Option<_>>()
            .or_else(|| by_end.collect::<Option<_>>())
            .or_else(|| moved.collect::<Option<_>>())
            .filter(|columns: &Vec<_>| columns.is_sorted_by(|left, right| left < right))?;
        let mut cells = vec![""; self.header.len()];
        for (column, (_, cell)) in columns.into_iter().zip(pieces) {
            if let Some(place) = cells.get_mut(column) {
                *place = cell;
            }
        }
        Some(cells)
    }

    fn field(&mut self, name: &str) -> Field {
        match name {
            // spaCy's names.
            "E" => Field::Epoch,
            "#" => Field::Step,
            _ if STEPS.iter().any(|step| name.eq_ignore_ascii_case(step)) => Field::Step,
            // fast.ai's course has rows of both: `True` for the training.
            "train" | "Train" => Field::Flag(false),
            _ => self.keys.field(name),
        }
    }
}

/// Whether a line may be the header of a table whose loss is under `total`.
pub(super) fn may_have_total(line: &str) -> bool {
    line.starts_with(['E', 'e']) && line.contains("  ") && line.contains(TOTAL)
}

/// The sum of the parts of a detector's loss.
const TOTAL: &str = "total";
/// Further parts, whose names alone may be those of anything.
const SIDES: [&str; 4] = ["x", "y", "w", "h"];
/// Names of these parts.
const PARTS: [&str; 8] = ["box", "cls", "conf", "giou", "iou", "obj", "wh", "xy"];

/// How much of a total may be lost by rounding its parts.
const MAX_ROUNDING: f64 = 0.02;

/// Makes the total of some parts of a loss the loss of a table that has no other. Returns whether it did.
fn name_total(columns: &mut [(String, Field)]) -> bool {
    let is_part = |(name, _): &&(String, Field)| PARTS.contains(&name.as_str());
    let parts = columns.iter().filter(is_part).count();
    if parts < 2 || columns.iter().any(|(_, field)| matches!(field, Field::Loss { .. })) {
        return false;
    }
    let total = columns.iter_mut().find(|(name, _)| name == TOTAL);
    total.is_some_and(|(_, field)| {
        *field = Field::Loss { phase: Phase::Train, span: None };
        true
    })
}

fn counts(field: &Field) -> bool {
    matches!(field, Field::Epoch | Field::Step | Field::GlobalStep | Field::Batch)
}

#[cfg(test)]
mod tests;
