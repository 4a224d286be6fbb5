use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paceline_lines::observation::{Loss, Phase};

use super::*;

/// Posts a loss as soon as the endpoint accepts a connection.
fn posts(socket: &Path) -> String {
    let mut stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(_) => thread::yield_now(),
        }
    };
    let (body, mut answer) = ("{\"loss\":0.5}", String::new());
    let length = body.len();
    let head = "POST /v1/report HTTP/1.0\r\nhost: localhost\r\ncontent-length";
    write!(stream, "{head}: {length}\r\n\r\n{body}").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Starts a job while another thread posts a loss as early as possible. Returns the number of
/// counted losses.
fn counted_of_a_start() -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sidecar.sock");
    let builder = Reporter::builder("vae").listen(&format!("unix:{}", socket.display()));
    thread::scope(|scope| {
        let posted = scope.spawn(|| posts(&socket));
        let job = Job::start(builder, Hints::default()).unwrap();
        assert!(posted.join().unwrap().contains(" 204 "));
        let progress = job.progress().unwrap();
        job.close();
        progress.eval.count
    })
}

/// Stops the busy threads, even if a test fails.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn clock_that_is_set_forward_makes_no_long_batch() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sidecar.sock");
    let builder = Reporter::builder("vae").listen(&format!("unix:{}", socket.display()));
    let job = Job::start(builder, Hints::default()).unwrap();
    let base = job.clock.unix() - 1.0;
    for step in 1..=6_u32 {
        let jump = if step > 3 { 3600.0 } else { 0.0 };
        let at = base + jump + 0.1 * f64::from(step);
        let body = format!("{{\"loss\":0.5,\"step\":{step},\"at\":{at}}}");
        assert_eq!(job.post("/v1/report", body.as_bytes()), Some(Posted::Taken));
    }
    let latency = job.progress().unwrap().batch_latency;
    job.close();
    assert!(latency.count > 0 && latency.sum < 600.0, "{latency:?}");
}

#[test]
fn loss_that_is_posted_while_the_job_starts_is_counted() {
    let busy = AtomicBool::new(true);
    thread::scope(|scope| {
        let _ends = Busy(&busy);
        // On a busy machine, a thread that has started another may have to wait.
        for _ in 0..8 {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let counted: Vec<u64> = (0..25).map(|_| counted_of_a_start()).collect();
        assert_eq!(counted, [1; 25]);
    });
}

/// A bar that is drawn several times at one step shows a new loss each time.
#[test]
fn no_reading_shows_a_step_that_was_not_reached() {
    const DRAWN: u32 = 20_000;
    let builder = Reporter::builder("vae").listen("127.0.0.1:0");
    let job = Job::start(builder, Hints::default()).unwrap();
    let bar = job.add(Kind::Text, "bar");
    thread::scope(|scope| {
        let draws = scope.spawn(|| {
            for drawn in 0..DRAWN {
                let value = f64::from(DRAWN - drawn);
                let loss =
                    Loss { name: "loss".to_owned(), phase: Phase::Train, span: Span::Step, value };
                let losses = vec![loss];
                job.take(bar, &Observation { step: Some(50), losses, ..Observation::default() });
            }
        });
        // The endpoint reads without the lock of the job.
        let reporter = job.state().reporter.clone().unwrap();
        while !draws.is_finished() {
            let Progress { step, eval, .. } = reporter.progress().unwrap();
            assert_eq!(step, (eval.count > 0).then_some(50));
        }
    });
    assert_eq!(job.progress().unwrap().eval.count, u64::from(DRAWN));
    job.close();
}
