//! `mtail`, which reads lines with regular expressions written by the user.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::Process;

/// Whether it is installed.
pub(crate) fn is_there() -> bool {
    let version = Command::new("mtail").arg("--version").stdout(Stdio::null()).output();
    !version.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Reads a log once, with an expression for a step and a loss, and counts its lines.
pub(crate) fn start(folder: &Path, log: &Path, pattern: &str) -> io::Result<Process> {
    let program = folder.join("bench.mtail");
    let text = format!(
        "gauge step\ngauge loss\ncounter lines\n\
         /{pattern}/ {{\n  step = $step\n  loss = $loss\n}}\n/$/ {{\n  lines++\n}}\n",
    );
    fs::write(&program, text)?;
    let mut command = Command::new("mtail");
    command.arg("--one_shot").arg("--logtostderr").arg("--progs").arg(&program);
    command.arg("--logs").arg(log).stdout(Stdio::null()).stderr(Stdio::null());
    Process::start(&mut command)
}
