//! The `paceline-sidecar` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    paceline_sidecar::cli::main()
}
