//! `watch` and `serve`: show the jobs of this machine.

use std::process::ExitCode;

use paceline_watch::{Error, ServeArgs, WatchArgs};
use tokio::runtime::Runtime;

use super::{Failure, chain};
use crate::say::say;

pub(super) const WATCH_EXAMPLES: &str = "\
Examples:
  paceline-sidecar watch                            all jobs of this machine
  paceline-sidecar watch 7230                       the job on port 7230
  paceline-sidecar watch http://127.0.0.1:7223/     by what the job printed at its start
  paceline-sidecar watch unix:/run/paceline/jobs/vae.sock
  paceline-sidecar watch --once                     as plain text; also in a pipe
  paceline-sidecar watch --json | jq '.jobs[].progress.eval.value'

Keys: up and down choose a job, enter opens it, esc goes back, s changes between steps and time,
q quits.

Jobs are found on the ports 7223 and 7230 to 7299 of 127.0.0.1, and at sockets in
/run/paceline/jobs and $XDG_RUNTIME_DIR/paceline.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  paceline-sidecar serve                            http://127.0.0.1:7222/ lists all jobs
  paceline-sidecar serve --folder /tmp/jobs         also those at sockets in this folder
  paceline-sidecar serve --listen 127.0.0.1:0       at a free port
  curl -s http://127.0.0.1:7222/v1/jobs
  ssh -L 7222:127.0.0.1:7222 HOST                   to see it from another machine";

/// Shows jobs in the terminal.
pub(super) fn watch(args: WatchArgs) -> Result<ExitCode, Failure> {
    let shown = runtime()?.block_on(paceline_watch::watch(args));
    shown.map(|_| ExitCode::SUCCESS).map_err(Failure::from)
}

/// Shows jobs on a page, until SIGTERM or SIGINT.
pub(super) fn serve(args: ServeArgs) -> Result<ExitCode, Failure> {
    let announce = |page: &str| say(format_args!("all jobs of this machine: {page}"));
    let served = runtime()?.block_on(paceline_watch::serve(args, announce));
    served.map(|_| ExitCode::SUCCESS).map_err(Failure::from)
}

fn runtime() -> Result<Runtime, Failure> {
    paceline_reporter::runtime()
        .map_err(|error| Failure::running(format!("cannot start: {}", chain(&error))))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Usage(message) => Self::usage(message),
            Error::Running(message) => Self::running(message),
        }
    }
}
