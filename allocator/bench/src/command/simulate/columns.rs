//! Columns of text side by side.

use paceline_api::table::Table;

use crate::text::wrap::WIDTH;

/// Between two columns.
const GAP: usize = 2;

/// A column's cells; the first is its title.
pub(super) type Column = Vec<String>;

/// Writes blocks of columns: `names`, as many of `columns` as fit, and `last`; then the next block.
pub(super) fn write_blocks(text: &mut String, names: &Column, columns: &[Column], last: &Column) {
    let mut left = columns;
    while let Some(most) = fitting(names, left, last) {
        let (now, rest) = left.split_at(most);
        let mut block = vec![names];
        block.extend(now);
        block.push(last);
        write_block(text, &block);
        left = rest;
    }
}

fn width(column: &[String]) -> usize {
    column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

/// How many of the columns fit beside the names and the bound: at least one; `None` if none is left.
fn fitting(names: &[String], columns: &[Column], bound: &[String]) -> Option<usize> {
    let mut room = WIDTH.saturating_sub(width(names) + GAP + width(bound));
    let fits = columns.iter().take_while(|column| {
        let needed = width(column) + GAP;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    });
    let number = fits.count();
    (!columns.is_empty()).then_some(number.max(1))
}

/// Names to the left, figures to the right of their columns.
pub(super) fn write_block(text: &mut String, columns: &[&Column]) {
    let cell = |column: &Column, row| column.get(row).cloned().unwrap_or_default();
    let cells = |row| columns.iter().map(|column| cell(column, row)).collect();
    let rows = columns.first().map_or(0, |column| column.len());
    let table =
        Table::new(1, columns.iter().map(|column| cell(column, 0)), (1..rows).map(cells).collect());
    text.push_str(&table.terminal());
    text.push('\n');
}
