//! `paceline-sidecar exec` as the first process of a container, and `--tty` with real bars.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use paceline_reporter::wire::State;
use paceline_system_tests::{Allocator, Job, TestEnv, bars, program, until};

use crate::frameworks::base_of;
use crate::sidecar::{read_status, with_host_programs};

/// The steps of `sidecar/frameworks/bars.py`.
const STEPS: u64 = 80;

pub(crate) async fn bars_of_tqdm_and_rich_in_a_terminal_are_read(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    // The order of a colour, and a character of the bar: neither is drawn without a terminal.
    let drawn = [("tqdm", "\r", "\u{2588}"), ("rich", "\u{1b}[32m", "\u{2501}")];
    for (library, control, character) in drawn {
        let job = env.start(under_a_terminal(&env, library)?).await?;
        let code = env.ended(&job).await?;
        let log = env.log(&job).await?;
        anyhow::ensure!(code == 0, "{library} ends with {code}: {log}");
        anyhow::ensure!(log.contains(control) && log.contains(character), "{library}: {log:?}");
        let status = read_status(&env.file(&format!("{library}.json")))?;
        let status = status.context("the status file exists")?;
        let truth = std::fs::read_to_string(env.file(&format!("{library}.truth")))?;
        let truth: Vec<f64> = truth.lines().map(str::parse).collect::<Result<_, _>>()?;
        anyhow::ensure!(
            status.state == State::Finished
                && (status.step, status.total_steps) == (Some(STEPS), Some(STEPS)),
            "{library}: {status:?}"
        );
        // Each step is drawn, with four digits of its loss.
        let error = (status.eval.sum - truth.iter().sum::<f64>()).abs();
        anyhow::ensure!(
            status.eval.count == STEPS && error < 1e-9 && status.rejected == 0,
            "{library}: {status:?}"
        );
    }
    Ok(())
}

/// A container with this machine's Python that draws the bars of a library.
fn under_a_terminal(env: &TestEnv, library: &'static str) -> anyhow::Result<Job> {
    let environment = bars().context("tqdm and rich are installed")?;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sidecar/frameworks");
    let python = base_of(&environment)?;
    let mut host = with_host_programs();
    let binds = host.binds.get_or_insert_default();
    binds.push(format!("{}:/bars:ro", environment.display()));
    binds.push(format!("{}:/scripts:ro", scripts.canonicalize()?.display()));
    binds.push(env.bind());
    if python != Path::new("/usr") {
        binds.push(format!("{0}:{0}:ro", python.display()));
    }
    let truth = match library {
        "tqdm" => "/files/tqdm.truth",
        _ => "/files/rich.truth",
    };
    let entrypoint = vec!["/paceline-sidecar", "exec", "--tty", "--", "/bars/bin/python"];
    let env = [
        format!("PACELINE_STATUS_FILE=/files/{library}.json"),
        "HOME=/tmp".to_owned(),
        "TERM=xterm-256color".to_owned(),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        "PYTHONIOENCODING=utf-8".to_owned(),
    ];
    Ok(Job {
        name: library,
        entrypoint,
        args: vec!["/scripts/bars.py", library, truth],
        env: env.to_vec(),
        host,
        ..Job::default()
    })
}

/// A line of a log that `paceline-sidecar` reads.
const LINE: &str = "iter 7: loss 0.5000, time 20.00ms";

pub(crate) async fn child_that_outlives_the_first_process_is_read(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let script = "sh -c 'while [ ! -e /files/go-on ]; do sleep 0.05; done; echo \"$0\"' \
                  'iter 7: loss 0.5000, time 20.00ms' & exit 0";
    let entrypoint = vec!["/paceline-sidecar", "exec", "--", "sh", "-c", script];
    let mut host = with_host_programs();
    host.binds.get_or_insert_default().push(env.bind());
    let status = env.file("status.json");
    let variables = vec!["PACELINE_STATUS_FILE=/files/status.json".to_owned()];
    let job = Job { name: "launcher", entrypoint, env: variables, host, ..Job::default() };
    let job = env.start(job).await?;
    until("the command has ended, and its child has not", || async {
        Ok(env.log(&job).await?.contains("still holds its output").then_some(()))
    })
    .await?;
    std::fs::write(env.file("go-on"), "")?;
    let code = env.ended(&job).await?;
    let log = env.log(&job).await?;
    anyhow::ensure!(code == 0 && log.lines().any(|line| line == LINE), "{code}: {log}");
    let last = read_status(&status)?.context("the status file exists")?;
    anyhow::ensure!(last.state == State::Finished && last.step == Some(7), "{last:?}");
    Ok(())
}

pub(crate) async fn failed_first_process_ends_the_container_of_its_children(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    // The child would hold the output for an hour.
    let entrypoint = vec!["/paceline-sidecar", "exec", "--", "sh", "-c", "sleep 3600 & exit 3"];
    let host = with_host_programs();
    let job = env.start(Job { name: "failed", entrypoint, host, ..Job::default() }).await?;
    let code = env.ended(&job).await?;
    anyhow::ensure!(code == 3, "exit code {code}");
    Ok(())
}

pub(crate) async fn missing_container_is_named_by_the_sidecar(
    env: Arc<TestEnv>,
) -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new(program("paceline-sidecar")?);
    let socket = format!("unix:{}", env.file("sidecar.sock").display());
    command.args(["--docker", "paceline-no-such-container", "--listen", &socket]);
    let sidecar = Allocator::spawn(command)?;
    until("the missing container is named", || async {
        let said = sidecar.said();
        let is_named = said.contains("cannot read --docker paceline-no-such-container")
            && said.contains("No such container");
        Ok(is_named.then_some(()))
    })
    .await?;
    sidecar.end().await
}
