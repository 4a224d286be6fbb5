//! The machine's clock is set while a job trains: an hour ahead, and two back.
//!
//! The test runs itself a second time with a wall clock that replaces libc's (`clock_steps.c`), so
//! that every reading of the time there, by any library, uses it.

mod client;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use client::{Events, progress};
use paceline_reporter::Reporter;
use paceline_wire::{Activity, Progress, State};

/// The variable with the path of the second run's clock offset: seconds in eight bytes.
const CLOCK: &str = "PACELINE_TEST_CLOCK";
/// The longest time of the test, in seconds: far less than the clock's offsets.
const WHOLE: f64 = 60.0;

#[test]
fn a_clock_that_is_set_moves_no_stamp() {
    if let Some(clock) = env::var_os(CLOCK) {
        return train(Path::new(&clock));
    }
    let folder = tempfile::tempdir().unwrap();
    let [library, clock] = ["clock.so", "clock"].map(|name| folder.path().join(name));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clock_steps.c");
    // Rust also needs it to link.
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]);
    assert!(compiler.arg(&library).arg(source).status().unwrap().success());
    set(&clock, 0);
    let again = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_clock_that_is_set_moves_no_stamp", "--nocapture"])
        .env("LD_PRELOAD", library)
        .env(CLOCK, clock)
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(String::from_utf8_lossy(&again.stdout).contains("1 passed"), "it ran another test");
}

fn train(clock: &Path) {
    let began = wall();
    let builder = Reporter::builder("vae").window(1).acceptable(1.0).objective(0.5);
    let reporter = builder.listen("127.0.0.1:0").start().expect("a port is free");
    let mut events = Events::listen(&reporter);
    let mut readings = vec![progress(&reporter)];
    for (seconds, loss) in [(0, 2.0), (3_600, 0.9), (-7_200, 0.4)] {
        {
            let batch = reporter.batch();
            set(clock, seconds);
            std::thread::park_timeout(Duration::from_millis(20));
            batch.loss(loss);
        }
        let off = wall() - began - f64::from(i32::try_from(seconds).expect("an hour or two"));
        assert!((0.0..WHOLE).contains(&off), "the clock was not set: it is off by {off} s");
        reporter.validation(loss);
        if let Some(request) = reporter.checkpoint_requested() {
            request.saved("kept.pt");
        }
        readings.push(progress(&reporter));
    }
    readings.push(progress(&reporter));
    let stamps: Vec<f64> = readings.iter().map(|reading| reading.now).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
    let event = events.find(|progress| progress.reached.objective_at.is_some()).expect("an event");
    for reading in readings.iter().chain([&event]) {
        ensure_sound(reading, began);
    }
    let last = readings.last().expect("there are some");
    assert!(last.reached.acceptable_at < last.reached.objective_at, "{last:?}");
    assert_eq!((last.step, last.checkpoint.saved), (Some(3), 1));
}

/// Fails unless all times in a reading are within the test's own.
fn ensure_sound(reading: &Progress, began: f64) {
    let Progress { eval, reached, validation, checkpoint, signals, .. } = reading;
    let latency = &reading.batch_latency;
    let stamps = [
        Some(reading.started_at),
        Some(reading.now),
        eval.updated_at,
        reached.acceptable_at,
        reached.objective_at,
        validation.map(|validation| validation.updated_at),
        checkpoint.at,
    ];
    for stamp in stamps.into_iter().flatten() {
        // A stamp may be some nanoseconds older than the clock's reading.
        assert!((-0.001..WHOLE).contains(&(stamp - began)), "{stamp} in {reading:?}");
    }
    for seconds in [latency.last, latency.p50, latency.p99, signals.quiet_seconds] {
        assert!(seconds.is_none_or(|seconds| (0.0..WHOLE).contains(&seconds)), "{reading:?}");
    }
    let batches = f64::from(u32::try_from(latency.count).expect("a few batches"));
    assert!((0.019 * batches..=WHOLE).contains(&latency.sum), "{latency:?}");
    assert_ne!(signals.activity, Activity::Stalled);
    assert_eq!(reading.state == State::Running, latency.count > 0, "{reading:?}");
}

fn set(clock: &Path, seconds: i64) {
    // Written under another name first, so that no program reads half a value.
    let new = clock.with_extension("new");
    fs::write(&new, seconds.to_ne_bytes()).expect("the folder is ours");
    fs::rename(new, clock).expect("the folder is ours");
}

#[expect(clippy::disallowed_methods, reason = "it checks whether the clock is off")]
fn wall() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs_f64()
}
