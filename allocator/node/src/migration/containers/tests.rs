use serde_json::json;

use super::*;

fn progress(count: u64, step: Option<u64>, state: &str) -> Progress {
    let json = json!({
        "schema": 1, "job": "vae", "pid": 1, "instance": "two", "source": "reporter",
        "state": state, "started_at": 0.0, "now": 0.0, "step": step, "epoch": null,
        "total_steps": null,
        "eval": {"name": "loss", "direction": "minimize", "value": null, "window": 5,
                 "updated_at": null, "count": count, "sum": 0.0, "first": null, "best": null,
                 "max_abs": null},
        "batch_latency": {"count": 0, "sum": 0.0, "last": null, "p50": null, "p95": null,
                          "p99": null},
        "targets": {"acceptable": null, "objective": null, "batch_latency": null},
        "reached": {"acceptable_at": null, "objective_at": null},
        "checkpoint": {"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                       "error": null},
        "dropped": 0, "rejected": 0});
    serde_json::from_value(json).unwrap()
}

#[test]
fn job_has_taken_over_once_it_reports_after_its_checkpoint() {
    let goes_on = |count, step, saved| {
        standing(&progress(count, step, "running")).goes_on_from(saved).unwrap()
    };
    assert!(!goes_on(0, Some(40), Some(40)), "it has loaded its checkpoint and not reported yet");
    assert!(goes_on(1, Some(41), Some(40)));
    assert!(goes_on(1, None, Some(40)) && goes_on(1, Some(1), None), "it does not count its steps");
}

#[test]
fn job_that_restarts_or_fails_has_not_taken_over() {
    let error =
        standing(&progress(1, Some(1), "running")).goes_on_from(Some(40)).unwrap_err().to_string();
    assert!(error.contains("at step 1, not past 40"), "{error}");
    let error =
        standing(&progress(1, Some(41), "failed")).goes_on_from(Some(40)).unwrap_err().to_string();
    assert!(error.contains("has failed on the target"), "{error}");
}
