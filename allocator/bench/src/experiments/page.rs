//! The page's parts, computed from the findings alone.

use paceline_api::table::Table;

use super::super::grid::{self, Grid, percent};
use super::super::outcome::{ArmFindings, BASELINE, Findings, Measure};
use super::super::remarks::remarks;
use super::super::report::file_name;
use super::{FOLDER, shown};
use crate::figure::scale::mark_text;
use crate::text::blocks::Block;

/// The pictures of an arm that are shown, by the beginnings of their files' names.
const OF_ARMS: [(&str, &str); 3] = [
    ("loss", "Loss over time"),
    ("limits", "CPU limits over time"),
    ("sets", "Jobs by their batch latency targets over time"),
];

/// The title and file of each picture that may exist.
pub(super) fn pictures(findings: &Findings) -> Vec<(String, String)> {
    let name = &findings.about.name;
    let all = (format!("{name}: each job's completion time"), "completion.svg".to_owned());
    let of_arms = shown(findings).into_iter().flat_map(|arm| {
        OF_ARMS.map(|(what, title)| {
            (format!("{name}: {title}, {arm}"), format!("{what}-{}.svg", file_name(arm)))
        })
    });
    std::iter::once(all).chain(of_arms).collect()
}

/// The whole page; `there` says whether a bench's picture exists.
pub(super) fn page(
    all: &[&Findings],
    commit: Option<&str>,
    there: impl Fn(&str, &str) -> bool,
) -> Vec<Block> {
    let text = |words: &str| Block::Text(words.to_owned());
    let mut page = vec![
        Block::Heading(1, "The papers' experiments on a real machine".to_owned()),
        text(
            "Written by `make experiments`. `paceline bench` ran real containers with real limits, all \
             arms in turns and several times; `paceline experiments` collected the results. A figure is \
             the mean over the undisturbed repeats. After ± is half of the interval that contains the true \
             mean with 95 % probability (Student's t). In brackets is the change from `none`, repeat by \
             repeat. The simulator's predictions were fitted to the solo runs and those of `none` only. A \
             figure marked \\* comes from runs that other work disturbed: it has no interval and no verdict. \
             One marked † leaves out repeats that lack it, for example because a job did not end.",
        ),
    ];
    page.extend(commit.map(|commit| Block::Text(format!("Program: commit {commit}."))));
    page.push(Block::Heading(2, "In short".to_owned()));
    page.push(Block::Table(summary(all)));
    for findings in all {
        page.extend(of_bench(findings, &there));
    }
    page
}

/// A row for each arm of each bench.
fn summary(all: &[&Findings]) -> Table {
    let head = ["experiment", "arm", "mean completion", "predicted", "error", "holds", "jobs hold"];
    let row = |findings: &Findings, arm: &ArmFindings| {
        let measure = Measure::named("completion_mean")?;
        let figure = arm.figure(measure.name);
        let fidelity = arm.fidelity.iter().find(|found| found.figure == measure.name);
        let dash = || "-".to_owned();
        let verdict = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
        let fitted = arm.facts.policy == BASELINE;
        Some(vec![
            findings.about.name.clone(),
            arm.facts.name.clone(),
            grid::cell(figure, measure.better).text,
            fidelity.map_or_else(dash, |found| grid::value(found.predicted, None)),
            fidelity.map_or_else(dash, |found| percent(found.error)),
            match fidelity {
                Some(_) if fitted => "fitted".to_owned(),
                Some(found) => verdict(found.holds),
                None if arm.is_disturbed() => grid::NOT_JUDGED.to_owned(),
                None => dash(),
            },
            fidelity.and_then(|found| found.jobs_hold).map_or_else(dash, verdict),
        ])
    };
    let rows = all.iter().flat_map(|findings| {
        findings.arms.iter().filter_map(move |arm| row(findings, arm)).collect::<Vec<_>>()
    });
    Table::new(2, head, rows.collect())
}

fn of_bench(findings: &Findings, there: &impl Fn(&str, &str) -> bool) -> Vec<Block> {
    let about = &findings.about;
    let scale = if (about.scale - 1.0).abs() > 0.0 {
        format!(" All times are the paper's divided by {}.", mark_text(about.scale))
    } else {
        String::new()
    };
    let mut blocks = vec![
        Block::Heading(2, about.name.clone()),
        Block::Text(about.description.clone()),
        Block::Text(format!("{}: {}.{scale}", about.date, about.place())),
    ];
    for grid in grid::jobs(findings) {
        blocks.extend(titled(&grid));
    }
    blocks.extend(titled(&grid::figures(findings)));
    blocks.extend(grid::fidelity(findings).iter().flat_map(titled));
    blocks.extend(claims(findings));
    for (title, file) in pictures(findings) {
        if there(&about.name, &file) {
            let path = format!("{FOLDER}/{}/{file}", about.name);
            blocks.push(Block::Picture(title, path));
        }
    }
    for regression in findings.arms.iter().filter_map(|arm| arm.regression.as_ref()) {
        let sentences = std::iter::once(&regression.symptom).chain(&regression.sentences);
        let sentences: Vec<&str> = sentences.map(String::as_str).collect();
        blocks.push(Block::Text(sentences.join(" ")));
    }
    blocks.push(Block::Text("Remarks:".to_owned()));
    blocks.extend((1..).zip(remarks(findings)).map(|(at, text)| Block::Remark(at, text)));
    blocks.extend(titled(&grid::runs(findings)));
    blocks
}

/// The title, the table and its notes. An asterisk is escaped: at the start of a line it would begin a list
/// in Markdown.
fn titled(grid: &Grid) -> Vec<Block> {
    let escaped = |note: &String| {
        let escape = if note.starts_with(grid::MARK) { "\\" } else { "" };
        Block::Text(format!("{escape}{note}"))
    };
    let notes = grid.notes.iter().map(escaped);
    let table = [Block::Text(format!("{}:", grid.title)), Block::Table(grid.table())];
    table.into_iter().chain(notes).collect()
}

/// The claims, and under them the reasons why measured figures differ.
fn claims(findings: &Findings) -> Vec<Block> {
    let Some(grid) = grid::claims(findings) else { return Vec::new() };
    let mut blocks = titled(&grid);
    let with = findings.claims.iter().filter(|compared| !compared.reason.is_empty());
    for (number, compared) in (1..).zip(with) {
        let (title, source) = (compared.claim.figure.title(), &compared.claim.source);
        let printed = compared.claim.shown(compared.claim.value);
        let reason = &compared.reason;
        blocks.push(Block::Remark(number, format!("{title}, {printed} ({source}): {reason}")));
    }
    blocks
}
