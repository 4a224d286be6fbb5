//! What one report costs the training loop, beside the floor and beside other libraries.
//!
//! `floor` is the least that a timed report needs: two readings of the clock and five relaxed
//! additions. All others also record a loss, a step and a duration.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use divan::Bencher;
use hdrhistogram::Histogram;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use paceline_reporter::{LocalAddr, Reporter};
use prometheus_client::metrics as client;

/// Bounds of a histogram of seconds, as many as the reporter's metrics have.
const BOUNDS: [f64; 17] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    600.0,
];

/// Turns and calls of each, for the ratio.
const TURNS: usize = 2_001;
const CALLS: u32 = 500;

fn main() {
    divan::main();
    ratio();
}

/// Measures the floor and a report alternately, so that other load disturbs both alike.
fn ratio() {
    let reporter = start();
    let words = Words::default();
    let mut ratios: Vec<f64> = (0..TURNS)
        .map(|_| {
            let floor = timed(|| words.add());
            timed(|| reporter.batch().loss(0.5)) / floor
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(TURNS / 2).copied().unwrap_or(f64::NAN);
    println!("paceline / floor, median of {TURNS} turns of {CALLS} calls each: {median:.3}");
}

fn timed(mut call: impl FnMut()) -> f64 {
    let began = now();
    (0..CALLS).for_each(|_| call());
    began.elapsed().as_secs_f64()
}

#[derive(Default)]
struct Words([AtomicU64; 5]);

impl Words {
    fn add(&self) {
        let began = now();
        let took = now().duration_since(began);
        for word in &self.0 {
            word.fetch_add(u64::from(took.subsec_nanos()), Ordering::Relaxed);
        }
    }
}

#[divan::bench]
fn floor(bencher: Bencher<'_, '_>) {
    let words = Words::default();
    bencher.bench_local(|| words.add());
}

#[divan::bench]
fn paceline(bencher: Bencher<'_, '_>) {
    let reporter = start();
    bencher.bench_local(|| reporter.batch().loss(0.5));
}

#[divan::bench]
fn metrics_macros(bencher: Bencher<'_, '_>) {
    metrics::with_local_recorder(&recorder(), || {
        bencher.bench_local(|| {
            let began = now();
            metrics::gauge!("loss").set(0.5);
            metrics::counter!("steps_total").increment(1);
            metrics::histogram!("batch_seconds").record(began.elapsed().as_secs_f64());
        });
    });
}

#[divan::bench]
fn metrics_handles(bencher: Bencher<'_, '_>) {
    let (loss, steps, batches) = metrics::with_local_recorder(&recorder(), || {
        (
            metrics::gauge!("loss"),
            metrics::counter!("steps_total"),
            metrics::histogram!("batch_seconds"),
        )
    });
    bencher.bench_local(|| {
        let began = now();
        loss.set(0.5);
        steps.increment(1);
        batches.record(began.elapsed().as_secs_f64());
    });
}

#[divan::bench]
fn prometheus(bencher: Bencher<'_, '_>) {
    let loss = prometheus::Gauge::new("loss", "a loss").expect("a name");
    let steps = prometheus::IntCounter::new("steps_total", "steps").expect("a name");
    let options = prometheus::HistogramOpts::new("batch_seconds", "durations");
    let batches = prometheus::Histogram::with_opts(options.buckets(BOUNDS.to_vec()));
    let batches = batches.expect("rising bounds");
    bencher.bench_local(|| {
        let began = now();
        loss.set(0.5);
        steps.inc();
        batches.observe(began.elapsed().as_secs_f64());
    });
}

#[divan::bench]
fn prometheus_client(bencher: Bencher<'_, '_>) {
    let loss = client::gauge::Gauge::<f64, AtomicU64>::default();
    let steps = <client::counter::Counter>::default();
    let batches = client::histogram::Histogram::new(BOUNDS);
    bencher.bench_local(|| {
        let began = now();
        loss.set(0.5);
        steps.inc();
        batches.observe(began.elapsed().as_secs_f64());
    });
}

#[divan::bench]
fn hdrhistogram_behind_a_mutex(bencher: Bencher<'_, '_>) {
    let batches = Histogram::<u64>::new_with_bounds(1_000, 600_000_000_000, 2).expect("bounds");
    let state = Mutex::new((0.0, 0_u64, batches));
    bencher.bench_local(|| {
        let began = now();
        let took = began.elapsed();
        let mut state = state.lock().expect("no thread panicked");
        state.0 += 0.5;
        state.1 += 1;
        state.2.saturating_record(u64::from(took.subsec_nanos()));
    });
}

#[divan::bench]
fn paceline_two_threads(bencher: Bencher<'_, '_>) {
    let reporter = start();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                reporter.batch().loss(0.5);
            }
        });
        bencher.bench_local(|| reporter.batch().loss(0.5));
        done.store(true, Ordering::Relaxed);
    });
}

#[divan::bench]
fn paceline_while_scraped(bencher: Bencher<'_, '_>) {
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
fn paceline_disabled(bencher: Bencher<'_, '_>) {
    let reporter = Reporter::disabled();
    bencher.bench_local(|| black_box(&reporter).batch().loss(0.5));
}

#[expect(clippy::disallowed_methods, reason = "what is measured here is what others do")]
fn now() -> Instant {
    Instant::now()
}

/// Its targets are never reached, so every report is compared with them.
fn start() -> Reporter {
    let builder = Reporter::builder("bench").acceptable(0.2).objective(0.1);
    builder.listen("127.0.0.1:0").start().expect("a port is free")
}

/// What the `metrics` macros write to: buckets, not the rolling summaries that are the default.
fn recorder() -> PrometheusRecorder {
    let name = Matcher::Full("batch_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(name, &BOUNDS);
    let builder = builder.expect("there are bounds").upkeep_timeout(Duration::from_secs(5));
    builder.build_recorder()
}

fn scrape(reporter: &Reporter) {
    let Some(LocalAddr::Tcp(address)) = reporter.local_addr() else { return };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answer is read");
}
