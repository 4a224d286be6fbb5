//! Checks the metrics, rules and configuration for Prometheus with its own checker, `promtool`.

#![expect(clippy::indexing_slicing, reason = "a missing JSON field is null")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_reporter::{LocalAddr, Reporter};
use paceline_system_tests::sample_snapshot;
use serde_json::{Value, json};

fn main() -> ExitCode {
    let args = Arguments::from_args();
    // Also when tests are only listed: a runner learns from the list which are skipped.
    let promtool = find();
    let missing = promtool.is_none();
    let trial = move |test: fn(&str) -> anyhow::Result<()>| {
        let promtool = promtool.clone();
        move || Ok(test(promtool.as_deref().unwrap_or_default())?)
    };
    let trials = [
        Trial::test("metrics_of_a_silent_job", trial(|promtool| metrics_of(promtool, &silent()?))),
        Trial::test("metrics_of_a_busy_job", trial(metrics_of_a_busy_job)),
        Trial::test("metrics_of_the_allocator", trial(metrics_of_the_allocator)),
        Trial::test("alert_rules", trial(alert_rules)),
        Trial::test("alerts_fire_when_they_are_to", trial(alerts_fire)),
        Trial::test("queries_of_the_dashboard", trial(dashboard)),
        Trial::test("configuration_of_the_example", trial(configuration)),
    ];
    let trials = trials.map(|trial| trial.with_ignored_flag(missing));
    libtest_mimic::run(&args, trials.into()).exit_code()
}

/// The path of promtool. If it cannot be had, the script prints why.
fn find() -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/promtool.sh");
    let found = Command::new(script).stderr(Stdio::inherit()).output().ok()?;
    let path = String::from_utf8(found.stdout).ok()?;
    found.status.success().then(|| path.trim().to_owned())
}

fn silent() -> anyhow::Result<Reporter> {
    Ok(Reporter::builder("silent").listen("127.0.0.1:0").start()?)
}

fn metrics_of_a_busy_job(promtool: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    metrics_of(promtool, &busy(folder.path())?)
}

/// A job with every value, and with event files in this folder.
fn busy(folder: &Path) -> anyhow::Result<Reporter> {
    let builder =
        Reporter::builder("a \"b\"\\c\nd").acceptable(2.0).objective(1.0).batch_latency(0.1);
    let builder = builder.total_steps(1_000).dataset("MNIST").tensorboard(folder);
    let reporter = builder.listen("127.0.0.1:0").start()?;
    for step in 0..500 {
        reporter.batch().loss(100.0 / f64::from(step + 1));
    }
    reporter.report(f64::NAN);
    reporter.validation(3.0);
    reporter.epoch(2);
    asked(&address_of(&reporter)?, "POST /v1/checkpoint")?;
    let request = reporter.checkpoint_requested().context("a checkpoint is asked for")?;
    request.saved("latest.bin");
    let text = served(&address_of(&reporter)?)?;
    for name in ["paceline_last_checkpoint_step 501", "paceline_tensorboard_points_total"] {
        ensure!(text.contains(name), "{name} is not in {text}");
    }
    Ok(reporter)
}

fn address_of(reporter: &Reporter) -> anyhow::Result<String> {
    match reporter.local_addr() {
        Some(LocalAddr::Tcp(address)) => Ok(address.to_string()),
        _ => anyhow::bail!("it listens on a port"),
    }
}

fn metrics_of(promtool: &str, reporter: &Reporter) -> anyhow::Result<()> {
    check_metrics(promtool, &served(&address_of(reporter)?)?)
}

fn metrics_of_the_allocator(promtool: &str) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let page = runtime.block_on(sample_snapshot::page("127.0.0.1:0", 1_760_000_000.0, 60))?;
    check_metrics(promtool, &served(&page.0.address().to_string())?)
}

fn alert_rules(promtool: &str) -> anyhow::Result<()> {
    run_promtool(promtool, &["check", "rules", &example("alerts.yml")]).map(drop)
}

fn alerts_fire(promtool: &str) -> anyhow::Result<()> {
    run_promtool(promtool, &["test", "rules", &example("alerts.test.yml")]).map(drop)
}

fn configuration(promtool: &str) -> anyhow::Result<()> {
    run_promtool(promtool, &["check", "config", &example("prometheus.yml")]).map(drop)
}

/// Turns each query into a rule, since promtool can check rules only.
fn dashboard(promtool: &str) -> anyhow::Result<()> {
    let dashboard: Value = serde_json::from_slice(&std::fs::read(example("grafana.json"))?)?;
    let panels = dashboard["panels"].as_array().context("it has panels")?;
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.filter_map(|target| target["expr"].as_str());
    let rule = |(number, query): (usize, &str)| json!({"record": format!("query:{number}"), "expr": query});
    let rules: Vec<Value> = queries.enumerate().map(rule).collect();
    let count = rules.len();
    let file = tempfile::NamedTempFile::with_suffix(".yml")?;
    // JSON is YAML as well.
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(file.path(), groups.to_string())?;
    let said = run_promtool(promtool, &["check", "rules", &file.path().to_string_lossy()])?;
    ensure!(count > 20 && said.contains(&format!("{count} rules found")), "{said}");
    Ok(())
}

fn example(name: &str) -> String {
    format!("{}/../examples/monitoring/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs promtool; returns its output if it accepts the input.
fn run_promtool(promtool: &str, words: &[&str]) -> anyhow::Result<String> {
    let said = Command::new(promtool).args(words).output()?;
    let [out, err] = [&said.stdout, &said.stderr].map(|said| String::from_utf8_lossy(said));
    ensure!(said.status.success(), "{out}{err}");
    Ok(out.into_owned())
}

fn check_metrics(promtool: &str, text: &str) -> anyhow::Result<()> {
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("it is piped")?.write_all(text.as_bytes())?;
    let said = child.wait_with_output()?;
    let [out, err] = [&said.stdout, &said.stderr].map(|said| String::from_utf8_lossy(said));
    // It also exits with 0 when it has only advice, which must be followed as well.
    ensure!(said.status.success() && out.is_empty() && err.is_empty(), "{out}{err}\n{text}");
    Ok(())
}

/// The metrics that are served at an address.
fn served(address: &str) -> anyhow::Result<String> {
    asked(address, "GET /metrics")
}

/// The body of the answer to a request.
fn asked(address: &str, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("{request} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("the head ends")?;
    ensure!(!body.is_empty(), "{answer}");
    Ok(body.to_owned())
}
