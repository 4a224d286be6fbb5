//! Headings, text and tables, as Markdown or for a terminal.

use unicode_width::UnicodeWidthStr;

use super::wrap::wrap;

/// Between two columns on a terminal.
const GAP: usize = 2;

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// A heading of this level, from 1.
    Heading(usize, String),
    /// Sentences.
    Text(String),
    /// A numbered remark.
    Remark(usize, String),
    /// A picture by its title and its path; a terminal shows the title only.
    Picture(String, String),
    /// A table; its first columns are text, the others figures.
    Table(Table),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// How many columns are text.
    pub(crate) words: usize,
}

pub(crate) fn markdown(blocks: &[Block]) -> String {
    let parts = blocks.iter().map(|block| match block {
        Block::Heading(rank, title) => format!("{} {title}\n", "#".repeat(*rank)),
        Block::Text(text) => wrap(text, "", ""),
        Block::Remark(number, text) => wrap(text, &format!("{number}. "), "   "),
        Block::Picture(title, path) => format!("![{title}]({path})\n"),
        Block::Table(table) => table.markdown(),
    });
    join(blocks, parts)
}

pub(crate) fn terminal(blocks: &[Block]) -> String {
    let parts = blocks.iter().map(|block| match block {
        Block::Heading(_, title) | Block::Picture(title, _) => format!("{title}\n"),
        Block::Text(text) => wrap(text, "", ""),
        Block::Remark(number, text) => wrap(text, &format!("{number}. "), "   "),
        Block::Table(table) => table.plain(),
    });
    join(blocks, parts)
}

/// Joins parts with an empty line between them, except between remarks, which form a list.
fn join(blocks: &[Block], parts: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut before: Option<&Block> = None;
    for (block, part) in blocks.iter().zip(parts) {
        let listed = |block: &Block| matches!(block, Block::Remark(..));
        if before.is_some_and(|before| !(listed(before) && listed(block))) {
            text.push('\n');
        }
        text += &part;
        before = Some(block);
    }
    text
}

impl Table {
    /// Splits the table into tables that are at most `width` wide, each with the first `kept` columns.
    pub(crate) fn within(&self, width: usize, kept: usize) -> Vec<Self> {
        let widths = self.widths();
        let taken = |columns: &[usize]| -> usize {
            columns.iter().filter_map(|column| widths.get(*column)).map(|width| width + GAP).sum()
        };
        let kept: Vec<usize> = (0..kept.min(self.head.len())).collect();
        let (mut groups, mut group) = (Vec::new(), kept.clone());
        for column in kept.len()..self.head.len() {
            let more: Vec<usize> = group.iter().copied().chain([column]).collect();
            if group.len() > kept.len() && taken(&more) > width + GAP {
                groups.push(std::mem::replace(&mut group, kept.clone()));
            }
            group.push(column);
        }
        groups.push(group);
        groups.iter().map(|group| self.select(group)).collect()
    }

    fn select(&self, columns: &[usize]) -> Self {
        let row = |row: &Vec<String>| {
            columns.iter().filter_map(|column| row.get(*column).cloned()).collect()
        };
        Self { head: row(&self.head), rows: self.rows.iter().map(row).collect(), words: self.words }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let head = self.head.get(column);
            cells.chain(head).map(|cell| cell.width()).max().unwrap_or(0).max(3)
        };
        (0..self.head.len()).map(width).collect()
    }

    fn lines(&self, between: &str) -> Vec<String> {
        let widths = self.widths();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                let room = " ".repeat(width.saturating_sub(cell.width()));
                if column < self.words { format!("{cell}{room}") } else { format!("{room}{cell}") }
            });
            cells.collect::<Vec<String>>().join(between)
        };
        std::iter::once(&self.head).chain(&self.rows).map(line).collect()
    }

    fn markdown(&self) -> String {
        let rule = self.widths().into_iter().enumerate().map(|(column, width)| {
            if column < self.words {
                "-".repeat(width)
            } else {
                format!("{}:", "-".repeat(width - 1))
            }
        });
        let rule = rule.collect::<Vec<String>>().join(" | ");
        let mut lines = self.lines(" | ");
        lines.insert(1.min(lines.len()), rule);
        ended(lines.iter().map(|line| format!("| {line} |")))
    }

    fn plain(&self) -> String {
        ended(self.lines(&" ".repeat(GAP)).iter().map(|line| line.trim_end().to_owned()))
    }
}

/// Joins lines, each with a newline at its end.
fn ended(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::wrap::WIDTH;
    use super::*;

    #[test]
    fn table_aligns_text_left_and_figures_right() {
        let cells = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = vec![cells(&["flowcon†", "1.5"]), cells(&["none", "12.25"])];
        let table = Table { head: cells(&["policy", "ρ"]), rows, words: 1 };
        let blocks = [Block::Heading(2, "A".to_owned()), Block::Table(table)];
        let text = "## A\n\n| policy   |     ρ |\n| -------- | ----: |\n\
                    | flowcon† |   1.5 |\n| none     | 12.25 |\n";
        assert_eq!(markdown(&blocks), text);
        let plain = "A\n\npolicy        ρ\nflowcon†    1.5\nnone      12.25\n";
        assert_eq!(terminal(&blocks), plain);
    }

    #[test]
    fn wide_table_is_split_without_losing_a_column() {
        let cells = |row: u32| (0..12).map(|column| format!("cell {row} {column}")).collect();
        let table = Table { head: cells(0), rows: vec![cells(1), cells(2)], words: 1 };
        let parts = table.within(40, 1);
        let text = terminal(&parts.iter().cloned().map(Block::Table).collect::<Vec<_>>());
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(parts.len() > 1 && parts.iter().all(|part| part.head[0] == "cell 0 0"), "{text}");
        let columns: usize = parts.iter().map(|part| part.head.len() - 1).sum();
        assert_eq!(columns, 11);
        assert_eq!(table.within(1000, 1), [table]);
    }

    #[test]
    fn sentences_fit_the_page_and_remarks_are_one_list() {
        let long = "a word ".repeat(40);
        let blocks =
            [Block::Text(long.clone()), Block::Remark(1, long), Block::Remark(2, "b".into())];
        let text = markdown(&blocks);
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert!(text.contains("\n\n1. a word") && text.ends_with("\n2. b\n"), "{text}");
    }
}
