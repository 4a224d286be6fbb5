//! The request and its answer.

use std::io;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Where a request goes.
#[derive(Clone, Copy)]
pub struct Receiver<'r> {
    /// A name or an address, without the brackets of an IPv6 address.
    pub host: &'r str,
    /// Its port.
    pub port: u16,
    /// For HTTPS: whom to trust.
    pub tls: Option<&'r TlsConnector>,
}

impl std::fmt::Debug for Receiver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// What a receiver answered.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// As much of its body as was read.
    pub body: Vec<u8>,
    /// Whether that is all of the body.
    pub is_whole: bool,
}

/// Why there is no answer. No message contains the request, which may have secrets.
#[derive(Debug, Error)]
pub enum SendError {
    /// Nothing listens there, or the name is unknown.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// No certificate can be for this host.
    #[error("invalid host {0:?} for TLS")]
    Host(String),
    /// The receiver has no certificate that is trusted, or does not speak TLS.
    #[error("cannot agree on TLS: {0}")]
    Tls(#[source] io::Error),
    /// The connection ended before the answer, or the answer is not HTTP.
    #[error("the connection broke: {}", with_cause(.0))]
    Broken(#[from] hyper::Error),
}

/// hyper's message leaves out the cause, such as an alert of TLS.
fn with_cause(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Sends one request. `most` gives how many bytes of the answer's body are read, by its status.
///
/// # Errors
/// If there is no answer.
pub async fn send(
    receiver: Receiver<'_>,
    request: Request<Full<Bytes>>,
    most: impl Fn(StatusCode) -> usize,
) -> Result<Answer, SendError> {
    let Receiver { host, port, tls } = receiver;
    let stream = TcpStream::connect((host, port)).await.map_err(SendError::Connect)?;
    let Some(tls) = tls else { return exchange(stream, request, most).await };
    let invalid = |_| SendError::Host(host.to_owned());
    let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
    let stream = tls.connect(name, stream).await.map_err(SendError::Tls)?;
    exchange(stream, request, most).await
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    most: impl Fn(StatusCode) -> usize,
) -> Result<Answer, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let (body, is_whole) = beginning(body, most(head.status)).await;
        Ok(Answer { status: head.status, headers: head.headers, body, is_whole })
    };
    // At its end the connection is dropped. Only then a request fails that it has not taken.
    let driven = async {
        drop(connection.await);
        std::future::pending().await
    };
    tokio::select! {
        answer = answer => answer,
        never = driven => never,
    }
}

/// At most `most` bytes of a body, and whether that is all of it.
async fn beginning(mut body: Incoming, most: usize) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    while read.len() < most {
        match body.frame().await {
            None => return (read, true),
            Some(Err(_)) => return (read, false),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&data);
                }
            }
        }
    }
    let is_whole = read.len() == most && hyper::body::Body::is_end_stream(&body);
    read.truncate(most);
    (read, is_whole)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::rustls::RootCertStore;

    use super::*;

    /// What a receiver that sends these bytes and closes has answered.
    async fn answered(bytes: &'static [u8], most: usize) -> Result<Answer, SendError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receive = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            // The client may have closed already.
            drop(stream.write_all(bytes).await);
            drop(stream.shutdown().await);
        };
        let request = Request::post("/").body(Full::from("{}")).unwrap();
        let receiver = Receiver { host: "127.0.0.1", port, tls: None };
        let (answer, ()) = tokio::join!(send(receiver, request, |_| most), receive);
        answer
    }

    #[tokio::test]
    async fn answer_is_read_up_to_its_bound() {
        let whole = b"HTTP/1.1 503 X\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy";
        let answer = answered(whole, 100).await.unwrap();
        assert_eq!((answer.status.as_u16(), &*answer.body), (503, &b"busy"[..]));
        assert!(answer.is_whole && answer.headers["retry-after"] == "7", "{answer:?}");
        for (most, read) in [(2, &b"bu"[..]), (0, b"")] {
            let answer = answered(whole, most).await.unwrap();
            assert_eq!((&*answer.body, answer.is_whole), (read, false));
        }
        assert!(answered(whole, 4).await.unwrap().is_whole);
        let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbusy";
        assert!(!answered(cut, 100).await.unwrap().is_whole);
    }

    #[tokio::test]
    async fn connection_that_ends_before_the_request_is_an_error() {
        let (ours, theirs) = tokio::io::duplex(64);
        drop(theirs);
        let request = Request::post("/").body(Full::from("{}")).unwrap();
        let sent = exchange(ours, request, |_| 9).await;
        assert!(matches!(sent, Err(SendError::Broken(_))), "{sent:?}");
    }

    #[tokio::test]
    async fn each_step_has_its_error() {
        for bytes in [&b""[..], b"no HTTP\r\n\r\n"] {
            assert!(matches!(answered(bytes, 9).await, Err(SendError::Broken(_))), "{bytes:?}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let request = || Request::post("/").body(Full::from("{}")).unwrap();
        let tls = crate::connector(RootCertStore::empty(), None).unwrap();
        let receiver = Receiver { host: "127.0.0.1", port, tls: Some(&tls) };
        let plain = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        };
        let (sent, ()) = tokio::join!(send(receiver, request(), |_| 9), plain);
        assert!(matches!(sent, Err(SendError::Tls(_))), "{sent:?}");
        drop(listener);
        let sent = send(receiver, request(), |_| 9).await;
        assert!(matches!(sent, Err(SendError::Connect(_))), "{sent:?}");
        assert_eq!(format!("{receiver:?}"), format!("https://127.0.0.1:{port}"));
    }
}
