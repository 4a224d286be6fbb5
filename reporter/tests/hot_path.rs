//! The calls of a training loop: they allocate nothing and lose nothing.

mod client;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use client::progress;
use paceline_reporter::Reporter;

fn start() -> Reporter {
    let builder = Reporter::builder("vae").acceptable(2.0).objective(1.0);
    builder.listen("127.0.0.1:0").start().expect("a port is free")
}

#[test]
fn no_call_of_the_loop_allocates() {
    for reporter in [start(), Reporter::disabled()] {
        let allocations = allocation_counter::measure(|| {
            for loss in 0..1000 {
                let batch = reporter.batch();
                batch.loss(loss);
                drop(reporter.batch());
                reporter.report(f64::INFINITY);
                reporter.report(1.5);
                reporter.epoch(2);
                reporter.total_steps(2_000);
                reporter.expected_steps(1_000);
            }
            reporter.finish();
        });
        assert_eq!(allocations.count_total, 0);
    }
}

/// Every loss is 3, so in a torn reading the sum would not be three times the count.
#[test]
fn threads_that_report_while_others_read_lose_nothing() {
    const THREADS: u32 = 4;
    const EACH: u32 = 20_000;
    let reporter = start();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut before = progress(&reporter);
            while !done.load(Ordering::Relaxed) {
                let read = progress(&reporter);
                let count = f64::from(u32::try_from(read.eval.count).expect("so few"));
                assert_eq!(
                    (read.eval.sum, read.batch_latency.count),
                    (3.0 * count, read.eval.count)
                );
                assert!(read.eval.count >= before.eval.count);
                assert!(read.batch_latency.sum >= before.batch_latency.sum);
                before = read;
            }
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (0..EACH).for_each(|_| reporter.batch().loss(3.0))))
            .collect();
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        assert!(reader.join().is_ok());
    });
    let read = progress(&reporter);
    let all = THREADS * EACH;
    assert_eq!((read.eval.count, read.eval.sum), (u64::from(all), f64::from(3 * all)));
    assert_eq!((read.eval.value, read.step), (Some(3.0), Some(u64::from(all))));
    assert_eq!(read.dropped, 0);
}
