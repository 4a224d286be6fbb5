use paceline_sim::compare::compare;
use paceline_sim::scenario::LIBRARY;

use super::*;
use crate::text::wrap::WIDTH;

fn scenario(name: &str) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
    Scenario::parse(listed.text).unwrap()
}

#[test]
fn lines_fit_however_many_policies_there_are() {
    let scenario = scenario("FC-5");
    let names = ["none", "flowcon", "flowcon:published", "tradl", "tradl:published", "dqoes"];
    let arms: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
    let text = comparison(&scenario, &compare(&scenario, &arms, 3).unwrap());
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    for name in names {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn table_has_figures_bounds_and_their_ratios() {
    let scenario = scenario("FC-3");
    let text = comparison(&scenario, &compare(&scenario, &scenario.arms, 1).unwrap());
    let row = |title: &str| {
        let line = text.lines().find(|line| line.starts_with(title));
        line.unwrap_or_else(|| panic!("{title}: {text}")).to_owned()
    };
    let completion = row("mean completion [s]");
    assert!(completion.contains("267.9") && completion.ends_with("199.6"), "{completion}");
    assert!(row("  of the bound").contains("1.34"), "{text}");
    assert!(row("makespan [s]").contains("394"), "{text}");
    assert!(!text.contains("known") && !text.contains("less none"), "one node, one seed: {text}");
}

#[test]
fn placements_have_a_row_each() {
    let scenario = scenario("DL-3");
    let all = paceline_sim::gangs::exchanges(&scenario, &scenario.arms).unwrap();
    let text = exchanges(&scenario, &all);
    let row = text.lines().find(|line| line.starts_with("dltap")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, ["dltap", "fcn-8", "6", "2", "2", "24.0", "240.0", "0"]);
}

#[test]
fn several_seeds_add_differences_and_known_bounds() {
    let scenario = scenario("SP-20");
    let all = compare(&scenario, &scenario.arms, 3).unwrap();
    let text = comparison(&scenario, &all);
    let (figures, differences) = text.split_once("less spread, by seed").unwrap();
    assert!(figures.contains("known: ") && figures.contains("with foresight"), "{text}");
    let metric = Metric::named("completion_mean").unwrap();
    let apart = all.difference(all.results.last().unwrap(), metric).unwrap();
    let line = differences.lines().find(|line| line.starts_with("mean completion [s]")).unwrap();
    let last = format!("{} ± {}", figure(apart.mean), figure(apart.half.unwrap()));
    assert!(line.ends_with(&last), "{line}: {last}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    // What no policy changes is left out.
    assert!(!differences.contains("unfinished"), "{differences}");
}

#[test]
fn means_and_differences_that_leave_out_jobs_are_marked() {
    let mut scenario = scenario("FC-5");
    let text =
        |scenario: &Scenario| comparison(scenario, &compare(scenario, &scenario.arms, 2).unwrap());
    assert!(!text(&scenario).contains('*'));
    // One of its jobs takes over 700 s alone.
    scenario.until = 700.0;
    let text = text(&scenario);
    assert!(text.contains("\nFigures marked * leave out jobs that did not finish.\n"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("mean completion [s]"));
    let marks: Vec<bool> = rows.map(|row| row.contains('*')).collect();
    assert!(marks.len() > 1 && marks.iter().all(|marked| *marked), "{text}");
    let areas = text.lines().filter(|line| line.starts_with("area under loss"));
    assert!(areas.into_iter().all(|row| !row.contains('*')), "{text}");
}
