//! Plain tables.

use std::io::Write;

/// Prints a line as it is.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}

/// Prints rows under a head: the first column left-aligned, the others right-aligned.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let width = |at: usize| {
        let cells = std::iter::once(&head).chain(rows).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("{cell:<0$}", width(at)),
            _ => format!("{cell:>0$}", width(at)),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    let first = line(&head);
    say(&first)?;
    say(&"-".repeat(first.chars().count()))?;
    rows.iter().try_for_each(|row| say(line(row).trim_end()))
}
