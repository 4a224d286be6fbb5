//! A comparison for programs.

use paceline_sim::Scenario;
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::gangs::Exchange;
use paceline_sim::metrics::Metric;
use serde_json::{Value, json};

use crate::command::compared::{bounds, figures};

pub(super) fn comparison(scenario: &Scenario, all: &Comparison) -> serde_json::Result<String> {
    let metrics = all.metrics();
    let policies: Vec<Value> =
        all.results.iter().map(|results| policy(all, &metrics, results)).collect();
    let value = json!({
        "scenario": scenario.name,
        "description": scenario.description,
        "seeds": all.seeds,
        "bounds": bounds(all, &metrics),
        "policies": policies,
    });
    lines(&value)
}

fn policy(all: &Comparison, metrics: &[&Metric], results: &Results) -> Value {
    let runs = all.seeds.iter().zip(&results.outcomes);
    let runs: Vec<Value> = runs.map(|(seed, run)| json!({"seed": seed, "outcome": run})).collect();
    json!({
        "policy": results.arm.policy,
        "variant": results.arm.variant.to_string(),
        "metrics": figures(all, metrics, results),
        "runs": runs,
    })
}

pub(super) fn exchanges(scenario: &Scenario, all: &[Exchange]) -> serde_json::Result<String> {
    let value = json!({
        "scenario": scenario.name,
        "description": scenario.description,
        "placements": all,
    });
    lines(&value)
}

pub(super) fn lines(value: &Value) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}
