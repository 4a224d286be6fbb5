//! Text for people: sentences in lines that fit, and tables, for a terminal or as Markdown.

pub(crate) mod blocks;
pub(crate) mod wrap;

/// What a figure is, with its unit if it has one.
pub(crate) fn titled(title: &str, unit: &str) -> String {
    if unit == "-" { title.to_owned() } else { format!("{title} [{unit}]") }
}
