//! `healthcheck`: asks an endpoint whether it is healthy.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_reporter::wire::DEFAULT_PORT;

use super::Failure;
use crate::clock::Clock;

/// Timeout for the answer of an endpoint.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of an answer that are read; one has some hundred.
const MAX_ANSWER: usize = 16 * 1024;

/// The arguments of `healthcheck`.
#[derive(Clone, Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// The address of the endpoint [default: 127.0.0.1:7223]
    #[arg(long, env = "PACELINE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// Also require that a report has been received
    #[arg(long)]
    ready: bool,
}

/// Returns exit code 0 if the endpoint is healthy, 1 otherwise.
pub(super) fn run(args: &HealthcheckArgs) -> Result<ExitCode, Failure> {
    let default = || format!("127.0.0.1:{DEFAULT_PORT}");
    // Compose files pass an empty variable for an omitted value.
    let given = args.listen.clone().filter(|address| !address.trim().is_empty());
    let address = given.unwrap_or_else(default);
    let page = if args.ready { "/readyz" } else { "/healthz" };
    let failed = |error: io::Error| Failure::running(format!("cannot query {address}: {error}"));
    let answer = ask(&address, page).map_err(failed)?;
    let line = answer.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") {
        return Ok(ExitCode::SUCCESS);
    }
    let body = answer.lines().last().unwrap_or_default();
    Err(Failure::running(format!("{address} is not healthy: {body}")))
}

fn ask(address: &str, page: &str) -> io::Result<String> {
    let request = format!("GET {page} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    if let Some(path) = address.strip_prefix("unix:") {
        let mut stream = UnixStream::connect(path)?;
        stream.write_all(request.as_bytes())?;
        answer(&mut stream, |stream, left| stream.set_read_timeout(Some(left)))
    } else {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        answer(&mut stream, |stream, left| stream.set_read_timeout(Some(left)))
    }
}

/// Reads an answer to its end. Another program may listen at the address, so length and time are bounded.
fn answer<S: Read>(
    stream: &mut S,
    wait: impl Fn(&S, Duration) -> io::Result<()>,
) -> io::Result<String> {
    let clock = Clock::start();
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while answer.len() < MAX_ANSWER {
        let left = ANSWER_TIMEOUT.saturating_sub(clock.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wait(stream, left)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // On Unix, a read that takes too long would block.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
