//! Memory after 100 million reports and 10,000 scrapes.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use paceline_reporter::{LocalAddr, Reporter};

const REPORTS: u32 = 100_000_000;
const SCRAPES: u32 = 10_000;
/// Rounds before the first reading of the memory, in which threads, buffers and pages are made.
const WARM_UP: u32 = 100;

fn main() {
    let builder = Reporter::builder("bench").acceptable(0.2).objective(0.1);
    let reporter = builder.listen("127.0.0.1:0").start().expect("a port is free");
    round(&reporter, REPORTS / SCRAPES * WARM_UP, WARM_UP);
    let before = resident();
    round(&reporter, REPORTS, SCRAPES);
    let after = resident();
    println!(
        "{REPORTS} reports, {SCRAPES} scrapes: {before} KiB before, {after} KiB after, {:+} KiB",
        after - before
    );
}

fn round(reporter: &Reporter, reports: u32, scrapes: u32) {
    for _ in 0..scrapes {
        for _ in 0..reports / scrapes {
            reporter.batch().loss(0.5);
        }
        scrape(reporter);
    }
}

/// This process's resident memory in KiB.
fn resident() -> i64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).expect("it is there")
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it is sent");
    stream.read_to_end(&mut Vec::new()).expect("it is answered");
}
