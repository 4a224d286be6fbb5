//! The sidecar in containers, beside them, and under the allocator.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::StopContainerOptionsBuilder;
use paceline_reporter::wire::{Progress, State};
use paceline_system_tests::{Allocator, Bed, Job, PrivateEngine, image_of, program, until};

use crate::flowcon::{QUICK, ensure_unlimited, flat, growing, until_cut};

/// Reads the toy job's lines.
const PATTERN: &str = r"^(?P<step>\d+) \S+ (?P<loss>\S+)$";
/// A toy job that reports nothing, and is read by a sidecar that runs it.
const EXEC: [&str; 6] = ["/paceline-sidecar", "exec", "--pattern", PATTERN, "--", "/toy-job"];

/// The job, told by what it prints and not by what it reports.
fn told_by_exec(job: Job) -> Job {
    let args = [&["--answer", "nothing"], &job.args[..]].concat();
    Job { entrypoint: EXEC.to_vec(), args, ..job }
}

pub(crate) async fn jobs_that_exec_runs_are_managed_by_what_they_print(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let (flat, _) =
        tokio::try_join!(bed.start(told_by_exec(flat())), bed.start(told_by_exec(growing())),)?;
    let allocator = Allocator::run(&bed, &QUICK)?;
    until_cut(&bed, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&bed, &flat).await?;
    let patiently = StopContainerOptionsBuilder::default().t(30).build();
    bed.docker().stop_container(&flat, Some(patiently)).await?;
    // Of the signal that was passed on to it, and not of the engine's impatience.
    let code = bed.ended(&flat).await?;
    anyhow::ensure!(code == 143, "exit code {code}");
    let log = bed.log(&flat).await?;
    for (line, step) in log.lines().zip(1..) {
        anyhow::ensure!(line.starts_with(&format!("{step} ")), "line {step} is {line:?}");
    }
    Ok(())
}

pub(crate) async fn a_bar_is_read_as_it_is_drawn_and_the_sidecar_ends_with_the_container(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let status = bed.file("status.json");
    // It stops in the middle until the file exists.
    let job = bar("100");
    let args = [&job.args[..], &["--hold", "/bed/go-on", "--hold-after", "50"]].concat();
    let host = HostConfig { binds: Some(vec![bed.bind()]), ..HostConfig::default() };
    let job = bed.start(Job { args, host, ..job }).await?;
    let mut sidecar = Allocator::spawn(beside(&bed, &job)?)?;
    let early = until("the bar is read while it is drawn", || async {
        let progress = read_status(&status)?;
        Ok(progress.filter(|progress| progress.step.is_some_and(|step| step > 0)))
    })
    .await?;
    anyhow::ensure!(early.state == State::Running && early.step <= Some(50), "{early:?}");
    fs::write(bed.file("go-on"), "")?;
    anyhow::ensure!(bed.ended(&job).await? == 0, "the job fails");
    let ended = sidecar.ended().await?;
    anyhow::ensure!(ended.success(), "{ended}: {}", sidecar.said());
    let last = read_status(&status)?.context("there is no status file")?;
    anyhow::ensure!(last.state == State::Finished && last.step == Some(100), "{last:?}");
    Ok(())
}

/// A job that draws a bar for so many steps.
fn bar(steps: &'static str) -> Job {
    let mut args = vec!["--answer", "nothing", "--bar", "--half-life", "100", "--steps", steps];
    args.extend(["--work", "100000"]);
    Job { name: "bar", args, ..Job::default() }
}

/// A sidecar of this host that attaches to a container of the bed.
fn beside(bed: &Bed, container: &str) -> anyhow::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(program("paceline-sidecar")?);
    let socket = format!("unix:{}", bed.file("sidecar.sock").display());
    command.args(["--docker", container, "--listen", &socket]).kill_on_drop(true);
    command.arg("--status-file").arg(bed.file("status.json"));
    Ok(command)
}

/// A status file, once it is there.
pub(crate) fn read_status(path: &Path) -> anyhow::Result<Option<Progress>> {
    let Ok(text) = fs::read(path) else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&text)?))
}

pub(crate) async fn a_full_disk_stops_neither_the_job_nor_its_endpoint(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let entrypoint = vec![
        "/paceline-sidecar",
        "exec",
        "--pattern",
        PATTERN,
        "--status-file",
        "/full/status.json",
        "--",
        "/toy-job",
    ];
    // A page: there is no room for a new file beside the old one.
    let tmpfs = [("/full".to_owned(), "size=4k".to_owned())].into();
    let host =
        HostConfig { tmpfs: Some(tmpfs), binds: Some(vec![bed.bind()]), ..HostConfig::default() };
    let args = ["--answer", "nothing", "--steps", "300", "--work", "100000"];
    let args = [&args[..], &["--hold", "/bed/go-on", "--hold-after", "150"]].concat();
    let job = bed.start(Job { name: "full", entrypoint, args, host, ..Job::default() }).await?;
    until("the job answers", || async {
        let checked = Allocator::command(&["check", &job])?.output().await?;
        Ok(checked.status.success().then_some(()))
    })
    .await?;
    fs::write(bed.file("go-on"), "")?;
    anyhow::ensure!(bed.ended(&job).await? == 0, "the job fails: {}", bed.log(&job).await?);
    anyhow::ensure!(bed.log(&job).await?.lines().count() == 300, "lines are missing");
    Ok(())
}

pub(crate) async fn a_first_process_waits_for_orphans_too(bed: Arc<Bed>) -> anyhow::Result<()> {
    // The shell in the middle ends at once, and leaves an orphan that ends a moment later.
    let script = "sh -c 'sleep 0.1 & echo $!' >/tmp/orphan; tries=600; \
                  while [ -e /proc/$(cat /tmp/orphan) ] && [ $tries -gt 0 ]; do \
                  sleep 0.1; tries=$((tries - 1)); done; \
                  [ -e /proc/$(cat /tmp/orphan) ] && echo it stayed; exit 4";
    let entrypoint = vec!["/paceline-sidecar", "exec", "--", "sh", "-c", script];
    let host = with_host_programs();
    let job = bed.start(Job { name: "orphans", entrypoint, host, ..Job::default() }).await?;
    let (code, log) = (bed.ended(&job).await?, bed.log(&job).await?);
    anyhow::ensure!(code == 4 && log.is_empty(), "exit code {code}: {log}");
    Ok(())
}

/// This machine's own programs, to be read only: an image without a shell has one.
pub(crate) fn with_host_programs() -> HostConfig {
    let folders =
        ["/bin", "/lib", "/lib64", "/usr"].iter().filter(|folder| Path::new(folder).exists());
    let binds = folders.map(|folder| format!("{folder}:{folder}:ro")).collect();
    let tmpfs = [("/tmp".to_owned(), String::new())].into();
    HostConfig { binds: Some(binds), tmpfs: Some(tmpfs), ..HostConfig::default() }
}

pub(crate) async fn an_engine_that_restarts_is_attached_to_again(
    bed: Arc<Bed>,
) -> anyhow::Result<()> {
    let mut engine = PrivateEngine::start(bed.file("engine")).await?;
    let outcome = across_a_restart(&bed, &mut engine).await;
    engine.clear().await?;
    outcome
}

async fn across_a_restart(bed: &Bed, engine: &mut PrivateEngine) -> anyhow::Result<()> {
    let toy = env!("CARGO_BIN_EXE_toy-job").as_ref();
    image_of(engine.docker(), "paceline-test/toy-job:private", &[toy]).await?;
    let inner = Bed::new(engine.docker().clone(), "paceline-test/toy-job:private", "inner")?;
    let job = inner.start(bar("1000000")).await?;
    let status = bed.file("status.json");
    let mut command = beside(bed, &job)?;
    command.env("DOCKER_HOST", engine.host());
    let sidecar = Allocator::spawn(command)?;
    let beyond = |least: u64| {
        let status = &status;
        move || async move { Ok(read_status(status)?.filter(|read| read.step >= Some(least))) }
    };
    until("the bar is read", beyond(1)).await?;
    engine.restart().await?;
    anyhow::ensure!(inner.runs(&job).await?, "the job does not outlive its engine");
    let before = read_status(&status)?.and_then(|read| read.step).context("there was a step")?;
    until("the bar is read again", beyond(before + 20)).await?;
    sidecar.end().await
}
