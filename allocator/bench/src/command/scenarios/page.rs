//! The page of results.

use paceline_api::table::Table;
use paceline_sim::claims::Checked;
use paceline_sim::gangs::Exchange;

use super::results::{Entry, Figures};
use super::{standing, verdicts, wrong};
use crate::command::compared::{LEAVES_OUT_JOBS, has_mark};
use crate::text::blocks::{self, Block};

/// The metrics of jobs that end, with their titles.
const ENDING: &[(&str, &str)] = &[
    ("completion_mean", "mean completion"),
    ("makespan", "makespan"),
    ("fairness_worst", "worst ρ"),
    ("loss_area", "area under loss"),
    ("acceptable_mean", "to acceptable"),
];
/// The metrics of jobs with a target for their batches, with their titles.
const ENDLESS: &[(&str, &str)] = &[
    ("satisfied", "satisfied (S)"),
    ("met", "met (S and G)"),
    ("distance", "distance to targets"),
];

/// The whole page, with an introduction.
pub(super) fn markdown(entries: &[Entry]) -> String {
    let mut page = vec![
        Block::Heading(1, "What comes of each policy in each scenario".to_owned()),
        Block::Text(
            "Written by `make results` (`paceline scenarios run --markdown`): every policy that has \
             something to decide in a scenario, over the scenario's seeds, beside the best that any \
             policy could reach and what the papers claim. `paceline simulate NAME` adds intervals \
             and all other metrics; the scenario's file says what of it is published and what is \
             assumed."
                .to_owned(),
        ),
        Block::Text(
            "Figures are means over seeds, in seconds unless said. In brackets: the figure as a \
             multiple of the bound. A † marks a policy as printed in its paper; without it, it is as \
             a careful reader would build it. Where a bound has two ends, no policy is below the \
             first, and a schedule that knows the future reaches the second."
                .to_owned(),
        ),
    ];
    page.extend(body(entries));
    blocks::markdown(&page)
}

/// The same without the introduction.
pub(super) fn terminal(entries: &[Entry]) -> String {
    blocks::terminal(&body(entries))
}

fn body(entries: &[Entry]) -> Vec<Block> {
    let mut page = vec![Block::Heading(2, "Who is best".to_owned())];
    for metrics in [ENDING, ENDLESS] {
        let table = standing::summary(entries, metrics);
        if !table.rows.is_empty() {
            page.push(Block::Table(table));
        }
    }
    page.push(Block::Text(
        "The best policy by each metric, of several equal ones the first; after it the multiple of the \
         bound, or how many of as many as can be. The metrics pull apart: what ends jobs soonest on \
         average is not what lets all losses fall soonest, nor what treats jobs alike."
            .to_owned(),
    ));
    let gaps = standing::gaps(entries);
    if !gaps.rows.is_empty() {
        page.push(Block::Heading(2, "What part of the gap is closed".to_owned()));
        page.extend(noted(gaps));
        page.push(Block::Text(
            "Of the mean completion time: 0 % is the first policy of the scenario, 100 % the lower end of \
             the bound. The last two columns are the finish-time fairness ρ of `paceline`, the worst of \
             all jobs and seeds and the mean: 1 is a job's time under equal sharing by weight, of all \
             nodes as one where there are several."
                .to_owned(),
        ));
    }
    let totals = wrong::table(entries);
    if !totals.rows.is_empty() {
        page.push(Block::Heading(2, "What wrong totals do".to_owned()));
        page.extend(noted(totals));
        page.push(Block::Text(
            "What all jobs state of their steps to `paceline`, and what comes of it: the part of the gap \
             that is closed, and the worst ρ. A large ρ is mostly that of a small job that overstates its own work."
                .to_owned(),
        ));
    }
    let claims: Vec<&Checked> = entries.iter().flat_map(|entry| &entry.claims).collect();
    if !claims.is_empty() {
        page.push(Block::Heading(2, "What papers claim".to_owned()));
        page.push(Block::Text(verdicts::sum(&claims)));
        page.push(Block::Text(
            "Sections are those of the policy's paper. A figure with a sign is a change from the same \
             run without the policy: `none`, `spread` on a cluster, or `fifo-gang`. Here: the policy as \
             printed. Yes means within 5 %, or within 5 points of a change; cannot, that no policy gets \
             there. Where works and arrivals are not published, a no, even one beyond the bound, says \
             only that ours are others."
                .to_owned(),
        ));
        page.extend(verdicts::blocks(&claims));
    }
    page.push(Block::Heading(2, "Scenario by scenario".to_owned()));
    page.extend(entries.iter().flat_map(of_scenario));
    page
}

/// One scenario: what it is, and a row for each policy.
pub(super) fn of_scenario(entry: &Entry) -> Vec<Block> {
    let scenario = &entry.scenario;
    let mut page = vec![Block::Heading(3, scenario.name.clone())];
    match &entry.figures {
        Figures::Runs(all) => {
            let seeds = all.seeds.len();
            let word = if seeds == 1 { "seed" } else { "seeds" };
            page.push(Block::Text(format!("{} {seeds} {word}.", scenario.description)));
            let (table, idle) = standing::table(all);
            page.extend(noted(table));
            if let Some(first) = all.results.first().filter(|_| !idle.is_empty()) {
                let (idle, first) = (idle.join(", "), standing::short(&first.arm));
                page.push(Block::Text(format!("The same as {first}: {idle}.")));
            }
        }
        Figures::Placements(all, fewest) => {
            page.push(Block::Text(scenario.description.clone()));
            page.push(Block::Table(placements(entry, all, fewest)));
        }
    }
    page
}

/// A table of figures, and what marked ones leave out.
fn noted(table: Table) -> Vec<Block> {
    let figures = table.rows.iter().flat_map(|row| row.iter().skip(1));
    let note = has_mark(figures).then(|| Block::Text(LEAVES_OUT_JOBS.to_owned()));
    std::iter::once(Block::Table(table)).chain(note).collect()
}

fn placements(entry: &Entry, all: &[Exchange], fewest: &[Option<u32>]) -> Table {
    let fewest = |gang: &str| {
        let known = entry.scenario.gangs.iter().zip(fewest);
        let own = known.into_iter().find(|(own, _)| own.id.as_str() == gang);
        own.and_then(|(_, fewest)| *fewest).map_or_else(String::new, |fewest| fewest.to_string())
    };
    let row = |exchange: &Exchange| {
        vec![
            exchange.placement.clone(),
            exchange.gang.clone(),
            exchange.pairs.to_string(),
            exchange.crossing.to_string(),
            fewest(&exchange.gang),
            format!("{:.1}", exchange.step_bytes / 1e6),
        ]
    };
    let head = ["placement", "gang", "pairs", "across nodes", "fewest", "MB a step"];
    Table::new(2, head, all.iter().map(row).collect())
}

#[cfg(test)]
mod tests;
