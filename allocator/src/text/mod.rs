//! Text for people: sentences in lines that fit, and tables, for a terminal or as Markdown.

pub(crate) mod blocks;
pub(crate) mod wrap;
