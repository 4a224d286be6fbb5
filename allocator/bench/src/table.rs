//! The findings as text on the terminal.

use std::io::{self, Write};

use super::grid::{self, Grid};
use super::outcome::{Findings, Regression};
use super::remarks::remarks;
use crate::text::blocks::{Block, terminal};
use crate::text::wrap::{WIDTH, wrap};

/// Prints the tables, explanations and remarks.
pub(crate) fn print(findings: &Findings, to: &mut impl Write) -> io::Result<()> {
    let mut grids = grid::jobs(findings);
    grids.push(grid::figures(findings));
    grids.extend(grid::fidelity(findings));
    grids.extend(grid::claims(findings));
    for grid in grids {
        write!(to, "{}\n\n{}", grid.title, text(&grid))?;
        for note in &grid.notes {
            write!(to, "{}", wrap(note, "", "  "))?;
        }
        writeln!(to)?;
    }
    for regression in findings.arms.iter().filter_map(|arm| arm.regression.as_ref()) {
        writeln!(to, "{}", explanation(regression))?;
    }
    for remark in remarks(findings) {
        write!(to, "{}", wrap(&remark, "", "  "))?;
    }
    Ok(())
}

/// The grid, split into tables that fit on the terminal.
fn text(grid: &Grid) -> String {
    let parts = grid.table().within(WIDTH, grid.words);
    terminal(&parts.into_iter().map(Block::Table).collect::<Vec<_>>())
}

fn explanation(regression: &Regression) -> String {
    let lines = regression.sentences.iter().map(|sentence| wrap(sentence, "  ", "    "));
    wrap(&regression.symptom, "", "  ") + &lines.collect::<String>()
}

#[cfg(test)]
mod tests;
