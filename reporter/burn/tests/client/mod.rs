//! Reads a reporter's endpoint as any other program would.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use paceline_reporter::{LocalAddr, Reporter};
use paceline_wire::Progress;

/// The longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads `GET /v1/progress`.
pub(crate) fn progress(reporter: &Reporter) -> Progress {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else {
        unreachable!("it listens on TCP")
    };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("the timeout is not zero");
    let request = "GET /v1/progress HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is read");
    let (_, body) = answer.split_once("\r\n\r\n").expect("the head ends");
    serde_json::from_str(body).expect("the body is a progress report")
}
