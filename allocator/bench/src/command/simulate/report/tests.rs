use paceline_sim::compare::compare;
use paceline_sim::scenario::LIBRARY;

use super::*;

fn scenario(name: &str) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
    Scenario::parse(listed.text).unwrap()
}

fn page_of(scenario: &Scenario, seeds: u32) -> String {
    let comparison = compare(scenario, &scenario.arms, seeds).unwrap();
    let traces = traces(scenario, &scenario.arms).unwrap();
    page(&Subject { scenario, comparison: &comparison, traces }).unwrap()
}

fn titles(page: &str) -> Vec<&str> {
    let titles = page.split("<h2>").skip(1);
    titles.filter_map(|rest| rest.split("</h2>").next()).collect()
}

#[test]
fn report_has_every_picture_that_shows_something() {
    let all = [
        "One objective against another",
        "Distance to the optimum",
        "Completion times",
        "CPU share over time",
        "CPU limits over time",
        "Convergence of sets",
        "How it was computed",
    ];
    for (name, has) in [
        ("FC-3", [true; 7]),
        // Its policies move jobs and limit none.
        ("SP-20", [true, true, true, true, false, true, true]),
        // Its jobs never end.
        ("DQ-var", [false, true, false, true, true, true, true]),
        ("KO-10", [false, true, true, true, false, true, true]),
    ] {
        let page = page_of(&scenario(name), 1);
        let expected: Vec<&str> =
            all.into_iter().zip(has).filter(|(_, has)| *has).map(|(title, _)| title).collect();
        assert_eq!(titles(&page), expected, "{name}");
        assert_eq!(page.matches("<svg ").count(), page.matches("aria-label=\"").count(), "{name}");
    }
}

#[test]
fn few_jobs_have_bars_and_many_a_distribution() {
    let few = page_of(&scenario("FC-3"), 1);
    assert!(few.contains("61.3 s") && few.contains("mnist-t"), "{few}");
    let many = page_of(&scenario("SP-50"), 1);
    assert!(many.contains("jobs done [%]"));
    assert!(many.len() < 2_000_000, "{} bytes", many.len());
}

#[test]
fn page_needs_no_other_file_and_is_deterministic() {
    let scenario = scenario("FC-5");
    let page = page_of(&scenario, 2);
    for reference in ["http://", "https://", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page == page_of(&scenario, 2), "another page of the same");
}

#[test]
fn all_text_is_escaped() {
    let mut scenario = scenario("FC-3");
    let evil = "<script>alert('1')</script>\"";
    scenario.name = evil.to_owned();
    scenario.description = evil.to_owned();
    let mut comparison = compare(&scenario, &scenario.arms, 1).unwrap();
    for results in &mut comparison.results {
        results.outcomes[0].jobs[0].id = evil.to_owned();
    }
    let traces = traces(&scenario, &scenario.arms).unwrap();
    let page = page(&Subject { scenario: &scenario, comparison: &comparison, traces }).unwrap();
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains("<script"), "a script came through");
    assert!(!page.contains("')<"), "a quotation mark came through");
}
