//! What scripts rely on: exit codes, and the content of help and errors.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::process::{Command, Output};

use paceline_system_tests::{Allocator, program};

async fn paceline(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Allocator::command(words).unwrap().env_remove("DOCKER_HOST").output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn without_an_engine_it_ends_with_3_and_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let host = format!("unix://{}/no.sock", folder.path().display());
    let docker = ["--host", &host];
    let kubernetes = ["--runtime", "cri", "--cri", &host];
    for words in [
        [&docker[..], &["run"]].concat(),
        [&docker[..], &["restore"]].concat(),
        [&docker[..], &["check", "vae"]].concat(),
        [&kubernetes[..], &["agent"]].concat(),
        [&kubernetes[..], &["restore"]].concat(),
    ] {
        let (code, _, said) = paceline(&words).await;
        assert_eq!(code, Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&host) && said.contains("cannot reach"), "{said}");
        assert!(said.contains("run `paceline doctor` to find out more"), "{said}");
    }
}

#[test]
fn limit_of_open_files_is_named_in_one_line() {
    for words in ["status", "policies", "simulate FC-3"] {
        let script = format!("ulimit -n 6; exec \"$0\" {words}");
        let output =
            Command::new("sh").args(["-c", &script]).arg(program("paceline").unwrap()).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{words}: {said}");
        assert!(said.contains("cannot start: Too many open files"), "{words}: {said}");
        assert!(said.contains("raise the limit of open files"), "{words}: {said}");
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
        (&["inject", "-f", "/dev/zero"], "8 MiB, the most for manifests"),
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
        (&["exec", "--weight", "-1", "--", "true"], &["weight", "-1", "above 0"]),
        (&["audit", "tail", "-n", "-1"], &["-1", "--entries"]),
        (&["run", "--policy", "flowcon", "--param", "beta=-1"], &["beta", "-1", "above 0"]),
        (&["run", "--param", "beta=2"], &["default policy is now paceline", "--policy flowcon"]),
        (&["run", "--param", "speed=1"], &["speed", "theta"]),
        (&["run", "--policy", "flowcon", "--param", "alhpa=1"], &["did you mean \"alpha\"?"]),
        (&["run", "--policy", "flocon"], &["flocon", "did you mean \"flowcon\"?"]),
        (&["run", "--variant", "exact"], &["exact", "resolved", "published"]),
        (&["run", "--policy", "kod2"], &["kod2", "cluster", "paceline manager"]),
        (&["run", "--enforcement", "hope"], &["hope", "quota+leftover"]),
        (&["run", "--runtime", "podman"], &["podman", "docker", "cri"]),
        (&["run", "--runtime", "cri", "--cri", "tcp://x"], &["\"tcp://x\"", "unix://PATH"]),
        (&["run", "--runtime", "cri", "--enforcement", "shares"], &["\"shares\"", "Kubernetes"]),
        (&["agent", "--runtime", "cri", "--node", "a=0"], &["--node", "Kubernetes"]),
        (&["submit", "--withdraw", "x", "--runtime", "cri"], &["--runtime cri", "needs Docker"]),
        (&["replay", "--policy", "best"], &["best", "none", "tradl", "fifo-gang"]),
        (&["replay", "no-such-file"], &["cannot read", "no-such-file", "--record FILE"]),
        (&["run", "--config", "/no/such.toml"], &["cannot read /no/such.toml"]),
        (&["submit", "/no/such.toml"], &["cannot read /no/such.toml"]),
        (&["run", "--with-label", ""], &["with_label \"\"", "KEY=VALUE"]),
        (&["run", "--move-within", "soon"], &["soon", "a number of seconds"]),
        (&["simulate", "FC-3", "--seeds", "x"], &["'x'", "a whole number from 1 to 10000"]),
        (&["simulate", "/no/such.toml"], &["cannot read /no/such.toml"]),
        (&["simulate", "FC-3", "--sweep", "x"], &["invalid --sweep \"x\": expected POLICY."]),
        (
            &["--host", "foo", "run"],
            &["invalid --host \"foo\": expected unix://PATH or tcp://HOST:PORT"],
        ),
        (&["--host", "tcp://", "restore"], &["invalid --host \"tcp://\"", "DOCKER_HOST"]),
        (&["--host", "unix://", "check", "vae"], &["invalid --host \"unix://\""]),
        (&["check", ""], &["CONTAINER", "expected a name or an id"]),
        (&["pin", "", "0.5"], &["NAME", "expected a name or an id"]),
        (&["audit", "tail", "--state-dir", "/no/such"], &["no audit log", "/no/such"]),
        (&["set", "vae", "--batch-latency", "1e300"], &["1e300", "at most 31536000"]),
        (&["run", "--listen", "0.0.0.0:0"], &["other machines can reach it", "token_file"]),
        (&["audit", "tail", "-n", "x"], &["'x'", "a whole number from 0 to 65535"]),
        (&["top", "--times", "0"], &["'0'", "a whole number from 1 to 1000000000"]),
        (&["explain", "vae", "-n", "0"], &["'0'", "a whole number from 1 to 1000"]),
        (&["exec", "python", "train.py"], &["cannot run python", "exec -- python"]),
        (&["exec", "--acceptable", "x", "--", "true"], &["--acceptable=\"x\"", "a finite number"]),
        (&["exec", "--label", "paceline.work=x", "--", "true"], &["label paceline.work=\"x\""]),
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
async fn configuration_that_a_run_refuses_is_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("paceline.toml");
    let config = config.to_string_lossy();
    for (text, part) in [
        ("state_dir = ''", "state_dir = '': expected a path"),
        ("control = ''", "control = '': expected a path"),
        ("[web]\nlisten = '0.0.0.0:7224'", "cannot listen on 0.0.0.0:7224"),
        ("[web]\ntls_key = 'k'", "cannot use tls_key without tls_certificate"),
        ("[web]\ntoken_file = '/no/such'", "/no/such"),
    ] {
        std::fs::write(&*config, text).unwrap();
        for words in [["config", "check"], ["run", "--config"]] {
            let mut words = words.to_vec();
            words.push(&config);
            // A run needs an engine before it reads the files of its page.
            if words[0] == "run" && part == "/no/such" {
                continue;
            }
            let (code, _, said) = paceline(&words).await;
            assert_eq!((code, said.lines().count()), (Some(2), 1), "{words:?}: {said}");
            assert!(said.contains(&*config) && said.contains(part), "{words:?}: {said}");
        }
    }
}

#[tokio::test]
async fn empty_variable_counts_as_unset() {
    const NAMES: [&str; 8] = [
        "PACELINE_RUNTIME",
        "PACELINE_LOG",
        "PACELINE_LOG_FORMAT",
        "PACELINE_CONTROL",
        "PACELINE_CONTROL_GROUP",
        "PACELINE_STATE_DIR",
        "PACELINE_PROC",
        "CONTAINER_RUNTIME_ENDPOINT",
    ];
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("paceline.toml");
    std::fs::write(&config, "").unwrap();
    for words in [vec!["policies"], vec!["config", "check", config.to_str().unwrap()]] {
        let mut command = Allocator::command(&words).unwrap();
        let output = command.envs(NAMES.map(|name| (name, ""))).output().await.unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    let mut command = Allocator::command(&["config", "show", "--json"]).unwrap();
    let output = command.env("PACELINE_STATE_DIR", "").output().await.unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(shown["state_dir"].as_str().unwrap().ends_with("/paceline"), "{shown}");
    let mut command = Allocator::command(&["check", "x"]).unwrap();
    let output = command.env("DOCKER_HOST", "").output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("invalid --host"), "{said}");
}

/// Runs one command with a text as its standard input.
async fn with_input(words: &[&str], text: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, text).unwrap();
    let mut command = Allocator::command(words).unwrap();
    command.stdin(std::fs::File::open(path).unwrap());
    let Output { status, stdout, stderr } = command.output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn dash_is_standard_input_where_a_file_is_read() {
    let (_, scenario, _) = paceline(&["scenarios", "FC-3"]).await;
    let frame = r#"{"t": 0, "jobs": [{"id": "a"}]}"#;
    for (words, text, part) in [
        (&["config", "check", "-"][..], "policy = 'tradl'", "standard input: valid"),
        (&["replay", "--policy", "tradl", "-"], frame, "\"policy\":\"tradl\""),
        (&["simulate", "-", "--policy", "none", "--seeds", "1"], &scenario, "none"),
    ] {
        let (code, said, error) = with_input(words, text).await;
        assert_eq!(code, Some(0), "{words:?}: {error}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
    for (words, text) in [
        (&["config", "check", "-"][..], "polcy = 'tradl'"),
        (&["simulate", "-"], "x"),
        (&["fit", "-"], "x"),
        (&["submit", "-"], "x"),
    ] {
        let (code, _, error) = with_input(words, text).await;
        assert_eq!(code, Some(2), "{words:?}: {error}");
        assert!(error.contains("standard input: line 1"), "{words:?}: {error}");
    }
}

#[tokio::test]
async fn cluster_without_a_manager_names_the_managers_command() {
    let words = ["status", "--cluster", "--control", "/no/such/socket"];
    let (code, _, said) = paceline(&words).await;
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("no manager answers at /no/such/socket"), "{said}");
    assert!(said.contains("`paceline manager`") && !said.contains("`paceline run`"), "{said}");
}

#[tokio::test]
async fn log_without_an_entry_is_not_shown_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("audit.jsonl"), "garbage\n\u{0}\n").unwrap();
    let words = ["audit", "tail", "--state-dir", folder.path().to_str().unwrap()];
    let (code, said, error) = paceline(&words).await;
    assert_eq!((code, said.as_str()), (Some(1), ""), "{error}");
    assert!(error.contains("paceline audit verify"), "{error}");
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
        "inject",
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
async fn a_replay_without_frames_says_that_nothing_was_read() {
    for frames in ["", "\n\n"] {
        let (code, said, error) = replay(&["--policy", "tradl"], frames).await;
        assert_eq!((code, said.as_str()), (Some(0), ""), "{error}");
        assert!(error.contains("no frames") && error.lines().count() == 1, "{error}");
    }
}

#[tokio::test]
async fn a_malformed_frame_ends_a_replay_with_2_and_the_lines_number() {
    let good = r#"{"t": 1, "jobs": [{"id": "a"}]}"#;
    for bad in [
        r#"{"t": 0}"#,
        r#"{"jobs": []}"#,
        "{",
        r#"{"t": 2, "jobs": [{"id": 7}]}"#,
        r#"{"t": 2, "nodes": [{"name": "n", "cpus": -4}]}"#,
    ] {
        let (code, said, error) =
            replay(&["--policy", "tradl"], &format!("{good}\n\n{bad}\n")).await;
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("frames.jsonl: line 3"), "{error}");
        assert_eq!(error.matches(" line ").count(), 1, "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
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

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a # one\n  labels: {paceline.dev/enable: \"true\"}\nspec:\n  containers:\n  - name: a\n    command: [a]\n";

/// Runs `paceline inject` over a manifest on its standard input.
async fn inject(words: &[&str], manifest: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.yaml");
    std::fs::write(&path, manifest).unwrap();
    let mut command = Allocator::command(&[&["inject"], words].concat()).unwrap();
    command.stdin(std::fs::File::open(path).unwrap());
    let Output { status, stdout, stderr } = command.output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn inject_prints_manifests_and_says_what_it_did() {
    let (code, injected, said) = inject(&["--image", "registry.example/sidecar:2"], POD).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(injected.contains("image: registry.example/sidecar:2"), "{injected}");
    assert_eq!(said, "paceline: document 1, Pod \"a\": container \"a\" runs under the sidecar\n");
    let (code, removed, said) = inject(&["--remove", "--quiet"], &injected).await;
    assert_eq!((code, removed.as_str(), said.as_str()), (Some(0), POD, ""));
    let other = POD.replace("true", "false");
    let (code, same, said) = inject(&[], &other).await;
    assert_eq!((code, same), (Some(0), other));
    assert_eq!(
        said,
        "paceline: no pod was injected; label its template paceline.dev/enable: \"true\"\n"
    );
}

#[tokio::test]
async fn inject_names_a_labelled_pod_of_a_kind_that_it_does_not_know() {
    let custom = "apiVersion: ray.example/v1\nkind: Cluster\nmetadata: {name: r}\nspec:\n  head:\n    template:\n      \
                  metadata: {labels: {paceline.dev/enable: \"true\"}}\n      spec: {containers: [{name: a, command: [a]}]}\n";
    let named = "paceline: document 1, Cluster \"r\": spec.head.template: pods of Cluster of ray.example/v1 are";
    let (code, same, said) = inject(&[], custom).await;
    assert_eq!((code, same.as_str()), (Some(0), custom), "{said}");
    assert!(said.starts_with(named) && !said.contains("label its template"), "{said}");
    let (code, _, said) = inject(&[], &format!("{custom}---\n{POD}")).await;
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    assert!(said.starts_with(named), "{said}");
}

#[tokio::test]
async fn inject_refuses_a_pod_with_2_and_prints_nothing() {
    let bad = POD.replace("    command: [a]\n", "");
    let (code, printed, said) = inject(&[], &format!("{POD}---\n{bad}")).await;
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.starts_with("paceline: cannot inject document 2, Pod \"a\", "), "{said}");
    let items = POD.replace('\n', "\n  ");
    let list = format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- {}\n",
        items.replace("  command: [a]", "").trim_end()
    );
    let (code, answer, said) = inject(&[], &list).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(answer.starts_with(&list) && answer.contains("severity: error"), "{answer}");
}

#[tokio::test]
async fn inject_joins_files_and_writes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second, output) = (path("a.yaml"), path("b.yaml"), path("out.yaml"));
    std::fs::write(&first, POD).unwrap();
    std::fs::write(&second, "kind: ConfigMap\n").unwrap();
    let words = ["inject", "-f", &first, "-f", &second, "-o", &output];
    let (code, printed, said) = paceline(&words).await;
    assert_eq!((code, printed.as_str()), (Some(0), ""), "{said}");
    assert!(said.starts_with(&format!("paceline: {first}: document 1, Pod")), "{said}");
    let written = std::fs::read_to_string(&output).unwrap();
    assert!(written.ends_with("\n---\nkind: ConfigMap\n"), "{written}");
    let (code, _, said) = paceline(&["inject", "-f", &path("none.yaml")]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot read") && said.contains("name a file of manifests"), "{said}");
}

#[tokio::test]
async fn completions_and_manual_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, said, error) = paceline(&["completions", shell]).await;
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains("simulate") && said.contains("restore"), "{said}");
    }
    assert_eq!(paceline(&["completions", "tcsh"]).await.0, Some(2));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_string_lossy();
    let (code, _, error) = paceline(&["man", "--into", &path]).await;
    assert_eq!(code, Some(0), "{error}");
    for name in ["paceline.1", "paceline-run.1", "paceline-simulate.1"] {
        let page = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let (_, printed, _) = paceline(&["man"]).await;
    assert_eq!(printed, std::fs::read_to_string(folder.path().join("paceline.1")).unwrap());
    let (code, _, error) = paceline(&["man", "fly"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("invalid command \"fly\": expected"), "{error}");
}
