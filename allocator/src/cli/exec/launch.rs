//! The command takes the place of this process.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::args::{ExecArgs, Sidecar, Way};
use super::group::LISTEN;

/// The program that reads the command's output.
const SIDECAR: &str = "paceline-sidecar";
/// The exit codes of env(1): the program cannot be run, or is missing.
const CANNOT_RUN: u8 = 126;
const MISSING: u8 = 127;

/// Why the command does not run.
#[derive(Debug)]
pub(super) struct NotRun {
    pub(super) code: u8,
    pub(super) message: String,
}

/// Where the job's endpoint is.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// At this socket, or where the environment says.
    Own(Option<PathBuf>),
    /// The job is a part of another one, which has an endpoint.
    OfOuterJob,
}

/// Becomes the command, or the sidecar around it.
pub(super) fn become_command(args: &ExecArgs, name: &str, endpoint: &Endpoint) -> NotRun {
    let (reads, socket) = match endpoint {
        Endpoint::Own(socket) => (args.sidecar == Sidecar::Auto, socket.as_ref()),
        Endpoint::OfOuterJob => (false, None),
    };
    let sidecar = reads.then(sidecar).flatten();
    let words = sidecar.map_or_else(|| args.command.clone(), |sidecar| around(sidecar, args));
    let Some((program, rest)) = words.split_first() else {
        return NotRun { code: MISSING, message: "no command was given".to_owned() };
    };
    let mut command = Command::new(program);
    command.args(rest).env("PACELINE_JOB", name);
    let settings = [
        ("PACELINE_ACCEPTABLE", &args.acceptable),
        ("PACELINE_OBJECTIVE", &args.objective),
        ("PACELINE_BATCH_LATENCY", &args.batch_latency),
    ];
    for (variable, value) in settings {
        command.envs(value.as_ref().map(|value| (variable, value)));
    }
    if let Some(socket) = socket {
        let mut address = OsString::from("unix:");
        address.push(socket);
        command.env(LISTEN, address);
    }
    not_run(program, &command.exec())
}

/// The sidecar and its arguments before those of the command.
fn around(sidecar: PathBuf, args: &ExecArgs) -> Vec<OsString> {
    let mut words = vec![sidecar.into_os_string(), "exec".into()];
    // Only where both outputs go to the terminal is nothing lost by one terminal for both.
    if io::stdout().is_terminal() && io::stderr().is_terminal() {
        words.push("--tty".into());
    }
    if args.direction == Some(Way::Maximize) {
        words.extend(["--direction", Way::Maximize.word()].map(OsString::from));
    }
    words.push("--".into());
    words.extend(args.command.iter().cloned());
    words
}

/// The sidecar beside this program, or on the path.
fn sidecar() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(SIDECAR));
    beside.filter(|candidate| candidate.is_file()).or_else(|| on_path(SIDECAR))
}

/// A program on the path.
pub(in crate::cli) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn not_run(program: &OsStr, error: &io::Error) -> NotRun {
    let code = if error.kind() == ErrorKind::NotFound { MISSING } else { CANNOT_RUN };
    NotRun { code, message: format!("cannot run {}: {error}", program.display()) }
}
