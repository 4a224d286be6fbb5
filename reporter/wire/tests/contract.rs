//! The types against a body as users' scripts see it.

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

#[test]
fn every_field_of_the_body_is_read_and_written_under_its_name() {
    let progress: Progress = serde_json::from_str(BODY).unwrap();
    let written: serde_json::Value = serde_json::to_value(&progress).unwrap();
    let expected: serde_json::Value = serde_json::from_str(BODY).unwrap();
    assert_eq!(written, expected);
    assert_eq!((progress.schema, progress.state), (SCHEMA, State::Running));
}

#[test]
fn what_is_not_known_is_null_and_a_field_of_a_later_writer_is_ignored() {
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
