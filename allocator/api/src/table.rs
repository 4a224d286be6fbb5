//! Tables of text and figures, for a terminal and as Markdown.
//!
//! Cells are printed as they are: text from jobs and containers passes through
//! [`plain`](crate::plain::plain) or [`fit`](crate::plain::fit) before.

use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, TableStyle, Width};
use unicode_width::UnicodeWidthStr;

/// Between two columns of a table in a report.
const GAP: u16 = 2;
/// The least width of a column in Markdown: that of a rule with its colon.
const LEAST: usize = 3;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What is above it.
    pub title: String,
    /// Text is aligned left, figures right.
    pub is_text: bool,
    /// Its width, if that does not depend on the cells, which must fit it.
    pub width: Option<u16>,
}

impl Column {
    /// A column of text.
    pub fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_text: true, width: None }
    }

    /// A column of figures.
    pub fn figures(title: impl Into<String>) -> Self {
        Self { is_text: false, ..Self::text(title) }
    }

    /// The same column with a fixed width.
    #[must_use]
    pub fn wide(self, width: u16) -> Self {
        Self { width: Some(width), ..self }
    }
}

/// Rows of cells below the titles of their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells of each row, one a column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first `words` columns are text, and the others figures.
    pub fn new(
        words: usize,
        titles: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let column = |(at, title)| {
            let figures = Column::figures(title);
            Column { is_text: at < words, ..figures }
        };
        Self { columns: titles.into_iter().enumerate().map(column).collect(), rows }
    }

    /// Splits the table into tables that are at most `width` wide in a report, each with the first `kept`
    /// columns.
    #[must_use]
    pub fn within(&self, width: usize, kept: usize) -> Vec<Self> {
        let widths = self.widths();
        let gap = usize::from(GAP);
        let taken = |columns: &[usize]| -> usize {
            columns.iter().filter_map(|column| widths.get(*column)).map(|width| width + gap).sum()
        };
        let kept: Vec<usize> = (0..kept.min(self.columns.len())).collect();
        let (mut groups, mut group) = (Vec::new(), kept.clone());
        for column in kept.len()..self.columns.len() {
            let more: Vec<usize> = group.iter().copied().chain([column]).collect();
            if group.len() > kept.len() && taken(&more) > width + gap {
                groups.push(std::mem::replace(&mut group, kept.clone()));
            }
            group.push(column);
        }
        groups.push(group);
        groups.iter().map(|group| self.select(group)).collect()
    }

    fn select(&self, columns: &[usize]) -> Self {
        let cells = |row: &Vec<String>| {
            columns.iter().filter_map(|column| row.get(*column).cloned()).collect()
        };
        let chosen = columns.iter().filter_map(|column| self.columns.get(*column).cloned());
        Self { columns: chosen.collect(), rows: self.rows.iter().map(cells).collect() }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let all = cells.chain([&column.title]);
            all.map(|cell| cell.width()).max().unwrap_or(0).max(LEAST)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// The table in a report on a terminal. Each line ends with a newline.
    pub fn terminal(&self) -> String {
        self.drawn(TableStyle::new(), GAP)
    }

    /// The table as a list of what is there now: closer, with a rule below the titles.
    pub fn listing(&self) -> String {
        self.drawn(TableStyle::new().header_separator(LineStyle::none().fill('-')), 1)
    }

    fn drawn(&self, style: TableStyle, gap: u16) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(style);
        table.set_header(self.columns.iter().map(|column| &column.title));
        table.add_rows(&self.rows);
        let last = self.columns.len().saturating_sub(1);
        for (at, (drawn, column)) in table.column_iter_mut().zip(&self.columns).enumerate() {
            let gap = if at < last { gap } else { 0 };
            drawn.set_padding((0, gap));
            drawn.set_cell_alignment(if column.is_text {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            });
            if let Some(width) = column.width {
                drawn.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + gap)));
            }
        }
        table.trim_fmt() + "\n"
    }

    /// The table as Markdown, with columns that are aligned in the text, too.
    pub fn markdown(&self) -> String {
        let widths = self.widths();
        let line = |cells: Vec<&str>| {
            let padded =
                cells.iter().zip(&widths).zip(&self.columns).map(|((cell, width), column)| {
                    let room = " ".repeat(width.saturating_sub(cell.width()));
                    if column.is_text { format!("{cell}{room}") } else { format!("{room}{cell}") }
                });
            format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
        };
        let rules: Vec<String> = self
            .columns
            .iter()
            .zip(&widths)
            .map(
                |(column, width)| {
                    if column.is_text { "-".repeat(*width) } else { "-".repeat(width - 1) + ":" }
                },
            )
            .collect();
        let mut text = line(self.columns.iter().map(|column| column.title.as_str()).collect());
        text += &line(rules.iter().map(String::as_str).collect());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn example() -> Table {
        let rows = vec![cells(&["flowcon†", "1.5"]), cells(&["学", "12.25"])];
        Table::new(1, ["policy", "ρ"], rows)
    }

    #[test]
    fn each_writer_aligns_text_left_and_figures_right() {
        let table = example();
        let markdown = "| policy   |     ρ |\n| -------- | ----: |\n\
                        | flowcon† |   1.5 |\n| 学       | 12.25 |\n";
        assert_eq!(table.markdown(), markdown);
        assert_eq!(table.terminal(), "policy        ρ\nflowcon†    1.5\n学        12.25\n");
        let listing = "policy       ρ\n--------------\nflowcon†   1.5\n学       12.25\n";
        assert_eq!(table.listing(), listing);
    }

    #[test]
    fn fixed_widths_hold_and_text_may_follow_figures() {
        let columns = vec![
            Column::text("job").wide(6),
            Column::figures("use").wide(5),
            Column::text("class").wide(7),
        ];
        let table =
            Table { columns, rows: vec![cells(&["vae", "1", "CL"]), cells(&["a", "", "-"])] };
        let expected =
            "job      use class\n--------------------\nvae        1 CL\na            -\n";
        assert_eq!(table.listing(), expected);
    }

    #[test]
    fn spaces_inside_of_cells_are_kept() {
        let rows = vec![cells(&["a", "1.0 ·"]), cells(&["  b", "-  "]), cells(&["c", "22.0 █"])];
        let text = Table::new(1, ["", "x"], rows).terminal();
        assert_eq!(text, "          x\na     1.0 ·\n  b     -\nc    22.0 █\n");
    }

    #[test]
    fn wide_table_is_split_without_losing_a_column() {
        let row = |row: u32| (0..12).map(|column| format!("cell {row} {column}")).collect();
        let titles: Vec<String> = row(0);
        let table = Table::new(1, titles, vec![row(1), row(2)]);
        let parts = table.within(40, 1);
        for part in &parts {
            assert!(part.terminal().lines().all(|line| line.width() <= 40), "{}", part.terminal());
            assert_eq!(part.columns[0].title, "cell 0 0");
        }
        assert!(parts.len() > 1);
        let columns: usize = parts.iter().map(|part| part.columns.len() - 1).sum();
        assert_eq!(columns, 11);
        assert_eq!(table.within(1000, 1), [table]);
    }
}
