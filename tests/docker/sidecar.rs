//! The sidecar in containers, beside them, and with the allocator.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bollard::models::HostConfig;
use bollard::query_parameters::StopContainerOptionsBuilder;
use paceline_reporter::wire::{Progress, State};
use paceline_system_tests::{Allocator, Job, PrivateEngine, TestEnv, image_of, program, until};

use crate::flowcon::{QUICK, ensure_unlimited, flat, growing, until_cut};

/// Reads the toy job's lines.
const PATTERN: &str = r"^(?P<step>\d+) \S+ (?P<loss>\S+)$";
/// A toy job that reports nothing, and is read by a sidecar that runs it.
const EXEC: [&str; 6] = ["/paceline-sidecar", "exec", "--pattern", PATTERN, "--", "/toy-job"];

/// The job, run by the sidecar, which reads its output: the job itself reports nothing.
fn under_exec(job: Job) -> Job {
    let args = [&["--answer", "nothing"], &job.args[..]].concat();
    Job { entrypoint: EXEC.to_vec(), args, ..job }
}

pub(crate) async fn jobs_under_exec_are_managed_by_their_output(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let (flat, _) =
        tokio::try_join!(env.start(under_exec(flat())), env.start(under_exec(growing())),)?;
    let allocator = Allocator::run(&env, &QUICK)?;
    until_cut(&env, &flat).await?;
    allocator.end().await?;
    ensure_unlimited(&env, &flat).await?;
    let patiently = StopContainerOptionsBuilder::default().t(30).build();
    env.docker().stop_container(&flat, Some(patiently)).await?;
    // It ended by the signal that the sidecar passed on, and was not killed by the engine.
    let code = env.ended(&flat).await?;
    anyhow::ensure!(code == 143, "exit code {code}");
    let log = env.log(&flat).await?;
    for (line, step) in log.lines().zip(1..) {
        anyhow::ensure!(line.starts_with(&format!("{step} ")), "line {step} is {line:?}");
    }
    Ok(())
}

pub(crate) async fn bar_is_read_live_and_sidecar_ends_with_its_container(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let status = env.file("status.json");
    // It stops in the middle until the file exists.
    let job = bar("100");
    let args = [&job.args[..], &["--hold", "/files/go-on", "--hold-after", "50"]].concat();
    let host = HostConfig { binds: Some(vec![env.bind()]), ..HostConfig::default() };
    let job = env.start(Job { args, host, ..job }).await?;
    let mut sidecar = Allocator::spawn(beside(&env, &job)?)?;
    // Its first steps may be read together: then no step has a duration yet, and the state is still
    // `starting`.
    let early = until("the bar is read while it is drawn", || async {
        let progress = read_status(&status)?;
        Ok(progress.filter(|progress| progress.step > Some(0) && progress.state == State::Running))
    })
    .await?;
    anyhow::ensure!(early.step <= Some(50), "{early:?}");
    fs::write(env.file("go-on"), "")?;
    anyhow::ensure!(env.ended(&job).await? == 0, "the job fails");
    let ended = sidecar.ended().await?;
    anyhow::ensure!(ended.success(), "{ended}: {}", sidecar.said());
    let last = read_status(&status)?.context("the status file exists")?;
    anyhow::ensure!(last.state == State::Finished && last.step == Some(100), "{last:?}");
    Ok(())
}

/// A job that draws a bar of `steps` steps.
fn bar(steps: &'static str) -> Job {
    let mut args = vec!["--answer", "nothing", "--bar", "--half-life", "100", "--steps", steps];
    args.extend(["--work", "100000"]);
    Job { name: "bar", args, ..Job::default() }
}

/// A sidecar on this host that attaches to one of the test's containers.
fn beside(env: &TestEnv, container: &str) -> anyhow::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(program("paceline-sidecar")?);
    let socket = format!("unix:{}", env.file("sidecar.sock").display());
    command.args(["--docker", container, "--listen", &socket]).kill_on_drop(true);
    command.arg("--status-file").arg(env.file("status.json"));
    Ok(command)
}

/// A status file, once it exists.
pub(crate) fn read_status(path: &Path) -> anyhow::Result<Option<Progress>> {
    let Ok(text) = fs::read(path) else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&text)?))
}

pub(crate) async fn a_full_disk_stops_neither_the_job_nor_its_endpoint(
    env: Arc<TestEnv>,
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
    // One page: there is not enough space for a new file beside the old one.
    let tmpfs = [("/full".to_owned(), "size=4k".to_owned())].into();
    let host =
        HostConfig { tmpfs: Some(tmpfs), binds: Some(vec![env.bind()]), ..HostConfig::default() };
    let args = ["--answer", "nothing", "--steps", "300", "--work", "100000"];
    let args = [&args[..], &["--hold", "/files/go-on", "--hold-after", "150"]].concat();
    let job = env.start(Job { name: "full", entrypoint, args, host, ..Job::default() }).await?;
    until("the job answers", || async {
        let checked = Allocator::command(&["check", &job])?.output().await?;
        Ok(checked.status.success().then_some(()))
    })
    .await?;
    fs::write(env.file("go-on"), "")?;
    anyhow::ensure!(env.ended(&job).await? == 0, "the job fails: {}", env.log(&job).await?);
    let log = env.log(&job).await?;
    let named = |line: &&str| line.contains("/full/status.json");
    let (said, own): (Vec<&str>, Vec<&str>) = log.lines().partition(named);
    anyhow::ensure!(
        said.len() == 1 && own.len() == 300,
        "{said:?}, {} lines of the job",
        own.len()
    );
    Ok(())
}

pub(crate) async fn a_first_process_waits_for_orphans_too(env: Arc<TestEnv>) -> anyhow::Result<()> {
    // The inner shell ends at once, and leaves an orphan that ends a moment later.
    let script = "sh -c 'sleep 0.1 & echo $!' >/tmp/orphan; tries=600; \
                  while [ -e /proc/$(cat /tmp/orphan) ] && [ $tries -gt 0 ]; do \
                  sleep 0.1; tries=$((tries - 1)); done; \
                  [ -e /proc/$(cat /tmp/orphan) ] && echo it stayed; exit 4";
    let entrypoint = vec!["/paceline-sidecar", "exec", "--", "sh", "-c", script];
    let host = with_host_programs();
    let job = env.start(Job { name: "orphans", entrypoint, host, ..Job::default() }).await?;
    let (code, log) = (env.ended(&job).await?, env.log(&job).await?);
    anyhow::ensure!(code == 4 && log.is_empty(), "exit code {code}: {log}");
    Ok(())
}

/// Mounts this machine's programs read-only: the image itself has no shell.
pub(crate) fn with_host_programs() -> HostConfig {
    let folders =
        ["/bin", "/lib", "/lib64", "/usr"].iter().filter(|folder| Path::new(folder).exists());
    let binds = folders.map(|folder| format!("{folder}:{folder}:ro")).collect();
    let tmpfs = [("/tmp".to_owned(), String::new())].into();
    HostConfig { binds: Some(binds), tmpfs: Some(tmpfs), ..HostConfig::default() }
}

pub(crate) async fn an_engine_that_restarts_is_attached_to_again(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let mut engine = PrivateEngine::start(env.file("engine")).await?;
    let outcome = across_a_restart(&env, &mut engine).await;
    engine.clear().await?;
    outcome
}

async fn across_a_restart(env: &TestEnv, engine: &mut PrivateEngine) -> anyhow::Result<()> {
    let toy = env!("CARGO_BIN_EXE_toy-job").as_ref();
    image_of(engine.docker(), "paceline-test/toy-job:private", &[toy]).await?;
    let inner = TestEnv::new(engine.docker().clone(), "paceline-test/toy-job:private", "inner")?;
    let job = inner.start(bar("1000000")).await?;
    let status = env.file("status.json");
    let mut command = beside(env, &job)?;
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
    let again = until("the bar is read again", beyond(before + 20)).await;
    again.with_context(|| format!("after step {before}: {}", sidecar.said()))?;
    sidecar.end().await
}
