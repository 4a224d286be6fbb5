//! `paceline fit` and `paceline simulate --against`, as a user runs them: a recorded simulation is
//! fitted and simulated again.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::process::Output;

use paceline_system_tests::Allocator;
use serde_json::Value;

/// Two jobs that slow each other down, on a node with background load.
const SCENARIO: &str = r#"
name = "two"
description = "Two jobs."
policies = ["none"]
[params.none]
interval = 2
[[node]]
name = "box"
cpus = 4
contention = 0.06
background = 0.03
[[job]]
name = "long"
work = 50
loss = { curve = "exponential", start = 540.0, end = 100.0, tau = 0.2 }
noise = 0.02
batch = { work = 0.02 }
batch_latency = 0.1
acceptable = 120
[[job]]
name = "short"
arrive = { at = 20 }
work = 15
batch = { work = 0.01 }
"#;

async fn paceline(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Allocator::command(words).unwrap();
    let Output { status, stdout, stderr } = command.current_dir(folder).output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A folder with the scenario, and its recordings under two policies.
async fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two.toml"), SCENARIO).unwrap();
    for policy in ["none", "flowcon"] {
        let frames = format!("{policy}.jsonl");
        let words = ["simulate", "two.toml", "--policy", policy, "--record", &frames];
        let (code, _, said) = paceline(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{said}");
    }
    folder
}

#[tokio::test]
async fn a_recording_is_fitted_and_simulates_to_the_same_times() {
    let folder = recorded().await;
    let (code, text, report) = paceline(folder.path(), &["fit", "none.jsonl"]).await;
    assert_eq!(code, Some(0), "{report}");
    for part in ["others      3.0 %", "6.0 % longer", "50.00 s of the node", "not fitted: no frame"]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
    let (_, report_again, _) =
        paceline(folder.path(), &["fit", "none.jsonl", "--output", "fit.toml"]).await;
    assert_eq!(report_again, report);
    assert_eq!(std::fs::read_to_string(folder.path().join("fit.toml")).unwrap(), text);

    for (policy, allowed) in [("none", 0.005), ("flowcon", 0.03)] {
        let frames = format!("{policy}.jsonl");
        let words = ["simulate", "fit.toml", "--policy", policy, "--against", &frames];
        let (code, table, said) = paceline(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(table.contains("makespan") && table.contains("acceptable"), "{table}");
        let json = [&words[..], &["--json"]].concat();
        let (_, json, _) = paceline(folder.path(), &json).await;
        let json: Value = serde_json::from_str(&json).unwrap();
        let jobs = json["against"]["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 2, "{json}");
        for job in jobs {
            let error = job["completion"]["error"].as_f64().unwrap();
            assert!(error.abs() < allowed, "{policy}: {job}");
        }
    }
}

#[tokio::test]
async fn fit_is_available_as_json() {
    let folder = recorded().await;
    let words = ["fit", "none.jsonl", "--json", "--param", "flowcon.alpha=0.04"];
    let (code, json, said) = paceline(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{said}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["scenario"].as_str().unwrap().contains("[params.flowcon]\nalpha = 0.04\n"));
    let jobs = json["fit"]["jobs"].as_array().unwrap();
    assert!((jobs[0]["work"].as_f64().unwrap() - 50.0).abs() < 0.1, "{json}");
    assert_eq!(jobs[1]["learning"]["not_fitted"], "no frame has a loss of it");
}

#[tokio::test]
async fn unusable_input_ends_with_2_and_names_file_and_line() {
    let folder = recorded().await;
    let good = std::fs::read_to_string(folder.path().join("none.jsonl")).unwrap();
    let (cut, _) = good.split_at(good.len() - 20);
    for (name, text) in [
        ("cut.jsonl", cut),
        ("empty.jsonl", ""),
        ("idle.jsonl", "{\"t\":1}\n"),
        ("samples.jsonl", "{\"t\":1,\"unix\":2,\"node\":{\"cpus\":2},\"jobs\":[]}\n"),
        ("other.jsonl", "{\"t\":1,\"jobs\":[{\"id\":\"vae\"}]}\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let cut_line = format!("cut.jsonl: line {}: invalid frame", good.lines().count());
    for (words, parts) in [
        (&["fit", "cut.jsonl"][..], &[cut_line.as_str()][..]),
        (&["fit", "none.jsonl", "empty.jsonl"], &["empty.jsonl: it has no frames"]),
        (&["fit", "idle.jsonl"], &["idle.jsonl: none of its frames has a job"]),
        (&["fit", "samples.jsonl"], &["samples.jsonl: line 1", "--samples", "--record"]),
        (&["fit", "other.jsonl"], &["other.jsonl: no frame says how many CPUs"]),
        (&["fit", "no-such-file"], &["cannot read no-such-file"]),
        (&["fit", "none.jsonl", "--policy", "flocon"], &["did you mean \"flowcon\"?"]),
        (&["fit", "none.jsonl", "--param", "alpha=1"], &["alpha", "POLICY.NAME=NUMBER"]),
        (&["fit", "none.jsonl", "--param", "flowcon.alhpa=1"], &["did you mean \"alpha\"?"]),
        (
            &["fit", "none.jsonl", "--param", "none.interval=1", "--param", "none.interval=2"],
            &["none.interval: given twice"],
        ),
        (&["fit"], &["FRAMES"]),
        (&["simulate", "two.toml", "--against", "cut.jsonl"], &[cut_line.as_str()]),
        (
            &["simulate", "two.toml", "--policy", "none,tradl", "--against", "none.jsonl"],
            &["--against with 2 policies", "--policy"],
        ),
        (&["simulate", "two.toml", "--against", "other.jsonl"], &["long, short", "has vae"]),
    ] {
        let (code, out, said) = paceline(folder.path(), words).await;
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{words:?}: {said}");
    }
}
