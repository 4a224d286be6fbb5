//! Reads what Paceline writes for other programs with their own readers: TensorBoard's, and the messages of
//! OpenTelemetry for Python.

#![expect(clippy::indexing_slicing, reason = "a missing JSON field is null")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, ensure};
use libtest_mimic::{Arguments, Trial};
use paceline_otlp::request::{Times, message};
use paceline_reporter::{LocalAddr, Reporter};
use paceline_system_tests::{program, sample_snapshot};
use prost::Message;
use serde_json::{Value, json};

/// How often, and how many times, a test looks for what should happen. Only a broken one looks so often.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const MAX_LOOKS: u32 = 6_000;

fn main() -> ExitCode {
    let args = Arguments::from_args();
    // Also when tests are only listed: a runner learns from the list which are skipped.
    let python = find();
    let missing = python.is_none();
    let trial = move |test: fn(&str) -> anyhow::Result<()>| {
        let python = python.clone();
        move || Ok(test(python.as_deref().unwrap_or_default())?)
    };
    let trials = [
        Trial::test("tensorboard_reads_the_files_of_a_reporter", trial(files_of_a_reporter)),
        Trial::test("tensorboard_shows_one_curve_over_a_restart", trial(files_over_a_restart)),
        Trial::test("tensorboard_reads_the_files_of_the_sidecar", trial(files_of_the_sidecar)),
        Trial::test("opentelemetry_decodes_what_the_sidecar_sends", trial(otlp_of_the_sidecar)),
        Trial::test("opentelemetry_decodes_metrics_of_the_allocator", trial(otlp_of_the_allocator)),
    ];
    let trials = trials.map(|trial| trial.with_ignored_flag(missing));
    libtest_mimic::run(&args, trials.into()).exit_code()
}

/// The path of a Python with the readers. If it cannot be had, the script prints why.
fn find() -> Option<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/readers.sh");
    let found = Command::new(script).stderr(Stdio::inherit()).output().ok()?;
    let path = String::from_utf8(found.stdout).ok()?;
    found.status.success().then(|| path.trim().to_owned())
}

/// What a reader sees.
fn read(python: &str, reader: &str, path: &Path) -> anyhow::Result<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/readers.py");
    let path = path.to_str().context("the path is UTF-8")?;
    let said = Command::new(python).args([script, reader, path]).output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(serde_json::from_slice(&said.stdout)?)
}

/// The steps and values of a scalar.
fn series(seen: &Value, tag: &str) -> anyhow::Result<Vec<(u64, f64)>> {
    let points = seen["scalars"][tag].as_array().with_context(|| format!("no {tag} in {seen}"))?;
    let point = |point: &Value| Some((point[0].as_u64()?, point[2].as_f64()?));
    points.iter().map(|one| point(one).context("a step and a value")).collect()
}

fn reporter(folder: &Path, first_step: u64) -> anyhow::Result<Reporter> {
    let builder = Reporter::builder("vae").listen("127.0.0.1:0").hide_address();
    Ok(builder.first_step(first_step).tensorboard(folder).start()?)
}

/// Reports the losses 1/step of these steps, and waits until the file has them.
fn train(reporter: &Reporter, steps: std::ops::RangeInclusive<u32>) -> anyhow::Result<()> {
    let before = points(reporter)?;
    for step in steps {
        reporter.batch().loss(1.0 / f64::from(step));
    }
    for _ in 0..MAX_LOOKS {
        if points(reporter)? > before {
            return Ok(());
        }
        std::thread::park_timeout(LOOK_INTERVAL);
    }
    anyhow::bail!("no point is written")
}

/// How many points the job's files have.
fn points(reporter: &Reporter) -> anyhow::Result<u64> {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else {
        anyhow::bail!("it listens on a port");
    };
    let progress: Value = serde_json::from_str(&served(&address.to_string(), "/v1/progress")?)?;
    progress["tensorboard"]["sent"].as_u64().context("the points are counted")
}

fn served(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("the head ends")?;
    Ok(body.to_owned())
}

fn files_of_a_reporter(python: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let reporter = reporter(folder.path(), 0)?;
    for round in 0..4 {
        train(&reporter, round * 100 + 1..=round * 100 + 100)?;
    }
    reporter.validation(0.125);
    reporter.finish();
    drop(reporter);
    let seen = read(python, "tensorboard", folder.path())?;
    ensure!(seen["version"] == json!(2.0), "{seen}");
    let losses = series(&seen, "loss/train")?;
    ensure!(losses.len() >= 4 && losses.last().is_some_and(|(step, _)| *step == 400), "{losses:?}");
    // Each point is the mean since the one before, so that the points have the sum of all losses.
    let mut before = 0;
    let mut sum = 0.0;
    for (step, mean) in &losses {
        sum += mean * f64::from(u32::try_from(step - before)?);
        before = *step;
    }
    let truth: f64 = (1..=400).map(|step| 1.0 / f64::from(step)).sum();
    ensure!((sum - truth).abs() < 1e-4, "{sum} is not {truth}");
    let smoothed = series(&seen, "loss/smoothed")?;
    // The files have single precision.
    let range = 1.0 / 400.0 - 1e-6..=1.0;
    ensure!(smoothed.iter().all(|(_, loss)| range.contains(loss)), "{smoothed:?}");
    ensure!(series(&seen, "loss/validation")? == [(400, 0.125)], "{seen}");
    for tag in ["time/batch_seconds", "time/steps_per_second"] {
        let values = series(&seen, tag)?;
        ensure!(!values.is_empty() && values.iter().all(|(_, value)| *value > 0.0), "{values:?}");
    }
    Ok(())
}

fn files_over_a_restart(python: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let first = reporter(folder.path(), 0)?;
    train(&first, 1..=100)?;
    train(&first, 101..=200)?;
    drop(first);
    // It goes back to a checkpoint.
    let second = reporter(folder.path(), 120)?;
    train(&second, 121..=150)?;
    drop(second);
    ensure!(std::fs::read_dir(folder.path())?.count() == 2, "each start has its own file");
    let seen = read(python, "tensorboard", folder.path())?;
    let steps: Vec<u64> = series(&seen, "loss/train")?.into_iter().map(|(step, _)| step).collect();
    ensure!(steps.is_sorted() && steps.last() == Some(&150) && steps.contains(&100), "{steps:?}");
    Ok(())
}

fn files_of_the_sidecar(python: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let script = "for i in 1 2 3 4; do echo \"iter $i: loss $i.5, time 20ms\"; done";
    let runs = folder.path().join("runs");
    let said = sidecar(folder.path())?
        .args(["exec", "--tensorboard-out"])
        .arg(&runs)
        .args(["--", "sh", "-c", script])
        .output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let seen = read(python, "tensorboard", &runs)?;
    let losses = series(&seen, "loss/train")?;
    ensure!(losses.last().is_some_and(|(step, _)| *step == 4), "{losses:?}");
    let batches = series(&seen, "time/batch_seconds")?;
    ensure!(batches.iter().all(|(_, seconds)| (seconds - 0.02).abs() < 1e-6), "{batches:?}");
    Ok(())
}

fn sidecar(folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(program("paceline-sidecar")?);
    command.env("PACELINE_LISTEN", format!("unix:{}", folder.join("job.sock").display()));
    Ok(command)
}

/// A receiver that takes every request, and the bodies of its requests.
fn receiver() -> anyhow::Result<(String, Receiver<Vec<u8>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Ok(body) = body_of(&mut stream) else { continue };
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    Ok((address, bodies))
}

fn body_of(stream: &mut TcpStream) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        bytes.extend(byte);
    }
    let head = String::from_utf8(bytes)?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.context("a body has a length")?.parse()?];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn otlp_of_the_sidecar(python: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (address, bodies) = receiver()?;
    let script = "for i in 1 2 3 4; do echo \"iter $i: loss $i.5, time 20ms\"; done";
    let said = sidecar(folder.path())?
        .args(["exec", "--otlp", "--job", "vae", "--", "sh", "-c", script])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .env("OTEL_RESOURCE_ATTRIBUTES", "team=vision")
        .output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    // The last one is sent before the end.
    let body = bodies.try_iter().last().context("a message arrived")?;
    let file = folder.path().join("body");
    std::fs::write(&file, body)?;
    let seen = read(python, "otlp", &file)?;
    let resource = &seen["resource"];
    ensure!(resource["service.name"] == "vae" && resource["team"] == "vision", "{seen}");
    let metrics = &seen["metrics"];
    let steps = &metrics["paceline_steps_total"];
    ensure!(steps["kind"] == "sum" && steps["monotonic"] == true && steps["temporality"] == 2);
    ensure!(steps["points"] == json!([{"labels": {}, "value": 4.0}]), "{steps}");
    let info = &metrics["paceline_job_info"]["points"][0]["labels"];
    ensure!(info["job"] == "vae" && info["source"] == "sidecar", "{info}");
    let batches = &metrics["paceline_batch_duration_seconds"];
    // The sidecar leaves out the first duration, which often has the time of a start.
    ensure!(batches["unit"] == "s" && batches["count"] == 3, "{batches}");
    let states = metrics["paceline_state"]["points"].as_array().context("it has states")?;
    let finished = json!({"labels": {"state": "finished"}, "value": 1.0});
    ensure!(states.contains(&finished), "{states:?}");
    Ok(())
}

fn otlp_of_the_allocator(python: &str) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let page = runtime.block_on(sample_snapshot::page("127.0.0.1:0", 1_760_000_000.0, 60))?;
    let text = served(&page.0.address().to_string(), "/metrics")?;
    let times = Times { start: 1_760_000_000.0, now: 1_760_000_060.0 };
    let resource = [("service.name".to_owned(), "paceline-allocator".to_owned())];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("body");
    std::fs::write(&file, message(&text, times, &resource).encode_to_vec())?;
    let seen = read(python, "otlp", &file)?;
    let metrics = seen["metrics"].as_object().context("it has metrics")?;
    let families = text.lines().filter(|line| line.starts_with("# TYPE "));
    ensure!(metrics.len() == families.count() && metrics.len() > 40, "{}", metrics.len());
    // Every sample of the text is a point with the same labels and the same value.
    let samples = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    let points = metrics.values().filter_map(|metric| metric["points"].as_array());
    ensure!(points.map(Vec::len).sum::<usize>() == samples, "{samples} samples");
    let memory = &metrics["paceline_allocator_node_memory_bytes"];
    ensure!(memory["unit"] == "By" && memory["kind"] == "gauge", "{memory}");
    Ok(())
}
