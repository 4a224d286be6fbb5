//! `paceline bench` with toy jobs: its behaviour, not its figures.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use paceline_system_tests::{Allocator, Job, TestEnv, json_lines, until};
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

/// Writes a schedule called `s`: `head`, then toy jobs, each given by its name, its command line
/// and the rest of its table.
fn schedule(env: &TestEnv, head: &str, jobs: &[(&str, &[&str], &str)]) -> anyhow::Result<PathBuf> {
    let mut text = format!("name = \"s\"\n{head}\n");
    let image = env.image();
    for (name, command, rest) in jobs {
        writeln!(text, "[[job]]\nname = {name:?}\nimage = {image:?}")?;
        writeln!(text, "command = {command:?}\n{rest}")?;
    }
    let path = env.file("s.toml");
    fs::write(&path, text)?;
    Ok(path)
}

/// `paceline bench` of that schedule, with its results in the test's folder.
fn bench(env: &TestEnv, schedule: &Path) -> anyhow::Result<Command> {
    let mut command = Allocator::command(&["bench"])?;
    command.arg(schedule).arg("--report").arg(env.file("results/report.html"));
    command.env("PACELINE_STATE_DIR", Allocator::state(env));
    Ok(command)
}

async fn succeed(mut command: Command) -> anyhow::Result<String> {
    let Output { status, stdout, stderr } = command.output().await?;
    let said = String::from_utf8_lossy(&stderr).into_owned();
    anyhow::ensure!(status.success(), "{status}: {said}{}", String::from_utf8_lossy(&stdout));
    Ok(said)
}

fn json(env: &TestEnv, file: &str) -> anyhow::Result<Value> {
    let path = env.file("results").join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// The names of the runs' folders.
fn runs(env: &TestEnv) -> anyhow::Result<Vec<String>> {
    let folders = fs::read_dir(env.file("results/runs"))?;
    let mut names: Vec<String> = folders
        .map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// The bench's containers that the engine has.
async fn containers(env: &TestEnv) -> anyhow::Result<Vec<ContainerSummary>> {
    let run = json(env, "bench.json")?;
    let run = run.get("run").and_then(Value::as_str).context("a bench has a name")?;
    let filters = [("label", vec![format!("paceline.bench={run}")])].into_iter().collect();
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    Ok(env.docker().list_containers(Some(options)).await?)
}

/// Fails if the engine still has a container of the bench.
async fn ensure_nothing_left(env: &TestEnv) -> anyhow::Result<()> {
    let left = containers(env).await?;
    anyhow::ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// Fails if the bench's containers have health checks, whose CPU would count as their jobs' work.
async fn ensure_no_health_checks(env: &TestEnv) -> anyhow::Result<()> {
    let checks = until("there are containers", || async {
        let mut checks = Vec::new();
        for id in containers(env).await?.iter().filter_map(|container| container.id.as_deref()) {
            // One that ended meanwhile is gone.
            let Ok(found) = env.docker().inspect_container(id, None).await else { return Ok(None) };
            checks.push(found.config.and_then(|config| config.healthcheck?.test));
        }
        Ok(Some(checks).filter(|checks| !checks.is_empty()))
    })
    .await?;
    let none = Some(vec!["NONE".to_owned()]);
    anyhow::ensure!(checks.iter().all(|check| *check == none), "{checks:?}");
    Ok(())
}

pub(crate) async fn interrupted_bench_resumes_at_the_first_unfinished_run(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let head = "policies = [\"none\", \"flowcon\"]\nrepeats = 2\nwarm-up = false";
    // Each takes long enough for the second run to be seen before it ends.
    let jobs: [(&str, &[&str], &str); 2] = [
        ("one", &["--sleep", "3", "--steps", "20"], "arrive = 0"),
        ("two", &["--sleep", "1", "--steps", "20"], "arrive = 1"),
    ];
    let file = schedule(&env, head, &jobs)?;
    let mut first = Allocator::spawn(bench(&env, &file)?)?;
    let whole = env.file("results/runs/001-none/run.json");
    until("the first run is whole", || async { Ok(whole.exists().then_some(())) })
        .await
        .with_context(|| first.said())?;
    until("the second has begun", || async {
        let log = env.file("results/runs/002-flowcon/samples.jsonl");
        Ok(fs::metadata(log).is_ok_and(|file| file.len() > 0).then_some(()))
    })
    .await?;
    ensure_no_health_checks(&env).await?;
    first.signal(Signal::INT)?;
    anyhow::ensure!(first.ended().await?.code() == Some(130), "{}", first.said());
    ensure_nothing_left(&env).await?;
    let kept = fs::read(&whole)?;

    let said = succeed(bench(&env, &file)?).await?;
    anyhow::ensure!(said.contains("s: 1 of 4 runs are complete; continuing"), "{said}");
    anyhow::ensure!(fs::read(&whole)? == kept, "the first run was made again");
    let order = ["001-none", "002-flowcon", "003-flowcon", "004-none"];
    anyhow::ensure!(runs(&env)? == order, "{:?}", runs(&env)?);
    for run in order {
        let run = env.file("results/runs").join(run);
        anyhow::ensure!(!json_lines(&run.join("frames.jsonl"))?.is_empty());
        anyhow::ensure!(!json_lines(&run.join("audit.jsonl"))?.is_empty());
        anyhow::ensure!(run.join("two.log").exists() && !run.join("state").exists());
    }
    ensure_nothing_left(&env).await?;

    fs::write(&file, fs::read_to_string(&file)?.replace("arrive = 1", "arrive = 2"))?;
    let refused = bench(&env, &file)?.output().await?;
    let said = String::from_utf8_lossy(&refused.stderr);
    anyhow::ensure!(refused.status.code() == Some(2), "{said}");
    anyhow::ensure!(said.contains("job \"two\".arrive is 2.0, was 1.0"), "{said}");
    Ok(())
}

pub(crate) async fn the_oracle_lets_the_shortest_job_run_first(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let command: &[&str] = &["--burners", "1", "--steps", "{steps}"];
    let jobs =
        [("long", command, "arrive = 0\nwork = 4"), ("short", command, "arrive = 1\nwork = 1")];
    let file = schedule(&env, "policies = [\"oracle\"]", &jobs)?;
    succeed(bench(&env, &file)?).await?;
    let run = json(&env, "runs/001-oracle/run.json")?;
    let ended = |job: &str| run.pointer(&format!("/jobs/{job}/ended")).and_then(Value::as_f64);
    let (long, short) = (ended("0").context("long ended")?, ended("1").context("short ended")?);
    anyhow::ensure!(short < long, "the short job ended after {short} s, the long one after {long}");
    let frames = json_lines(&env.file("results/runs/001-oracle/frames.jsonl"))?;
    let jobs = frames.iter().filter_map(|frame| frame.get("jobs")?.as_array()).flatten();
    let waits = jobs.filter(|job| {
        let number = |path: &str| job.pointer(path).and_then(Value::as_f64);
        let left = number("/remaining").is_some_and(|left| left > 0.0 && left < 4.0);
        left && number("/limit/applied").is_some_and(|applied| applied < 0.02)
    });
    let waits: Vec<&Value> = waits.collect();
    let long = Value::from("long");
    anyhow::ensure!(waits.iter().any(|job| job.get("id") == Some(&long)), "{frames:?}");
    ensure_nothing_left(&env).await
}

pub(crate) async fn run_beside_other_work_is_marked_and_ends_on_time(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let other =
        Job { name: "other", args: vec!["--burners", "1"], stranger: true, ..Job::default() };
    env.start(other).await?;
    // By itself it would end much later, however long the engine takes to end it.
    let command: &[&str] = &["--sleep", "300", "--steps", "1", "--heed-term"];
    let jobs = [("slow", command, "arrive = 0")];
    let file = schedule(&env, "policies = [\"none\"]\nuntil = 5", &jobs)?;
    let said = succeed(bench(&env, &file)?).await?;
    anyhow::ensure!(said.contains("run 001-none is disturbed: other work took"), "{said}");
    let run = json(&env, "runs/001-none/run.json")?;
    let why = run.pointer("/host/spoiled").and_then(Value::as_str).unwrap_or_default();
    anyhow::ensure!(why.ends_with("% of the machine"), "{run}");
    let findings = json(&env, "result.json")?;
    let figure = findings.pointer("/arms/0/figures/jobs_mean");
    let is = |name: &str| figure.and_then(|figure| figure.get(name));
    anyhow::ensure!(is("mean") == Some(&Value::from(1.0)), "{findings}");
    anyhow::ensure!(is("disturbed") == Some(&Value::from(true)), "{findings}");
    let page = fs::read_to_string(env.file("results/report.html"))?;
    anyhow::ensure!(page.contains(&format!("* disturbed: {why} (none, repeat 1)")), "{page}");
    let ended = run.pointer("/jobs/0/ended").and_then(Value::as_f64);
    let log = fs::read_to_string(env.file("results/runs/001-none/slow.log"))?;
    let in_its_sleep = !log.contains("awake");
    anyhow::ensure!(in_its_sleep && ended.is_some_and(|ended| ended >= 5.0), "{run}: {log}");
    ensure_nothing_left(&env).await
}
