//! The endpoint, over real sockets.

mod client;

use std::io::Read;

use client::{ask, body, connect, progress, wait_until};
use paceline_reporter::{LocalAddr, Reporter};
use paceline_wire::State;

const LOCAL: &str = "host: localhost\r\n";

fn start() -> Reporter {
    Reporter::builder("vae").listen("127.0.0.1:0").start().expect("a port is free")
}

fn status(reporter: &Reporter, line: &str) -> String {
    let answer = ask(reporter, line, LOCAL);
    answer.split(' ').nth(1).expect("the answer has a status").to_owned()
}

#[test]
fn progress_has_the_settings_and_reports() {
    let reporter = Reporter::builder("vae")
        .loss_name("reconstruction")
        .acceptable(120.0)
        .objective(110.0)
        .batch_latency(0.5)
        .total_steps(46_900)
        .dataset("MNIST")
        .window(2)
        .listen("127.0.0.1:0")
        .start()
        .unwrap();
    reporter.epoch(3);
    for loss in [130.0_f32, 121.0, 117.0] {
        let batch = reporter.batch();
        batch.loss(loss);
    }
    reporter.report(f64::NAN);
    let read = progress(&reporter);
    assert_eq!((read.job.as_str(), read.source.as_str()), ("vae", "reporter"));
    assert_eq!((read.pid, read.instance.len()), (std::process::id(), 26));
    assert_eq!((read.step, read.epoch, read.total_steps), (Some(4), Some(3), Some(46_900)));
    assert_eq!((read.state, read.dataset.as_deref()), (State::Running, Some("MNIST")));
    assert_eq!((read.eval.name.as_str(), read.eval.window), ("reconstruction", 2));
    assert_eq!((read.eval.value, read.eval.count, read.eval.sum), (Some(119.0), 3, 368.0));
    assert_eq!((read.eval.first, read.eval.best), (Some(130.0), Some(117.0)));
    assert_eq!((read.batch_latency.count, read.dropped, read.rejected), (3, 0, 1));
    assert!(read.batch_latency.p50 <= read.batch_latency.p99);
    assert!(read.reached.acceptable_at >= Some(read.started_at));
    assert!(read.eval.updated_at <= Some(read.now) && read.reached.objective_at.is_none());
    assert_eq!(read.targets.batch_latency, Some(0.5));
}

#[test]
fn totals_are_published_before_the_first_step() {
    let job = Reporter::builder("vae").total_steps(1_000).expected_steps(400);
    let reporter = job.listen("127.0.0.1:0").start().unwrap();
    let read = progress(&reporter);
    assert_eq!((read.state, read.step), (State::Starting, None));
    assert_eq!((read.total_steps, read.expected_steps), (Some(1_000), Some(400)));
}

#[test]
fn totals_may_be_set_later_and_taken_back() {
    let reporter = start();
    reporter.expected_steps(400);
    assert_eq!(progress(&reporter).expected_steps, Some(400));
    reporter.total_steps(300);
    let read = progress(&reporter);
    assert_eq!((read.total_steps, read.expected_steps), (Some(300), Some(300)), "300 at most");
    reporter.total_steps(0);
    reporter.expected_steps(0);
    let read = progress(&reporter);
    assert_eq!((read.total_steps, read.expected_steps), (None, None));
}

#[test]
fn dropped_batch_counts_and_a_panicking_one_does_not() {
    let reporter = start();
    drop(reporter.batch());
    let within = reporter.clone();
    let panicked = std::thread::spawn(move || {
        let _batch = within.batch();
        panic!("as the test wants it");
    });
    assert!(panicked.join().is_err());
    let read = progress(&reporter);
    assert_eq!((read.batch_latency.count, read.step, read.state), (1, None, State::Running));
}

#[test]
fn first_reported_ending_stays() {
    let (done, failed) = (start(), start());
    done.report(1.0);
    done.finish();
    done.fail();
    failed.fail();
    assert_eq!(progress(&done).state, State::Finished);
    assert_eq!(progress(&failed).state, State::Failed);
    assert_ne!(progress(&done).instance, progress(&failed).instance);
}

#[test]
fn the_metrics_come_with_their_content_type() {
    let reporter = start();
    reporter.report(2.5);
    let answer = ask(&reporter, "GET /metrics", LOCAL);
    assert!(head(&answer).contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
    assert!(body(&answer).contains("\npaceline_loss 2.5\n"), "{answer}");
}

#[test]
fn metrics_are_openmetrics_for_a_reader_that_accepts_it() {
    let reporter = start();
    reporter.report(2.5);
    let accept =
        format!("{LOCAL}accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
    let answer = ask(&reporter, "GET /metrics", &accept);
    let expected = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head(&answer).contains(expected), "{answer}");
    assert!(body(&answer).contains("\npaceline_loss 2.5\n") && answer.ends_with("# EOF\n"));
}

#[test]
fn readiness_waits_for_the_first_report_and_health_does_not() {
    let reporter = start();
    assert_eq!(
        (status(&reporter, "GET /healthz"), status(&reporter, "GET /readyz")),
        ("200".into(), "503".into())
    );
    reporter.report(1.0);
    assert_eq!(status(&reporter, "GET /readyz"), "200");
}

#[test]
fn other_pages_and_methods_are_refused_in_one_line() {
    let reporter = start();
    for line in ["GET /page", "GET /v1/report", "POST /v1/report", "GET /v1/progress/"] {
        let answer = ask(&reporter, line, LOCAL);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{line}: {answer}");
        assert_eq!(body(&answer).lines().count(), 1);
    }
    for (line, allowed) in [
        ("POST /v1/progress", "allow: GET, HEAD"),
        ("POST /v1/events", "allow: GET, HEAD"),
        ("GET /v1/checkpoint", "allow: POST"),
        ("DELETE /v1/checkpoint", "allow: POST"),
    ] {
        let answer = ask(&reporter, line, LOCAL);
        assert!(answer.starts_with("HTTP/1.1 405 ") && head(&answer).contains(allowed), "{answer}");
    }
}

#[test]
fn head_has_the_length_of_the_body_and_no_body() {
    let reporter = start();
    let [head_only, whole] =
        ["HEAD /metrics", "GET /metrics"].map(|line| ask(&reporter, line, LOCAL));
    assert_eq!(body(&head_only), "");
    assert!(head(&head_only).contains(&format!("content-length: {}", body(&whole).len())));
}

#[test]
fn a_strange_host_is_refused_on_loopback_only() {
    let everywhere = Reporter::builder("vae").listen("0.0.0.0:0").start().unwrap();
    for (reporter, host, status) in [
        (&start(), "evil.example", "HTTP/1.1 403 "),
        (&start(), "127.0.0.1:7223", "HTTP/1.1 200 "),
        (&everywhere, "job.example", "HTTP/1.1 200 "),
    ] {
        let answer = ask(reporter, "GET /v1/progress", &format!("host: {host}\r\n"));
        assert!(answer.starts_with(status), "{host}: {answer}");
    }
}

#[test]
fn request_of_another_origins_page_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("job.sock").display());
    for reporter in [start(), Reporter::builder("vae").listen(&socket).start().unwrap()] {
        let status = |line: &str, headers: &str| {
            let answer = ask(&reporter, line, &format!("host: localhost:7223\r\n{headers}"));
            answer.split(' ').nth(1).unwrap().to_owned()
        };
        for headers in [
            "origin: http://evil.example\r\n",
            "origin: null\r\n",
            "origin: http://localhost:8888\r\nsec-fetch-site: same-site\r\n",
            "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n",
        ] {
            assert_eq!(status("POST /v1/checkpoint", headers), "403", "{headers}");
        }
        assert_eq!(progress(&reporter).checkpoint.requested, 0);
        for (headers, expected) in [
            ("origin: http://evil.example\r\n", "403"),
            ("sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n", "403"),
            // A notebook's page frames the job's.
            ("sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n", "200"),
            ("sec-fetch-site: same-origin\r\nsec-fetch-mode: cors\r\n", "200"),
            ("sec-fetch-site: none\r\nsec-fetch-mode: navigate\r\n", "200"),
        ] {
            assert_eq!(status("GET /v1/progress", headers), expected, "{headers}");
        }
        let own = "origin: http://localhost:7223\r\nsec-fetch-site: same-origin\r\n";
        for headers in ["", "user-agent: curl/8.5.0\r\n", own] {
            assert_eq!(status("POST /v1/checkpoint", headers), "202", "{headers}");
        }
    }
}

#[test]
fn a_connection_serves_several_requests() {
    let mut stream = connect(&start_kept());
    for _ in 0..3 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        assert!(read_until(&mut *stream, "serving\n").starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn excess_connection_is_closed_until_another_ends() {
    let reporter = start();
    let mut held: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = connect(&reporter);
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            read_until(&mut *stream, "serving\n");
            stream
        })
        .collect();
    let mut byte = [0];
    assert!(!matches!(connect(&reporter).read(&mut byte), Ok(1..)));
    held.pop();
    wait_until("a connection is accepted", || {
        let mut stream = connect(&reporter);
        let sent = stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
        sent.is_ok() && matches!(stream.read(&mut byte), Ok(1))
    });
}

#[test]
fn a_unix_socket_serves_and_goes_with_the_last_handle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.sock");
    let address = format!("unix:{}", path.display());
    let reporter = Reporter::builder("vae").listen(&address).start().unwrap();
    assert_eq!(reporter.local_addr().unwrap().to_string(), address);
    let clone = reporter.clone();
    drop(reporter);
    clone.report(4.0);
    assert_eq!(progress(&clone).eval.value, Some(4.0));
    drop(clone);
    wait_until("the socket is gone", || !path.exists());
}

#[test]
fn the_port_is_free_again_after_the_last_handle() {
    let reporter = start();
    let LocalAddr::Tcp(address) = *reporter.local_addr().unwrap() else { panic!() };
    drop(reporter);
    wait_until("the port is closed", || std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_reporter_starts_and_stops_within_an_async_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(start()) });
}

#[test]
fn a_disabled_reporter_takes_everything_and_listens_nowhere() {
    let reporter = Reporter::disabled();
    reporter.batch().loss(1.0);
    reporter.report(f64::NAN);
    reporter.epoch(1);
    reporter.finish();
    assert_eq!(reporter.local_addr(), None);
}

/// An answer's status line and headers.
fn head(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("the head ends").0
}

/// A reporter that outlives the test's statement.
fn start_kept() -> Reporter {
    let reporter = start();
    std::mem::forget(reporter.clone());
    reporter
}

fn read_until(stream: &mut dyn client::Stream, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the answer continues");
        text.push(char::from(byte[0]));
    }
    text
}
