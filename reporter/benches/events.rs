//! The time from the report that reaches a target to the event at a listener.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use paceline_reporter::{LocalAddr, Reporter};

const TIMES: usize = 200;

fn main() {
    let mut times: Vec<_> = (0..TIMES).map(|_| measure()).collect();
    times.sort();
    let at = |part: usize| times.get((TIMES - 1) * part / 100).copied().unwrap_or_default();
    println!("from a report that reaches a target to its event, {TIMES} times:");
    println!("p50 {:?}, p90 {:?}, p99 {:?}, max {:?}", at(50), at(90), at(99), at(100));
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn measure() -> Duration {
    let builder = Reporter::builder("bench").acceptable(1.0).window(1);
    let reporter = builder.listen("127.0.0.1:0").start().expect("a port is free");
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return Duration::MAX };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it is sent");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("the stream continues"));
    let mut event = || lines.find(|line| line.starts_with("data: ")).expect("the stream continues");
    event();
    reporter.report(9.0);
    let began = Instant::now();
    reporter.report(0.5);
    while event().contains(r#""acceptable_at":null"#) {}
    began.elapsed()
}
