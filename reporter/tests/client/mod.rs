//! A minimal HTTP client that shows the endpoint's bytes.

#![allow(dead_code, clippy::allow_attributes, reason = "each test needs a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use paceline_reporter::{LocalAddr, Reporter};

/// The longest wait for anything.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let pause = Duration::from_millis(10);
    let tries = TIMEOUT.as_millis() / pause.as_millis();
    let came = (0..tries).any(|_| {
        holds() || {
            std::thread::park_timeout(pause);
            false
        }
    });
    assert!(came, "timed out waiting until: {what}");
}

/// Sends a request line such as `GET /metrics` and header lines, and reads the whole answer.
pub(crate) fn ask(reporter: &Reporter, line: &str, headers: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    let mut stream = connect(reporter);
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is read");
    answer
}

/// Opens a connection to a reporter.
pub(crate) fn connect(reporter: &Reporter) -> Box<dyn Stream> {
    match reporter.local_addr().expect("it is not disabled") {
        LocalAddr::Tcp(address) => {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.set_read_timeout(Some(TIMEOUT)).expect("the timeout is not zero");
            Box::new(stream)
        }
        LocalAddr::Unix(path) => {
            let stream = UnixStream::connect(path).expect("it listens");
            stream.set_read_timeout(Some(TIMEOUT)).expect("the timeout is not zero");
            Box::new(stream)
        }
        other => unreachable!("{other}"),
    }
}

/// A connection of either kind.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// The body of `GET /v1/progress`.
pub(crate) fn progress(reporter: &Reporter) -> paceline_wire::Progress {
    let answer = ask(reporter, "GET /v1/progress", "host: localhost\r\n");
    serde_json::from_str(body(&answer)).expect("the body is a progress report")
}

/// Listens to a reporter's events.
pub(crate) struct Events(BufReader<Box<dyn Stream>>);

impl Events {
    pub(crate) fn listen(reporter: &Reporter) -> Self {
        let mut stream = connect(reporter);
        stream
            .write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .expect("the request is sent");
        Self(BufReader::new(stream))
    }
}

/// The progress of each event, until the reporter closes the connection.
impl Iterator for Events {
    type Item = paceline_wire::Progress;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(json) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(json).expect("the data is a progress report"));
            }
        }
    }
}

/// An answer's body.
pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("the head ends").1
}
