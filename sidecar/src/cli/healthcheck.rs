//! `healthcheck`: asks an endpoint whether it is healthy.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use paceline_reporter::wire::DEFAULT_PORT;
use paceline_reporter::{Address, runtime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::Failure;

/// Timeout for all of a check: name, connection, request and answer. Each may hang, for example in a
/// sidecar that is stopped.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of an answer that are read; one has some hundred.
const MAX_ANSWER: u64 = 16 * 1024;
/// Time between two tries to connect to a socket whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) const EXAMPLES: &str = "\
Examples:
  paceline-sidecar healthcheck                          the endpoint serves
  paceline-sidecar healthcheck --ready                  a report has arrived, too
  paceline-sidecar healthcheck --listen unix:/run/paceline/jobs/vae.sock";

/// The arguments of `healthcheck`.
#[derive(Clone, Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// The address of the endpoint: `host:port` or `unix:/path.sock` [default: 127.0.0.1:7223]
    /// [env: `PACELINE_LISTEN`]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Also require that a report has been received
    #[arg(long)]
    ready: bool,
}

/// Returns exit code 0 if the endpoint is healthy, 1 otherwise.
pub(super) fn run(args: &HealthcheckArgs) -> Result<ExitCode, Failure> {
    let address = args.address(env::var_os("PACELINE_LISTEN"))?;
    let page = if args.ready { "/readyz" } else { "/healthz" };
    let failed = |error: io::Error| {
        Failure::running(format!(
            "cannot query {address}: {error}; see whether the job runs, and where it listens"
        ))
    };
    let runtime = runtime().map_err(|error| Failure::running(format!("cannot start: {error}")))?;
    let answer = runtime.block_on(within_time(&address, page));
    // A name that is still being resolved must not delay the end.
    runtime.shutdown_background();
    let answer = answer.map_err(failed)?;
    let line = answer.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") {
        return Ok(ExitCode::SUCCESS);
    }
    let body = answer.lines().last().unwrap_or_default();
    Err(Failure::running(format!("{address} is not healthy: {body}")))
}

impl HealthcheckArgs {
    /// The address of the option, else that of the variable, else the default one.
    fn address(&self, variable: Option<OsString>) -> Result<Address, Failure> {
        let variable = variable.unwrap_or_default();
        let variable = variable.to_string_lossy();
        let given = self.listen.as_deref().map(|text| ("--listen", text));
        // Compose files pass an empty variable, or an empty option, for an omitted value.
        let mut known = given.into_iter().chain([("PACELINE_LISTEN", &*variable)]);
        let Some((name, text)) = known.find(|(_, text)| !text.trim().is_empty()) else {
            return Ok(Address::Tcp(format!("127.0.0.1:{DEFAULT_PORT}")));
        };
        let text = text.trim();
        text.parse().map_err(|error| Failure::usage(format!("invalid {name} {text:?}: {error}")))
    }
}

async fn within_time(address: &Address, page: &str) -> io::Result<String> {
    let whole = async {
        match address {
            Address::Unix(path) => answer(connect(path).await?, page).await,
            Address::Tcp(address) => answer(TcpStream::connect(address).await?, page).await,
        }
    };
    timeout(TIMEOUT, whole).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Connects to a Unix socket, and waits while its queue is full.
async fn connect(path: &Path) -> io::Result<UnixStream> {
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
        let address = Address::Unix(path);
        for _ in 0..2 {
            let error = within_time(&address, "/healthz").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
    #[test]
    fn address_is_that_of_the_option_or_of_the_variable_and_is_checked() {
        let asked = |option: Option<&str>, variable: &str| {
            let args = HealthcheckArgs { listen: option.map(str::to_owned), ready: false };
            let address = args.address(Some(variable.into()));
            address.map(|address| address.to_string()).map_err(|failure| failure.message)
        };
        assert_eq!(asked(None, ""), Ok("127.0.0.1:7223".to_owned()));
        assert_eq!(asked(Some(""), " h:80 "), Ok("h:80".to_owned()));
        assert_eq!(asked(Some("[::1]:80"), "h:80"), Ok("[::1]:80".to_owned()));
        let refused = asked(Some("foo"), "h:80").unwrap_err();
        assert!(refused.starts_with("invalid --listen \"foo\": expected `host:port`"), "{refused}");
        let refused = asked(None, "unix:rel.sock").unwrap_err();
        assert!(refused.starts_with("invalid PACELINE_LISTEN \"unix:rel.sock\": "), "{refused}");
    }
}
