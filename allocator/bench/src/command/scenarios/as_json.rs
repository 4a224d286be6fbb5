//! All results for programs.

use serde_json::{Map, Value, json};

use super::results::{Entry, Figures};
use super::wrong::Wrong;
use crate::command::compared::{bounds, figures};

pub(super) fn entries(all: &[Entry]) -> serde_json::Result<String> {
    let value: Vec<Value> = all.iter().map(entry).collect();
    serde_json::to_string_pretty(&value).map(|text| text + "\n")
}

fn entry(entry: &Entry) -> Value {
    let mut value = Map::new();
    value.insert("scenario".to_owned(), json!(entry.scenario.name));
    value.insert("description".to_owned(), json!(entry.scenario.description));
    match &entry.figures {
        Figures::Runs(all) => {
            let metrics = all.metrics();
            let policies: Vec<Value> = all
                .results
                .iter()
                .map(|results| {
                    json!({
                        "policy": results.arm.policy,
                        "variant": results.arm.variant.to_string(),
                        "metrics": figures(all, &metrics, results),
                    })
                })
                .collect();
            value.insert("seeds".to_owned(), json!(all.seeds));
            value.insert("bounds".to_owned(), bounds(all, &metrics));
            value.insert("policies".to_owned(), json!(policies));
        }
        Figures::Placements(all, fewest) => {
            value.insert("placements".to_owned(), json!(all));
            value.insert("fewest".to_owned(), json!(fewest));
        }
    }
    value.insert("claims".to_owned(), json!(entry.claims));
    if let Some(all) = entry.comparison().filter(|_| !entry.wrong.is_empty()) {
        let metrics = all.metrics();
        let case = |wrong: &Wrong| json!({ "states": wrong.states, "metrics": figures(all, &metrics, &wrong.results) });
        let cases: Vec<Value> = entry.wrong.iter().map(case).collect();
        value.insert("wrong_totals".to_owned(), json!(cases));
    }
    Value::Object(value)
}
