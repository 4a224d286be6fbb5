//! The shipped files for Prometheus and Grafana name only existing metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::web::metrics::tests::names;

const ALERTS: &str = include_str!("../../../../../examples/monitoring/alerts.yml");
const ALERT_TESTS: &str = include_str!("../../../../../examples/monitoring/alerts.test.yml");
const DASHBOARD: &str = include_str!("../../../../../examples/monitoring/grafana.json");

/// The metrics of ours that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("paceline_")).map(str::to_owned).collect()
}

#[test]
fn alerts_and_their_tests_name_existing_metrics() {
    let used = named(ALERTS);
    assert!(used.is_subset(&names()), "{:?}", used.difference(&names()));
    assert_eq!(named(ALERT_TESTS), used, "each has its series in the tests");
}

#[test]
fn dashboard_queries_name_existing_metrics() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries: Vec<&str> = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        queries.extend(targets.map(|target| target["expr"].as_str().unwrap()));
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    queries.extend(variables.iter().filter_map(|variable| variable["query"]["query"].as_str()));
    assert!(queries.len() > 30);
    for query in &queries {
        let used = named(query);
        assert!(!used.is_empty() && used.is_subset(&names()), "{query}");
    }
}
