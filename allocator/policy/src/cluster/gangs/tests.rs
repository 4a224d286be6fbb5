use proptest::prelude::*;

use super::*;

#[test]
fn a_missing_optional_field_is_null() {
    let sparse = GangFrame::parse(r#"{"t": 1, "jobs": [{"id": "vae", "gpus": 2}]}"#).unwrap();
    let full = r#"{"t": 1, "nodes": null, "jobs": [{"id": "vae", "submitted": null, "state": null,
        "ps": {"count": null, "cpu": null, "memory": null},
        "worker": {"min": null, "max": null, "cpu": null, "memory": null},
        "placement": {"ps": null, "workers": null}}]}"#;
    assert_eq!(sparse, GangFrame::parse(full).unwrap());
    assert_eq!(sparse.jobs[0].state, State::Waiting);
}

#[test]
fn invalid_frame_is_refused() {
    for line in [
        r#"{"jobs": []}"#,
        r#"{"t": null}"#,
        r#"{"t": 1, "jobs": [{}]}"#,
        r#"{"t": 1, "jobs": [{"id": ""}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a"}, {"id": "a"}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "state": "paused"}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "submitted": "1"}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "ps": {"count": 1.5}}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "worker": {"min": -1}}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "worker": {"cpu": "2"}}]}"#,
        r#"{"t": 1, "jobs": [{"id": "a", "placement": {"ps": {"w1": null}}}]}"#,
        r#"{"t": 1, "nodes": [{"cpus": 1}]}"#,
    ] {
        assert!(GangFrame::parse(line).is_err(), "{line}");
    }
}

#[test]
fn too_many_tasks_are_named_in_the_error() {
    for (field, json) in [
        ("ps.count", r#""ps": {"count": COUNT}"#),
        ("worker.min", r#""worker": {"min": COUNT}"#),
        ("worker.max", r#""worker": {"max": COUNT}"#),
        ("placement.ps", r#""placement": {"ps": {"w1": COUNT}}"#),
        ("placement.workers", r#""placement": {"workers": {"w1": 1, "w2": COUNT, "w3": 0}}"#),
    ] {
        let with = |count: u32| {
            let json = json.replace("COUNT", &count.to_string());
            GangFrame::parse(&format!(r#"{{"t": 1, "jobs": [{{"id": "a", {json}}}]}}"#))
        };
        let error = with(u32::MAX - 1).unwrap_err().to_string();
        assert!(error.starts_with(&format!(r#"invalid {field} "429496729"#)), "{error}");
        assert!(error.ends_with(r#"" of job "a": expected at most 10000"#), "{error}");
        assert!(with(MAX_TASKS - 1).is_ok() && with(MAX_TASKS + 1).is_err(), "{field}");
    }
}

#[test]
fn a_frame_that_was_written_reads_back() {
    let line = r#"{"t": 2.5, "nodes": [{"name": "w1", "cpus": 4, "memory": 8e9}], "jobs": [
        {"id": "vae", "submitted": 0.1, "state": "running", "ps": {"count": 1, "cpu": 0.5},
         "worker": {"min": 1, "max": 3, "cpu": 1, "memory": 1e9},
         "placement": {"ps": {"w1": 1}, "workers": {"w1": 2}}}]}"#;
    let frame = GangFrame::parse(line).unwrap();
    assert_eq!(frame.jobs[0].state, State::Running);
    assert_eq!(frame.jobs[0].placement.workers["w1"], 2);
    assert_eq!(GangFrame::parse(&serde_json::to_string(&frame).unwrap()).unwrap(), frame);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(line in ".*") {
        drop(GangFrame::parse(&line));
    }

    #[test]
    fn no_value_makes_the_reader_panic(
        id in "[ab]", state in "waiting|running|x", cpu in any::<f64>(), count in any::<i64>()
    ) {
        drop(GangFrame::parse(&format!(
            r#"{{"t": 1, "jobs": [{{"id": "a"}}, {{"id": "{id}", "state": "{state}",
                "ps": {{"count": {count}}}, "worker": {{"cpu": {cpu}}}}}]}}"#
        )));
    }
}
