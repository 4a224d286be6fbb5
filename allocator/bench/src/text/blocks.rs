//! Headings, text and tables, as Markdown or for a terminal.

use paceline_api::table::Table;

use super::wrap::wrap;

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
    /// A table.
    Table(Table),
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
        Block::Table(table) => table.terminal(),
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

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::super::wrap::WIDTH;
    use super::*;

    #[test]
    fn table_follows_its_heading() {
        let table = Table::new(1, ["policy", "ρ"], vec![vec!["none".to_owned(), "1.5".to_owned()]]);
        let blocks = [Block::Heading(2, "A".to_owned()), Block::Table(table)];
        let text = "## A\n\n| policy |   ρ |\n| ------ | --: |\n| none   | 1.5 |\n";
        assert_eq!(markdown(&blocks), text);
        assert_eq!(terminal(&blocks), "A\n\npolicy    ρ\nnone    1.5\n");
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
