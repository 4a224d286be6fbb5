//! Asking an endpoint whether it serves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_reporter::wire::DEFAULT_PORT;

use super::Failure;

/// An endpoint that takes longer has a problem.
const PATIENCE: Duration = Duration::from_secs(2);

/// The arguments of `healthcheck`.
#[derive(Clone, Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// Where it listens [default: 127.0.0.1:7223]
    #[arg(long, env = "PACELINE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// Ask whether a report has come, and not only whether it serves
    #[arg(long)]
    ready: bool,
}

/// Exit code 0 if it answers that all is well, 1 otherwise.
pub(super) fn run(args: &HealthcheckArgs) -> Result<ExitCode, Failure> {
    let default = || format!("127.0.0.1:{DEFAULT_PORT}");
    let address = args.listen.clone().unwrap_or_else(default);
    let page = if args.ready { "/readyz" } else { "/healthz" };
    let failed = |error: std::io::Error| Failure::running(format!("{address}: {error}"));
    let answer = ask(&address, page).map_err(failed)?;
    let line = answer.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") {
        return Ok(ExitCode::SUCCESS);
    }
    let said = answer.lines().last().unwrap_or_default();
    Err(Failure::running(format!("{address}: {said}")))
}

fn ask(address: &str, page: &str) -> std::io::Result<String> {
    let mut answer = String::new();
    let request = format!("GET {page} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    if let Some(path) = address.strip_prefix("unix:") {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)?;
    } else {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)?;
    }
    Ok(answer)
}
