//! `test-fixtures COMMAND [ARGUMENT]...` makes what the tests on a real engine share, runs the
//! command with it, removes it again, and ends with the command's exit code. If no engine is
//! reachable, the command runs without it, and the tests are skipped.

use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use bollard::Docker;
use paceline_system_tests::{Needs, Prepared, VARIABLE};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let mut command = Command::new(words.next().context("usage: test-fixtures COMMAND...")?);
    command.args(words);
    let docker = match connect().await {
        Ok(docker) => docker,
        Err(error) => {
            say(&format!("tests on a real engine are skipped: no engine is reachable: {error}"));
            return Ok(code(watched(command.spawn()?).await?));
        }
    };
    for needs in Needs::ALL.into_iter().filter(|needs| !needs.are_met()) {
        say(&format!("skipped are the tests that need {needs}"));
    }
    let prepared = Prepared::make(docker).await?;
    command.env(VARIABLE, prepared.file());
    let status = match command.spawn() {
        Ok(child) => watched(child).await,
        Err(error) => Err(error).context("the command cannot be started"),
    };
    prepared.clear().await?;
    Ok(code(status?))
}

async fn connect() -> anyhow::Result<Docker> {
    Ok(Docker::connect_with_defaults()?.negotiate_version().await?)
}

/// Waits for the command's end. Ctrl-C reaches it through the terminal; SIGTERM is passed on.
async fn watched(mut child: Child) -> anyhow::Result<ExitStatus> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terms = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = interrupts.recv() => {}
            _ = terms.recv() => {
                let pid = child.id().map(i32::try_from).transpose()?.and_then(Pid::from_raw);
                if let Some(pid) = pid {
                    // It is reaped only here, so the id is still its own.
                    kill_process(pid, Signal::TERM)?;
                }
            }
        }
    }
}

/// The command's exit code; 1 if a signal has ended it.
fn code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into()
}

#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
fn say(line: &str) {
    eprintln!("{line}");
}
