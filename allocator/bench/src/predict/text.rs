//! A fitted scenario as TOML.

use paceline_sim::fit::{Fit, Heading};
use toml::{Table, Value};

/// The keys that a job without an end cannot have: its loss is given by parts of its work.
const KEYS_OF_ENDING_JOBS: [&str; 9] = [
    "work",
    "loss",
    "residuals",
    "noise",
    "told",
    "acceptable",
    "objective",
    "acceptable_at",
    "objective_at",
];

/// The scenario of a fit; it ends after `until` seconds, if given. A job with infinite work runs until
/// then.
pub(super) fn text(fit: &Fit, until: Option<f64>) -> Result<String, String> {
    let text = fit.scenario(&Heading {
        name: "fitted".to_owned(),
        description: "A bench's jobs, fitted to its solo and `none` runs.".to_owned(),
        policies: vec!["none".to_owned()],
        params: Vec::new(),
    });
    let Some(until) = until else { return Ok(text) };
    for job in fit.jobs.iter().filter(|job| job.work.is_infinite()) {
        let Err(why) = &job.batch else { continue };
        return Err(format!("{} was stopped, and its batches cannot be fitted: {why}", job.id));
    }
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    table.insert("until".to_owned(), Value::Float(until));
    let jobs = table.get_mut("job").and_then(Value::as_array_mut).into_iter().flatten();
    for job in jobs.filter_map(Value::as_table_mut) {
        if job.get("work").and_then(Value::as_float).is_some_and(f64::is_infinite) {
            job.retain(|key, _| !KEYS_OF_ENDING_JOBS.contains(&key));
        }
    }
    let head = text.lines().next().unwrap_or_default();
    toml::to_string(&table).map(|rest| format!("{head}\n{rest}")).map_err(|error| error.to_string())
}
