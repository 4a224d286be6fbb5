//! A receiver of requests for the tests: HTTP, or HTTPS with a certificate of its own.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::clock::Clock;

/// The longest wait for something that should happen: only a broken test reaches it.
pub(super) const LONG: Duration = Duration::from_mins(2);

/// A request as it arrived.
#[derive(Debug)]
pub(super) struct Received {
    /// The method and the target.
    pub(super) line: String,
    /// Its headers in lower case, one a line.
    pub(super) headers: String,
    pub(super) body: String,
    /// When it was complete, since the start of the receiver.
    pub(super) at: Duration,
}

/// How to answer the requests, in turn; the last answer is repeated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// This status line and text.
    Status(&'static str, &'static str),
    /// Nothing, while the connection stays open.
    Never,
    /// The connection is closed.
    Close,
    /// A body without end.
    Endless,
}

pub(super) const OK: Answer = Answer::Status("200 OK", "");

/// A receiver.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) address: SocketAddr,
    pub(super) requests: Receiver<Received>,
}

impl Receiving {
    /// A receiver over plain HTTP.
    pub(super) fn plain(answers: &[Answer]) -> Self {
        Self::start(answers, None)
    }

    /// A receiver over HTTPS for `localhost`. Returns its certificate as well.
    pub(super) fn secure(answers: &[Answer]) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let certificates: Vec<CertificateDer<'static>> = vec![made.cert.der().clone()];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        (Self::start(answers, Some(Arc::new(config))), made.cert.pem())
    }

    fn start(answers: &[Answer], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        let answers = answers.to_vec();
        let clock = Clock::start();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                let answer = answers[number.min(answers.len() - 1)];
                match &tls {
                    None => serve(stream, answer, &sender, &clock),
                    Some(config) => {
                        let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                        serve(StreamOwned::new(connection, stream), answer, &sender, &clock)
                    }
                };
            }
        });
        Self { address, requests }
    }

    /// The next request.
    pub(super) fn next(&self) -> Received {
        self.requests.recv_timeout(LONG).unwrap()
    }
}

/// Reads a request and answers it. `None` if the client did not send one.
fn serve<S: Read + Write + Send + 'static>(
    stream: S,
    answer: Answer,
    sender: &Sender<Received>,
    clock: &Clock,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = String::new();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.trim().parse().ok()?;
        }
        writeln!(headers, "{name}:{}", value.trim_end()).unwrap();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim().to_owned();
    let body = String::from_utf8(body).ok()?;
    drop(sender.send(Received { line, headers, body, at: clock.elapsed() }));
    let mut stream = reader.into_inner();
    match answer {
        Answer::Status(status, text) => {
            let length = text.len();
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{text}").ok()?;
            stream.flush().ok()?;
        }
        // It stays open until the test's process ends.
        Answer::Never => std::mem::forget(stream),
        Answer::Close => {}
        Answer::Endless => {
            write!(stream, "HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
            while stream.write_all(b"10\r\nabcdefghijklmnop\r\n").is_ok() {}
        }
    }
    Some(())
}
