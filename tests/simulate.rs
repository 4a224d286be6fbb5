//! Simulations as a user runs them: tables, JSON, pages, sweeps, and errors.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::process::Output;

use paceline_system_tests::Allocator;
use serde_json::Value;

async fn paceline(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Allocator::command(words).unwrap().output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// The output of a command that must succeed without a warning.
async fn printed(words: &[&str]) -> String {
    let (code, said, error) = paceline(words).await;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{words:?}");
    said
}

async fn json(words: &[&str]) -> Value {
    serde_json::from_str(&printed(words).await).unwrap()
}

/// The parameters that FlowCon's Table 2 varies.
const TABLE_2: &[&str] = &[
    "simulate",
    "FC-3",
    "--policy",
    "none,flowcon:published",
    "--metric",
    "completion:mnist-t",
    "--sweep",
    "flowcon.alpha=0.01,0.05",
    "--sweep",
    "flowcon.interval=20..60/20",
];

#[tokio::test]
async fn policies_are_shown_beside_the_best_possible() {
    let table = printed(&["simulate", "FC-3", "--policy", "none,flowcon:published"]).await;
    let row = |title: &str| {
        let line = table.lines().find(|line| line.starts_with(title)).unwrap();
        line.trim_start_matches(title).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(row("makespan [s]"), ["394", "394", "394"], "{table}");
    let completion = row("mean completion [s]");
    assert_eq!((completion[0], completion[2]), ("267.9", "199.6"), "the paper has 394 s: {table}");
    assert!(table.lines().skip(1).all(|line| line.chars().count() <= 100), "{table}");
    let all = json(&["simulate", "FC-3", "--policy", "none,flowcon:published", "--json"]).await;
    let mean = all["policies"][0]["metrics"]["completion_mean"]["mean"].as_f64().unwrap();
    assert_eq!(format!("{mean:.1}"), "267.9");
    let jobs = all["policies"][1]["runs"][0]["outcome"]["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3);
}

#[tokio::test]
async fn the_same_command_writes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let table: &[&str] = &["simulate", "SP-20", "--seeds", "2"];
    let as_json = [table, &["--json"]].concat();
    let (first, second) = (file("a.html"), file("b.html"));
    for words in [table, as_json.as_slice(), TABLE_2] {
        let one = printed(&[words, &["--report", &first]].concat()).await;
        let other = printed(&[words, &["--report", &second]].concat()).await;
        assert!(one == other, "{words:?} printed something else");
        assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "{words:?}: other pages");
    }
}

#[tokio::test]
async fn a_scenario_is_printed_changed_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    let mine = mine.to_string_lossy();
    let text = printed(&["scenarios", "fc-3"]).await;
    fs::write(&*mine, &text).unwrap();
    assert_eq!(printed(&["simulate", &mine]).await, printed(&["simulate", "FC-3"]).await);
    // The second job has almost no work, so the others do not wait for it.
    fs::write(&*mine, text.replace("at = 40.0", "at = 0.0").replace("148.5", "0.1")).unwrap();
    let all = json(&["simulate", &mine, "--policy", "none", "--json"]).await;
    let makespan = all["policies"][0]["metrics"]["makespan"]["mean"].as_f64().unwrap();
    assert!((makespan - 245.6).abs() < 0.01, "217.3 + 0.1 + 28.2 s of work take {makespan} s");
}

#[tokio::test]
async fn all_scenarios_are_listed_with_description() {
    let list = printed(&["scenarios"]).await;
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    // Long descriptions are wrapped.
    let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = json(&["scenarios", "--json"]).await;
    let all = all.as_array().unwrap();
    assert!(all.len() >= 20, "{list}");
    for scenario in all {
        let (name, about) = (&scenario["name"], &scenario["description"]);
        assert!(list.contains(name.as_str().unwrap()), "{name} is not in {list}");
        assert!(list.contains(about.as_str().unwrap()), "{about} is not in {list}");
        assert!(scenario["jobs"].as_u64().unwrap() > 0);
    }
}

#[tokio::test]
async fn a_reader_that_has_read_enough_ends_nothing_in_a_panic() {
    for words in [&["scenarios"][..], &["policies"], &["simulate", "FC-3"]] {
        let output = Allocator::unread(words).await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[tokio::test]
async fn recorded_simulation_replays_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.jsonl");
    let frames = frames.to_string_lossy();
    printed(&["simulate", "TR-5", "--policy", "tradl", "--record", &frames]).await;
    let replayed = printed(&["replay", "--policy", "tradl", &frames]).await;
    let lines = fs::read_to_string(&*frames).unwrap().lines().count();
    assert!(lines > 10 && replayed.lines().count() == lines, "{lines} frames: {replayed}");
}

#[tokio::test]
async fn a_report_is_one_page_with_every_picture() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    printed(&["simulate", "FC-3", "--report", &page.to_string_lossy()]).await;
    let page = fs::read_to_string(page).unwrap();
    for part in [
        "<!DOCTYPE html>",
        "Paceline simulate: FC-3",
        "One objective against another",
        "Distance to the optimum",
        "Completion times",
        "CPU share over time",
        "Convergence of sets",
        "flowcon:published",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http") && !page.contains("<script"), "{page}");
}

#[tokio::test]
async fn a_sweep_prints_a_heat_map_for_people_programs_and_browsers() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sweep.html");
    let text = printed(&[TABLE_2, &["--report", &page.to_string_lossy()]].concat()).await;
    assert!(text.contains("completion of mnist-t [s] by alpha (down) and interval (across)"));
    assert!(text.contains("none: 84.6"), "the paper has 84.7 s: {text}");
    assert!(!text.contains('\u{1b}'), "nothing for a terminal where there is none: {text}");
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 100), "{text}");
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<td style=\"background:").count(), 6, "{page}");
    let all = json(&[TABLE_2, &["--json"]].concat()).await;
    assert_eq!(all["axes"][1]["values"], serde_json::json!([20.0, 40.0, 60.0]));
    let point = &all["policies"][0]["points"][3];
    assert_eq!(point["params"], serde_json::json!({"alpha": 0.05, "interval": 20.0}));
    let change = point["change"].as_f64().unwrap();
    assert!((-0.35..-0.2).contains(&change), "the paper has -21 to -30 %: {change}");
}

#[tokio::test]
async fn invalid_simulation_ends_with_2_and_one_line_of_advice() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.toml");
    fs::write(&broken, "name = \"x\"\ndescription = \"\"\n[[nod]]\ncpus = 1\n").unwrap();
    let broken = broken.to_string_lossy();
    let sweep = |values: &'static str| ["simulate", "FC-3", "--sweep", values];
    for (words, parts) in [
        (&["simulate", "FC-4"][..], &["\"FC-4\"", "did you mean \"FC-"][..]),
        (&["scenarios", "DQ-vra"], &["did you mean \"DQ-var\"?"]),
        (&["simulate", &broken], &["broken.toml", "line 3", "did you mean \"node\"?"]),
        (&["simulate", "FC-3", "--policy", "flocon"], &["did you mean \"flowcon\"?"]),
        (&["simulate", "FC-3", "--policy", "flowcon:exact"], &["exact", "published"]),
        (&["simulate", "FC-3", "--policy", "kod2"], &["kod2", "[[gang]]"]),
        (&["simulate", "FC-3", "--record", "x"], &["--record", "4 policies", "one policy"]),
        (&["simulate", "DL-3", "--report", "x"], &["--report of DL-3", "nothing over time"]),
        (&sweep("flowcon.alpha"), &["\"flowcon.alpha\"", "POLICY.PARAMETER=VALUES"]),
        (&sweep("flowcon.alhpa=1"), &["alhpa", "did you mean \"alpha\"?"]),
        (&sweep("flocon.alpha=1"), &["flocon", "did you mean \"flowcon\"?"]),
        (&sweep("flowcon.beta=0..2/1"), &["parameter beta", "above 0"]),
        (&sweep("flowcon.alpha=0.1..0.2"), &["0.1..0.2", "20..60/10"]),
        (&[&sweep("flowcon.alpha=1")[..], &["--metric", "makspan"]].concat(), &["\"makespan\"?"]),
        (
            &[&sweep("flowcon.alpha=1")[..], &["--metric", "completion:mnist-x"]].concat(),
            &["completion:mnist-x", "vae, mnist-p, mnist-t"],
        ),
        (
            &[&sweep("flowcon.alpha=1")[..], &["--sweep", "tradl.interval=1"]].concat(),
            &["flowcon.alpha and tradl.interval", "parameters of one policy"],
        ),
    ] {
        let (code, said, error) = paceline(words).await;
        assert_eq!((code, said.as_str(), error.lines().count()), (Some(2), "", 1), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{words:?}: {error}");
    }
}

#[tokio::test]
async fn options_that_do_not_go_together_end_with_2() {
    for words in [
        &["simulate", "FC-3", "--metric", "makespan"][..],
        &["simulate", "FC-3", "--sweep", "flowcon.alpha=1", "--record", "x"],
        &["simulate", "FC-3", "--seeds", "0"],
        &["simulate"],
    ] {
        let (code, said, error) = paceline(words).await;
        assert_eq!((code, said.as_str()), (Some(2), ""), "{error}");
    }
}

#[tokio::test]
async fn result_that_cannot_be_written_ends_with_1_and_its_name() {
    for option in ["--report", "--record"] {
        let words = ["simulate", "FC-3", "--policy", "flowcon", option, "/no/such/file"];
        let (code, said, error) = paceline(&words).await;
        // Nothing was simulated before.
        assert_eq!((code, said.as_str(), error.lines().count()), (Some(1), "", 1), "{error}");
        assert!(error.contains("cannot write /no/such/file"), "{error}");
    }
}
