//! The findings on the console.

use std::io::{self, Write};

use super::grid::{self, Grid};
use super::outcome::Findings;
use super::remarks::remarks;
use super::story::Story;
use crate::text::blocks::{Block, terminal};
use crate::text::wrap::{WIDTH, wrap};

/// Prints the tables and what is left to say.
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
    for story in findings.arms.iter().filter_map(|arm| arm.story.as_ref()) {
        writeln!(to, "{}", tale(story))?;
    }
    for remark in remarks(findings) {
        write!(to, "{}", wrap(&remark, "", "  "))?;
    }
    Ok(())
}

/// The grid in as many tables as it takes to fit the console.
fn text(grid: &Grid) -> String {
    let parts = grid.table().within(WIDTH, grid.words);
    terminal(&parts.into_iter().map(Block::Table).collect::<Vec<_>>())
}

fn tale(story: &Story) -> String {
    let lines = story.sentences.iter().map(|sentence| wrap(sentence, "  ", "    "));
    wrap(&story.occasion, "", "  ") + &lines.collect::<String>()
}

#[cfg(test)]
mod tests;
