//! Text for people: wrapped lines and tables, for a terminal or as Markdown.

pub(crate) mod blocks;
pub(crate) mod wrap;

/// A figure's title, with its unit if it has one.
pub(crate) fn titled(title: &str, unit: &str) -> String {
    if unit == "-" { title.to_owned() } else { format!("{title} [{unit}]") }
}
