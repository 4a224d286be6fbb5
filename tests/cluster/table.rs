//! Plain tables.

use std::io::Write;

use paceline_api::table::Table;

/// Prints a line as it is.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}

/// Prints rows under a head: the first column is text, the others are figures.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let table = Table::new(1, head.iter().copied(), rows.to_vec());
    table.listing().lines().try_for_each(say)
}
