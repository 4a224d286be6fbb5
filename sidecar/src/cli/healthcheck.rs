//! `healthcheck`: asks an endpoint whether it is healthy.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_reporter::wire::DEFAULT_PORT;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::Failure;

/// Timeout for all of a check: name, connection, request and answer. Each may hang, for example in a
/// sidecar that is stopped.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of an answer that are read; one has some hundred.
const MAX_ANSWER: u64 = 16 * 1024;
/// Time between two tries to connect to a socket whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

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
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(within_time(address, page));
    // A name that is still being resolved must not delay the end.
    runtime.shutdown_background();
    answer
}

async fn within_time(address: &str, page: &str) -> io::Result<String> {
    let whole = async {
        match address.strip_prefix("unix:") {
            Some(path) => answer(connect(path).await?, page).await,
            None => answer(TcpStream::connect(address).await?, page).await,
        }
    };
    timeout(TIMEOUT, whole).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Connects to a Unix socket, and waits while its queue is full.
async fn connect(path: &str) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
            connected => return connected,
        }
    }
}

/// Asks for a page. Another program may listen at the address, so the answer's length is bounded.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, page: &str) -> io::Result<String> {
    let request = format!("GET {page} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::net::listen;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn socket_that_is_never_accepted_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sidecar.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // Its queue has one place: the first check gets no answer, and the second one no connection.
        listen(&listener, 0).unwrap();
        let address = format!("unix:{}", path.display());
        for _ in 0..2 {
            let error = within_time(&address, "/healthz").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
}
