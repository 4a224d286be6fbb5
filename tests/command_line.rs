//! What scripts rely on: exit codes, and the content of help and errors.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::process::Output;

use paceline_system_tests::Allocator;

async fn paceline(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Allocator::command(words).unwrap().env_remove("DOCKER_HOST").output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn without_an_engine_it_ends_with_3_and_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("unix://{}/no.sock", folder.path().display());
    for command in ["run", "restore"] {
        let (code, _, said) = paceline(&["--host", &host, command]).await;
        assert_eq!(code, Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&host) && said.contains("cannot reach"), "{said}");
        assert!(said.contains("run `paceline doctor` to find out more"), "{said}");
    }
}

#[tokio::test]
async fn doctor_without_an_engine_names_it_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("unix://{}/no.sock", folder.path().display());
    let state = folder.path().join("state");
    let words = ["--host", &host, "doctor", "--state-dir", state.to_str().unwrap()];
    let (code, said, error) = paceline(&words).await;
    assert_eq!((code, error.as_str()), (Some(1), ""), "{said}");
    assert!(said.lines().any(|line| line.starts_with("error    engine")), "{said}");
    assert!(said.contains("cannot reach") && said.contains("--host"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100 || line.contains(&host)), "{said}");
    assert!(!state.exists());
    let (code, said, _) = paceline(&[&words[..], &["--json"]].concat()).await;
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == Some(1) && report["errors"].as_u64() > Some(0), "{said}");
}

#[tokio::test]
async fn endless_files_are_refused_with_their_bound() {
    for (words, bound) in [
        (&["run", "--config", "/dev/zero"][..], "1 MiB, the most for a file of settings"),
        (&["simulate", "/dev/zero"], "16 MiB, the most for a scenario"),
        (&["submit", "/dev/zero"], "1 MiB, the most for a job's file"),
    ] {
        let (code, _, said) = paceline(words).await;
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains("/dev/zero") && said.contains(bound), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn endless_line_of_frames_ends_a_replay_with_2() {
    let (code, said, error) = paceline(&["replay", "--policy", "tradl", "/dev/zero"]).await;
    assert_eq!((code, said.as_str()), (Some(2), ""), "{error}");
    assert!(error.contains("line 1: longer than 1 MiB, the most for a line"), "{error}");
}

#[tokio::test]
async fn bad_usage_ends_with_2_and_names_allowed_values() {
    for (words, parts) in [
        (&["run", "--policy", "best"][..], &["best", "none", "flowcon"][..]),
        (&["run", "--param", "alpha"], &["alpha", "NAME=NUMBER"]),
        (&["run", "--policy", "flowcon", "--param", "beta=-1"], &["beta", "-1", "above 0"]),
        (&["run", "--param", "beta=2"], &["default policy is now paceline", "--policy flowcon"]),
        (&["run", "--param", "speed=1"], &["speed", "theta"]),
        (&["run", "--policy", "flowcon", "--param", "alhpa=1"], &["did you mean \"alpha\"?"]),
        (&["run", "--policy", "flocon"], &["flocon", "did you mean \"flowcon\"?"]),
        (&["run", "--variant", "exact"], &["exact", "resolved", "published"]),
        (&["run", "--policy", "kod2"], &["kod2", "cluster", "paceline manager"]),
        (&["run", "--enforcement", "hope"], &["hope", "quota+leftover"]),
        (&["replay", "--policy", "best"], &["best", "none", "tradl", "fifo-gang"]),
        (&["replay", "no-such-file"], &["no-such-file"]),
        (&["pin", "vae", "1.5"], &["\"1.5\"", "above 0 and at most 1"]),
        (&["set", "vae"], &["--acceptable", "--objective", "--batch-latency"]),
        (&["guard", "vae", "luck", "on"], &["luck", "slew, fairness, canary"]),
        (&["top", "--every", "0"], &["--every", "0.1", "3600"]),
        (&["status", "--control", "none"], &["--control none"]),
        (&["explain", "vae", "--state-dir", "/no/such"], &["no audit log", "/no/such"]),
        (&["audit", "verify", "--state-dir", "/no/such"], &["no audit log", "/no/such"]),
        (&["audit", "verify", "--anchor", "12"], &["\"12\"", "64 hexadecimal digits"]),
        (&["scenarios", "run", "FC3"], &["\"FC3\"", "FC-5", "did you mean \"FC-3\"?"]),
        (&["scenarios", "run", "--check", "/no/such.md", "DL-min"], &["/no/such.md"]),
        (&["fly"], &["fly"]),
    ] {
        let (code, _, said) = paceline(words).await;
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn bad_configuration_ends_with_2_and_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("paceline.toml");
    let config = config.to_string_lossy();
    for (text, parts) in [
        ("actuator = \"hand\"", &["line 1: actuator = \"hand\"", "`auto`, `cgroup`, `engine`"][..]),
        ("\n[web]\nlisten = \"7224\"", &["line 3: listen = \"7224\"", "unix:/path.sock"]),
        ("on-drift = \"yield\"", &["line 1", "did you mean \"on_drift\"?"]),
        ("policy = \"flocon\"", &["did you mean \"flowcon\"?"]),
        ("[limiter.slew]\nmax_decrease = 2", &["limiter setting slew.max_decrease", "at most 1"]),
    ] {
        std::fs::write(&*config, text).unwrap();
        let (code, _, said) = paceline(&["run", "--config", &config]).await;
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(&*config) && parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let (code, _, said) = paceline(&["restore", "--config", "/no/such.toml"]).await;
    assert!(code == Some(2) && said.contains("/no/such.toml"), "{said}");
}

#[tokio::test]
async fn unknown_log_format_or_level_ends_with_2_and_lists_valid_ones() {
    for (name, value, parts) in [
        ("PACELINE_LOG", "verbose", &["PACELINE_LOG", "\"verbose\"", "debug", "MODULE=LEVEL"][..]),
        ("PACELINE_LOG_FORMAT", "xml", &["--log-format", "xml", "text", "json"]),
    ] {
        let mut command = Allocator::command(&["policies"]).unwrap();
        let Output { status, stderr, .. } = command.env(name, value).output().await.unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{name}: {said}");
    }
}

#[tokio::test]
async fn every_command_has_help_that_fits_the_page() {
    for command in [
        "",
        "run",
        "status",
        "top",
        "explain",
        "manage",
        "release",
        "pin",
        "set",
        "guard",
        "log-level",
        "audit",
        "audit verify",
        "audit tail",
        "restore",
        "check",
        "doctor",
        "policies",
        "replay",
        "simulate",
        "scenarios",
        "scenarios run",
        "fit",
        "bench",
    ] {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let (code, help, _) = paceline(&words).await;
        assert_eq!(code, Some(0));
        assert!(help.contains("Usage:"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

/// Replays frames from a file.
async fn replay(words: &[&str], frames: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.jsonl");
    std::fs::write(&path, frames).unwrap();
    paceline(&[&["replay"], words, &[&path.to_string_lossy()]].concat()).await
}

#[tokio::test]
async fn a_malformed_frame_ends_a_replay_with_2_and_the_lines_number() {
    let good = r#"{"t": 1, "jobs": [{"id": "a"}]}"#;
    for bad in [r#"{"t": 0}"#, r#"{"jobs": []}"#, "{", r#"{"t": 2, "jobs": [{"id": 7}]}"#] {
        let (code, said, error) =
            replay(&["--policy", "tradl"], &format!("{good}\n\n{bad}\n")).await;
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("line 3") && error.lines().count() == 1, "{error}");
        assert_eq!(said.lines().count(), 1, "the line before is answered: {said}");
    }
}

#[tokio::test]
async fn replay_prints_one_decision_per_frame_and_explains_on_request() {
    let frames =
        r#"{"t": 0, "nodes": [{"name": "n", "cpus": 2}], "jobs": [{"id": "a"}, {"id": "b"}]}"#;
    let (code, said, error) = replay(&["--policy", "flowcon"], frames).await;
    assert_eq!(code, Some(0), "{error}");
    let decision: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(decision["limits"], serde_json::json!({"a": 1.0, "b": 1.0}));
    let (_, said, _) = replay(&["--policy", "flowcon", "--effective"], frames).await;
    assert!(said.contains(r#""effective":{"a":{"share":1.0"#), "{said}");
    let (_, said, _) = replay(&["--policy", "flowcon", "--explain"], frames).await;
    assert!(said.contains("a: 100.0 %, NL: newcomer"), "{said}");
}

#[tokio::test]
async fn command_line_overrides_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("paceline.toml");
    let config = config.to_string_lossy();
    let frame = r#"{"t": 0}"#;
    std::fs::write(&*config, "policy = \"tradl\"\n[params]\ninterval = 7\n").unwrap();
    let (_, said, error) = replay(&["--config", &config], frame).await;
    assert!(said.contains(r#""policy":"tradl","interval":7.0"#), "{said}{error}");
    let (_, said, _) = replay(&["--config", &config, "--param", "interval=9"], frame).await;
    assert!(said.contains(r#""interval":9.0"#), "{said}");
    for (text, meant) in [
        ("polcy = \"tradl\"", "policy"),
        ("[params]\nintervall = 7", "interval"),
        ("[limiter]\nenforcment = \"quota\"", "enforcement"),
        ("[limiter.slew]\nmax_decrese = 0.1", "max_decrease"),
    ] {
        std::fs::write(&*config, text).unwrap();
        let (code, _, error) = replay(&["--config", &config], frame).await;
        assert_eq!(code, Some(2));
        assert!(error.contains(&format!("did you mean {meant:?}?")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
