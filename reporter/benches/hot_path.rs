//! What a report costs the training loop, with and without somebody reading all the time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use divan::Bencher;
use paceline_reporter::{LocalAddr, Reporter};

fn main() {
    divan::main();
}

#[divan::bench(threads = [1, 2, 4])]
fn batch_and_loss(bencher: Bencher<'_, '_>) {
    let reporter = start();
    bencher.bench(|| reporter.batch().loss(0.5));
}

#[divan::bench]
fn batch_and_loss_while_scraped(bencher: Bencher<'_, '_>) {
    let reporter = start();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                scrape(&reporter);
            }
        });
        bencher.bench_local(|| reporter.batch().loss(0.5));
        done.store(true, Ordering::Relaxed);
    });
}

#[divan::bench]
fn report(bencher: Bencher<'_, '_>) {
    let reporter = start();
    bencher.bench(|| reporter.report(0.5));
}

#[divan::bench]
fn batch_and_loss_of_a_disabled_reporter(bencher: Bencher<'_, '_>) {
    let reporter = Reporter::disabled();
    bencher.bench(|| reporter.batch().loss(0.5));
}

/// Its targets are never reached, so every report looks at them.
fn start() -> Reporter {
    let builder = Reporter::builder("bench").acceptable(0.2).objective(0.1);
    builder.listen("127.0.0.1:0").start().expect("a port is free")
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answer is read");
}
