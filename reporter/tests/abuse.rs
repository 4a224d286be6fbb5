//! Misbehaving clients of an endpoint: they must not affect the reports.

mod client;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use client::{progress, wait_until};
use paceline_reporter::{LocalAddr, Reporter};

fn start() -> Reporter {
    Reporter::builder("vae").listen("127.0.0.1:0").start().expect("a port is free")
}

fn connect(reporter: &Reporter) -> Option<TcpStream> {
    let LocalAddr::Tcp(address) = reporter.local_addr()? else { return None };
    TcpStream::connect(address).ok()
}

/// One kind of misbehaviour of a peer. The reporter may disconnect it.
fn misbehave(kind: u32, reporter: &Reporter) -> Option<TcpStream> {
    let mut stream = connect(reporter)?;
    let sent = match kind % 8 {
        0 => stream.write_all(&[0xff, 0, 0x16, 3, 1, 0x80]),
        1 => stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n"),
        2 => stream.write_all(&b"x: y\r\n".repeat(50_000)),
        3 => stream.write_all(format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000)).as_bytes()),
        4 => stream.shutdown(Shutdown::Write),
        5 => stream.write_all(b"POST /v1/progress HTTP/1.1\r\ncontent-length: 99999999\r\n\r\nxx"),
        6 => stream.write_all(b"GET /v1/progress HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        _ => Ok(()),
    };
    // Some are closed with the answer unread, some are kept open and silent.
    (sent.is_ok() && kind % 50 == 0).then_some(stream)
}

fn is_served(reporter: &Reporter) -> bool {
    let asked = connect(reporter).and_then(|mut stream| {
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok().map(|_| answer)
    });
    asked.is_some_and(|answer| answer.contains(" 200 "))
}

#[test]
fn a_thousand_bad_connections_cost_no_report() {
    let reporter = start();
    let done = AtomicBool::new(false);
    let reported = AtomicU64::new(0);
    let (open, held) = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                reporter.batch().loss(1.0);
                reported.fetch_add(1, Ordering::Relaxed);
            }
        });
        let held: Vec<_> = (0..1000).filter_map(|kind| misbehave(kind, &reporter)).collect();
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        done.store(true, Ordering::Relaxed);
        (open, held)
    });
    assert!(open < 200, "{open} files are open");
    drop(held);
    // Closed connections count until the server has noticed that.
    wait_until("a connection is accepted", || is_served(&reporter));
    let read = progress(&reporter);
    let all = reported.load(Ordering::Relaxed);
    assert_eq!((read.eval.count, read.batch_latency.count, read.dropped), (all, all, 0));
}

#[test]
fn unread_body_is_not_waited_for() {
    let reporter = start();
    let mut stream = connect(&reporter).unwrap();
    let head = "POST /v1/checkpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 202");
}

#[test]
fn a_reporter_may_go_in_the_middle_of_a_scrape() {
    for _ in 0..30 {
        let reporter = start();
        let address = reporter.local_addr().cloned();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let Some(LocalAddr::Tcp(address)) = &address else { return };
                    while !done.load(Ordering::Relaxed) {
                        let Ok(mut stream) = TcpStream::connect(address) else { continue };
                        drop(stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n"));
                        drop(stream.read_to_end(&mut Vec::new()));
                    }
                });
            }
            (0..1000).for_each(|_| reporter.batch().loss(1.0));
            drop(reporter);
            done.store(true, Ordering::Relaxed);
        });
    }
}
