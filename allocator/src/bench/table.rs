//! The figures on the console.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::grid::{Cell, Grid, grids, remarks};
use super::outcome::Findings;

/// Wide enough for four policies, narrow enough for most terminals.
const WIDTH: u16 = 100;

/// A rule under the head, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('-', '-', '-', '-'));

/// Prints the tables and what is left to say.
pub(crate) fn print(findings: &Findings, to: &mut impl Write) -> io::Result<()> {
    for grid in grids(findings) {
        writeln!(to, "{}\n{}\n", grid.title, text(&grid))?;
    }
    for remark in remarks(findings) {
        writeln!(to, "{remark}")?;
    }
    Ok(())
}

fn text(grid: &Grid) -> String {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(&grid.head)
        .add_rows(grid.jobs.iter().map(|row| row.iter().map(Cell::text)));
    if !grid.totals.is_empty() {
        table.add_row([""]).add_rows(grid.totals.iter().map(|row| row.iter().map(Cell::text)));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::super::containers::LimitLeft;
    use super::super::outcome::example::example;
    use super::*;

    fn printed(findings: &Findings) -> String {
        let mut text = Vec::new();
        print(findings, &mut text).expect("memory takes it");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn each_policy_has_its_column_and_each_job_its_row() {
        let (findings, _) = example(&["none", "flowcon"], &["a", "b"]);
        let text = printed(&findings);
        let row = text.lines().find(|line| line.trim_start().starts_with("b ")).expect("a row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["b", "0", "s", "30.0", "s", "30.0", "s", "(+0.0", "%)"]);
        assert!(text.contains("limits: every limit was put back"), "{text}");
    }

    #[test]
    fn many_policies_stay_within_the_width() {
        let policies = ["none", "flowcon", "third", "fourth", "fifth", "sixth", "seventh"];
        let (findings, _) = example(&policies, &["a-rather-long-name-of-a-job", "b"]);
        let text = printed(&findings);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|width| width <= 100), "{text}");
        assert!(text.contains("seventh"), "{text}");
    }

    #[test]
    fn failures_and_limits_left_are_shown() {
        let (mut findings, _) = example(&["none"], &["a"]);
        findings.arms[0].jobs[0].exit_code = 3;
        let left = LimitLeft { job: "a".to_owned(), nano_cpus: 5, cpu_quota: 0 };
        findings.arms[0].limits_left.push(left);
        let text = printed(&findings);
        assert!(text.contains("failed: exit 3"), "{text}");
        assert!(text.contains("limits: none left a with NanoCpus 5 and CpuQuota 0"), "{text}");
        assert!(!text.contains("put back") && !text.contains("change against"), "{text}");
    }
}
