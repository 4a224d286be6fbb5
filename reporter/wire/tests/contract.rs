//! Checks the types against the JSON that users' scripts rely on.

use paceline_wire::{Direction, Progress, SCHEMA, State};

const BODY: &str = r#"{"schema": 1, "job": "vae", "pid": 7, "instance": "01J", "source": "reporter",
 "state": "running", "started_at": 1760000000.0, "now": 1760000042.5,
 "step": 1234, "epoch": 3, "total_steps": 46900,
 "eval": {"name": "reconstruction", "direction": "minimize", "value": 118.2, "window": 5,
          "updated_at": 1760000042.4, "count": 1234, "sum": 164012.7, "first": 540.1,
          "best": 117.9, "max_abs": 543.0},
 "batch_latency": {"count": 1234, "sum": 41.2, "last": 0.031,
                   "p50": 0.030, "p95": 0.044, "p99": 0.071},
 "targets": {"acceptable": 120.0, "objective": 110.0, "batch_latency": null},
 "reached": {"acceptable_at": 1760000040.1, "objective_at": null},
 "checkpoint": {"requested": 1, "saved": 1, "step": 1200, "path": "/ckpt/vae.safetensors",
                "at": 1760000041.0, "error": null},
 "dropped": 0, "rejected": 0}"#;

/// The fields that later writers add to the same body.
const ADDITIONS: &str = r#"{
 "expected_steps": 20000,
 "checkpoint": {"requested": 1, "answered": 1, "saved": 1, "step": 1200, "loss": 119.0,
                "path": "/ckpt/vae.safetensors", "at": 1760000041.0, "error": null,
                "kept": {"path": "/ckpt/best.safetensors", "loss": 118.5, "step": 1100,
                         "at": 1760000040.5}},
 "validation": {"value": 120.1, "best": 119.9, "count": 2, "updated_at": 1760000039.0},
 "signals": {"activity": "training", "quiet_seconds": 0.1, "health": "fine",
             "loss_smoothed": 118.0, "loss_slope": -0.002, "steps_per_second": 30.5,
             "progress_ratio": 0.03, "eta_seconds": 1500.0,
             "to_acceptable": {"seconds": 2.0, "low": 1.0, "high": 4.0,
                               "steps": {"low": 30.5, "median": 61.0, "high": 122.0}},
             "to_objective": {"seconds": 60.0, "low": 20.0, "high": null,
                              "steps": {"low": 610.0, "median": 1830.0, "high": null}}},
 "cpu": {"quota": 1.5, "threads": 2, "periods": 400, "throttled_periods": 100,
         "throttled_seconds": 12.5, "throttled_ratio": 0.25, "pressure": 0.125},
 "rank": {"global": 3, "local": 1, "world": 8},
 "tensorboard": {"name": "/logs/run", "sent": 40, "failed": 1, "dropped": 0, "error": null},
 "sidecar": {"loss_from": "log:/logs/train.log", "loss_span": "step", "latency_from": "inferred",
             "block_buffered": false, "ranks": [{"rank": 0, "count": 10, "sum": 0.5}],
             "sources": [{"name": "log:/logs/train.log", "up": true, "grammar": "keras bar",
                          "confidence": 1.0, "bytes": 100, "lines": 9, "observations": 8,
                          "errors": 0, "dropped": 0, "updated_at": 1760000042.4, "error": null,
                          "hint": null}],
             "forwards": [{"name": "katib", "sent": 3, "failed": 1, "dropped": 0,
                           "error": "cannot write"}]}}"#;

#[test]
fn every_field_of_the_body_is_read_and_written_under_its_name() {
    let mut expected: serde_json::Value = serde_json::from_str(BODY).unwrap();
    let additions: serde_json::Value = serde_json::from_str(ADDITIONS).unwrap();
    expected.as_object_mut().unwrap().extend(additions.as_object().unwrap().clone());
    let progress: Progress = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(serde_json::to_value(&progress).unwrap(), expected);
}

#[test]
fn body_without_additions_is_read_without_loss() {
    let progress: Progress = serde_json::from_str(BODY).unwrap();
    let written = serde_json::to_value(&progress).unwrap();
    let expected: serde_json::Value = serde_json::from_str(BODY).unwrap();
    for (name, value) in expected.as_object().unwrap() {
        match value.as_object() {
            None => assert_eq!(&written[name], value),
            Some(fields) => {
                assert!(
                    fields.iter().all(|(field, value)| written[name][field] == *value),
                    "{name}"
                );
            }
        }
    }
    assert_eq!((progress.schema, progress.state), (SCHEMA, State::Running));
}

#[test]
fn forecast_of_an_older_writer_has_no_steps() {
    let mut body: serde_json::Value = serde_json::from_str(BODY).unwrap();
    body["signals"] = serde_json::json!({
        "to_objective": {"seconds": 60.0, "low": 20.0, "high": null}
    });
    let progress: Progress = serde_json::from_value(body).unwrap();
    let forecast = progress.signals.to_objective.unwrap();
    assert_eq!((forecast.seconds, forecast.steps), (Some(60.0), None));
    assert_eq!((progress.signals.to_acceptable, progress.expected_steps), (None, None));
}

#[test]
fn unknown_value_is_null_and_unknown_field_is_ignored() {
    let mut body: serde_json::Value = serde_json::from_str(BODY).unwrap();
    body["step"] = serde_json::Value::Null;
    body["eval"]["value"] = serde_json::Value::Null;
    body["a_field_to_come"] = true.into();
    let progress: Progress = serde_json::from_value(body).unwrap();
    assert_eq!((progress.step, progress.eval.value), (None, None));
    let written = serde_json::to_value(&progress).unwrap();
    assert!(written["step"].is_null(), "{written}");
}

#[test]
fn a_target_is_reached_from_the_side_that_the_direction_names() {
    assert!(Direction::Minimize.reached(1.0, 1.0) && Direction::Minimize.better(0.5, 1.0));
    assert!(Direction::Maximize.reached(1.0, 1.0) && Direction::Maximize.better(1.0, 0.5));
    assert!(!Direction::Minimize.reached(1.1, 1.0) && !Direction::Minimize.better(1.0, 1.0));
    assert!(!Direction::Maximize.reached(0.9, 1.0) && !Direction::Maximize.better(1.0, 1.0));
    assert!(!Direction::Minimize.reached(f64::NAN, 1.0));
}
