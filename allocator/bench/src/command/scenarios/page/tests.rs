use std::path::Path;

use paceline_sim::Scenario;
use paceline_sim::claims;
use unicode_width::UnicodeWidthStr;

use super::*;

fn entry(name: &str) -> Entry {
    let scenario: Scenario = super::super::open(name.as_ref()).unwrap();
    Entry::run(scenario, &claims::published().unwrap()).unwrap()
}

fn results() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/RESULTS.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn committed_page_matches_the_scenarios() {
    let page = results();
    for name in ["FC-3", "DQ-40", "SP-fix", "DL-min", "DL-3", "KO-10"] {
        let entry = entry(name);
        let part = blocks::markdown(&of_scenario(&entry));
        assert!(page.contains(&part), "`make results` would write otherwise:\n{part}");
        let claims: Vec<&Checked> = entry.claims.iter().collect();
        for line in blocks::markdown(&verdicts::blocks(&claims)).lines() {
            let Some(own) = line.strip_prefix(&format!("| {name} ")) else { continue };
            // Remarks are numbered over the whole page, and column widths depend on all of it.
            let words = |line: &str| {
                let words = line.split(['[', '|']).map(str::trim).filter(|word| !word.is_empty());
                words.map(ToOwned::to_owned).take(6).collect::<Vec<String>>()
            };
            let kept = page.lines().filter_map(|line| line.strip_prefix(&format!("| {name} ")));
            assert!(kept.map(words).any(|kept| kept == words(own)), "{line}");
        }
    }
}

#[test]
fn committed_page_fits_and_has_every_scenario() {
    let page = results();
    assert!(page.lines().all(|line| line.width() <= 100), "{page}");
    for listed in paceline_sim::scenario::LIBRARY {
        assert!(page.contains(&format!("### {}\n", listed.name)), "{}", listed.name);
    }
}

#[test]
fn impossible_claims_are_the_known_ones() {
    for (name, number) in [("FC-3", 1), ("SP-fix", 1), ("KO-10", 1), ("DL-3", 0)] {
        let entry = entry(name);
        let impossible = |checked: &&Checked| checked.verdict == claims::Verdict::Impossible;
        assert_eq!(entry.claims.iter().filter(impossible).count(), number, "{name}");
    }
}

#[test]
fn figures_of_runs_cut_short_are_marked_on_the_page() {
    let mut scenario: Scenario = super::super::open("FC-3".as_ref()).unwrap();
    scenario.until = 300.0;
    let entry = Entry::run(scenario, &[]).unwrap();
    let page = blocks::markdown(&of_scenario(&entry));
    assert!(page.contains("\nFigures marked * leave out jobs that did not finish.\n"), "{page}");
    let none = page.lines().find(|line| line.starts_with("| none ")).unwrap();
    let marks: Vec<bool> = none.split('|').skip(2).map(|cell| cell.contains('*')).collect();
    assert!(marks[0], "the mean completion: {none}");
}
