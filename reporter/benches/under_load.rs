//! How long one call of a loop takes while two threads report and eight clients scrape without a
//! pause, up to the slowest in a thousand, and what it allocates.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;
use paceline_reporter::{LocalAddr, Reporter};

const CALLS: u32 = 2_000_000;
const THREADS: u32 = 2;
const CLIENTS: u32 = 8;

fn main() {
    let builder = Reporter::builder("bench").acceptable(0.2).objective(0.1);
    let reporter = builder.listen("127.0.0.1:0").start().expect("a port is free");
    println!("{THREADS} threads report {CALLS} times each; ns per call, two clocks included");
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>9} {:>12} {:>11}",
        "clients", "p50", "p99", "p99.9", "max", "allocations", "scrapes"
    );
    for clients in [0, CLIENTS] {
        let (calls, allocations, scrapes) = measure(&reporter, clients);
        let at = |quantile| calls.value_at_quantile(quantile);
        println!(
            "{clients:>8} {:>9} {:>9} {:>9} {:>9} {allocations:>12} {scrapes:>11}",
            at(0.5),
            at(0.99),
            at(0.999),
            calls.max(),
        );
    }
}

/// How long the calls of all threads took, what they allocated, and how often it was scraped.
fn measure(reporter: &Reporter, clients: u32) -> (Histogram<u64>, u64, u64) {
    let done = AtomicBool::new(false);
    let scrapes = AtomicU64::new(0);
    let measured = thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    scrape(reporter);
                    scrapes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| report(reporter))).collect();
        let measured: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("it did not panic")).collect();
        done.store(true, Ordering::Relaxed);
        measured
    });
    let mut all = histogram();
    let mut allocations = 0;
    for (calls, allocated) in measured {
        all.add(calls).expect("the same bounds");
        allocations += allocated;
    }
    (all, allocations, scrapes.load(Ordering::Relaxed))
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn report(reporter: &Reporter) -> (Histogram<u64>, u64) {
    let mut calls = histogram();
    let allocated = allocation_counter::measure(|| {
        for _ in 0..CALLS {
            let began = Instant::now();
            reporter.batch().loss(0.5);
            let took = began.elapsed();
            calls.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    });
    (calls, allocated.count_total)
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are in order")
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    drop(stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n"));
    drop(stream.read_to_end(&mut Vec::new()));
}
