//! The connection to the engine, with a bound on what an engine can send.
//!
//! The client library holds a whole answer in memory, and a whole event. So each connection, which
//! serves one request, ends with an error after [`MAX_ANSWER`] bytes. A stream of events or statistics
//! ends after [`MAX_STREAM`] bytes, and its reader opens it again. Output of containers is passed on
//! piece by piece, and has no such bound.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::Client;

/// The most bytes of one answer: a list of some ten thousand containers.
const MAX_ANSWER: u64 = 32 * 1024 * 1024;
/// The most bytes of one stream: some thousand events.
const MAX_STREAM: u64 = 4 * 1024 * 1024;
/// How long the engine may take to begin an answer, in seconds.
const ANSWER_TIMEOUT: u64 = 120;
/// The port of an engine whose address has none.
const PORT: u16 = 2375;
/// Requests whose answer is a stream.
const STREAMS: [&str; 2] = ["/events", "/stats"];
/// Requests whose answer is the output of a container.
const OUTPUTS: [&str; 2] = ["/logs", "/attach"];

/// The address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    Tcp(String),
}

/// The client of the engine at `host`. Does not connect yet.
pub(super) fn client(host: &str) -> Result<Client, Error> {
    let address = Address::parse(host)?;
    let shown = match &address {
        Address::Unix(_) => "http://localhost".to_owned(),
        Address::Tcp(authority) => format!("http://{authority}"),
    };
    let send = move |request| send(address.clone(), request);
    Client::connect_with_custom_transport(send, Some(shown), ANSWER_TIMEOUT, API_DEFAULT_VERSION)
}

impl Address {
    fn parse(host: &str) -> Result<Self, Error> {
        let parsed = if let Some(path) = host.strip_prefix("unix://") {
            path.starts_with('/').then(|| Self::Unix(path.into()))
        } else {
            let authority = host.strip_prefix("tcp://").or_else(|| host.strip_prefix("http://"));
            authority.and_then(with_port).map(Self::Tcp)
        };
        parsed.ok_or_else(|| Error::UnsupportedURISchemeError { uri: host.to_owned() })
    }
}

/// Whether an engine can be at this address.
pub(super) fn is_address(host: &str) -> bool {
    Address::parse(host).is_ok()
}

/// A host and its port; `None` where one of them is not valid.
fn with_port(authority: &str) -> Option<String> {
    let authority = authority.trim_end_matches('/');
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || "/?#@".contains(c);
    // The colons of an IPv6 address stand in brackets.
    let named = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let (host, port) = match named {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, PORT),
    };
    (!host.is_empty() && !host.contains(is_strange)).then(|| format!("{host}:{port}"))
}

async fn send(address: Address, request: BollardRequest) -> Result<Response<Incoming>, Error> {
    match address {
        Address::Unix(path) => {
            exchange(UnixStream::connect(path).await?, request, "localhost").await
        }
        Address::Tcp(authority) => {
            exchange(TcpStream::connect(&authority).await?, request, &authority).await
        }
    }
}

/// Sends a request over a connection of its own.
#[expect(clippy::disallowed_methods, reason = "the task ends with the answer or its reader")]
async fn exchange<S>(
    stream: S,
    mut request: BollardRequest,
    host: &str,
) -> Result<Response<Incoming>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let left = most(request.uri().path());
    let (mut sender, connection) = http1::handshake(TokioIo::new(Bounded { stream, left })).await?;
    // It ends when the answer has been read or dropped. Attaching to a container takes it over.
    drop(tokio::spawn(connection.with_upgrades()));
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    let host = HeaderValue::from_str(host)
        .map_err(|error| Error::IOError { err: io::Error::other(error) })?;
    request.headers_mut().insert(HOST, host);
    Ok(sender.send_request(request).await?)
}

/// The most bytes that may be read for a request, if there is a bound.
fn most(path: &str) -> Option<u64> {
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if is_one_of(&OUTPUTS) {
        return None;
    }
    Some(if is_one_of(&STREAMS) { MAX_STREAM } else { MAX_ANSWER })
}

/// A connection from which only so much can be read.
#[derive(Debug)]
struct Bounded<S> {
    stream: S,
    /// How many bytes may still be read; any number if `None`.
    left: Option<u64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let Some(left) = self.left else { return Poll::Ready(Ok(())) };
        let read = u64::try_from(buffer.filled().len() - before).map_err(io::Error::other)?;
        self.left = Some(left.saturating_sub(read));
        Poll::Ready(if read > left {
            let (answer, stream) = (MAX_ANSWER >> 20, MAX_STREAM >> 20);
            let most = format!("{answer} MiB, or {stream} MiB of events");
            let error = format!("its answer is longer than is read: {most}");
            Err(io::Error::new(io::ErrorKind::InvalidData, error))
        } else {
            Ok(())
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;
    use crate::Runtime;
    use crate::docker::Docker;

    #[test]
    fn addresses_are_those_of_docker_host() {
        let tcp = |authority: &str| Address::Tcp(authority.to_owned());
        for (host, expected) in [
            ("unix:///run/docker.sock", Address::Unix("/run/docker.sock".into())),
            ("tcp://10.0.0.7:2376", tcp("10.0.0.7:2376")),
            ("http://box/", tcp("box:2375")),
            ("tcp://[::1]:7", tcp("[::1]:7")),
        ] {
            assert_eq!(Address::parse(host).unwrap(), expected, "{host}");
        }
        for host in [
            "",
            "foo",
            "unix://",
            "unix://docker.sock",
            "tcp://",
            "tcp://:2375",
            "tcp://box:port",
            "tcp://box:99999",
            "tcp://a b:1",
            "ssh://box",
            "fd://",
        ] {
            assert!(Address::parse(host).is_err(), "{host}");
        }
    }

    /// What a client makes of an engine that sends `head` and then `piece` over and over.
    async fn against<T>(head: &str, piece: &[u8], ask: impl AsyncFnOnce(Runtime) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                drop(stream.read(&mut request).await);
                drop(stream.write_all(head.as_bytes()).await);
                while stream.write_all(piece).await.is_ok() {}
            }
        };
        let runtime = Runtime::from(Docker::at(&format!("unix://{}", socket.display())).unwrap());
        tokio::select! {
            answer = ask(runtime) => answer,
            () = serve => unreachable!("it serves until it is dropped"),
        }
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

    #[tokio::test]
    async fn endless_answer_of_an_engine_is_an_error() {
        let plain = format!("{HEAD}Content-Length: 99999999999\r\n\r\n[");
        let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
        let chunk = [&b"1000\r\n"[..], &[b' '; 4096], b"\r\n"].concat();
        for (head, piece) in [(plain, vec![b' '; 65_536]), (chunked, chunk)] {
            let asked = against(&head, &piece, async |runtime| runtime.opted_in(&[]).await).await;
            let error = format!("{:#}", anyhow::Error::from(asked.unwrap_err()));
            assert!(error.contains("longer than is read: 32 MiB"), "{error}");
        }
    }

    #[tokio::test]
    async fn endless_event_ends_the_stream_of_events() {
        let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n6\r\n{{\"id\":\"\r\n");
        let piece = [&b"10000\r\n"[..], &vec![b'x'; 65_536], b"\r\n"].concat();
        let mut seen = 0;
        against(&head, &piece, async |runtime| runtime.follow(|_| seen += 1).await).await;
        assert_eq!(seen, 0);
    }
}
