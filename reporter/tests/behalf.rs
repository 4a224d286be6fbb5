//! A program that reports on behalf of a job, and a process that resumes another one.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod client;

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{ask, connect, progress};
use paceline_reporter::{Extension, Posted, Reporter};
use paceline_wire::{Activity, Progress, Reached, Sidecar, State};

#[derive(Debug, Default)]
struct Proxy(Mutex<Vec<String>>);

impl Extension for Proxy {
    fn describe(&self) -> Sidecar {
        Sidecar { loss_from: Some("push".to_owned()), ..Sidecar::default() }
    }

    fn post(&self, path: &str, body: &[u8]) -> Option<Posted> {
        let text = String::from_utf8_lossy(body).into_owned();
        match (path, text.as_str()) {
            ("/v1/report", "bad") => Some(Posted::Refused("line 1: no".to_owned())),
            ("/v1/report", _) => {
                self.0.lock().unwrap().push(text);
                Some(Posted::Taken)
            }
            _ => None,
        }
    }
}

/// An extension that takes readings.
#[derive(Debug, Default)]
struct Subscriber(Mutex<Vec<(Progress, bool)>>);

impl Extension for Subscriber {
    fn describe(&self) -> Sidecar {
        Sidecar::default()
    }

    fn post(&self, _: &str, _: &[u8]) -> Option<Posted> {
        None
    }

    fn is_subscribed(&self) -> bool {
        true
    }

    fn publish(&self, progress: &Progress, is_last: bool) {
        self.0.lock().unwrap().push((progress.clone(), is_last));
    }
}

fn post(reporter: &Reporter, path: &str, body: &str) -> String {
    let mut stream = connect(reporter);
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn posts_reach_the_extension_and_its_answer_is_shown() {
    let proxy = Arc::new(Proxy::default());
    let extension: Arc<dyn Extension> = proxy.clone();
    let builder = Reporter::builder("vae").on_behalf("sidecar", extension);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    for (path, body, status) in [
        ("/v1/report", "{}", "204"),
        ("/v1/report", "bad", "400"),
        ("/v1/report", &"x".repeat(1_100_000), "413"),
        ("/v1/else", "{}", "404"),
        ("/v1/progress", "{}", "405"),
        ("/v1/checkpoint", "", "202"),
    ] {
        assert_eq!(post(&reporter, path, body), status, "{path}");
    }
    for headers in ["host: evil.example\r\n", "host: localhost\r\norigin: http://evil.example\r\n"]
    {
        let foreign = ask(&reporter, "POST /v1/report", headers);
        assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    }
    assert_eq!(*proxy.0.lock().unwrap(), ["{}"]);
    let read = progress(&reporter);
    assert_eq!(read.source, "sidecar");
    assert_eq!(read.sidecar.unwrap().loss_from.as_deref(), Some("push"));
    // Nothing could take the request, so its answer does not keep the requester waiting.
    let checkpoint = read.checkpoint;
    assert_eq!((checkpoint.requested, checkpoint.answered, checkpoint.saved), (1, 1, 0));
    assert!(checkpoint.error.unwrap().contains("does not embed the reporter"));
}

#[test]
fn acceptable_loss_asks_for_no_checkpoint_that_nothing_can_save() {
    let extension: Arc<dyn Extension> = Arc::<Proxy>::default();
    let builder = Reporter::builder("vae").acceptable(1.0).on_behalf("sidecar", extension);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    (0..20).for_each(|_| reporter.report(0.5));
    let read = progress(&reporter);
    assert!(read.reached.acceptable_at.is_some());
    assert_eq!(read.checkpoint.requested, 0);
}

#[test]
fn subscriber_gets_readings_without_news_and_a_last_one() {
    let subscriber = Arc::new(Subscriber::default());
    let extension: Arc<dyn Extension> = subscriber.clone();
    let builder = Reporter::builder("vae").on_behalf("sidecar", extension);
    // A busy machine may need more than the default for the last one.
    let builder = builder.end_timeout(Duration::from_secs(60));
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    let count = || subscriber.0.lock().unwrap().len();
    // Nothing happens, and a stall would show all the same.
    let mut looks = (0..6000).map(|_| {
        std::thread::park_timeout(Duration::from_millis(10));
        count() >= 3
    });
    assert!(looks.any(|enough| enough));
    reporter.report(2.5);
    reporter.fail();
    drop(reporter);
    let readings = subscriber.0.lock().unwrap();
    let (last, is_last) = readings.last().unwrap();
    assert_eq!((*is_last, last.state, last.eval.count), (true, State::Failed, 1));
    assert!(readings.iter().rev().skip(1).all(|(_, is_last)| !is_last));
    // The signals are derived.
    assert!(last.signals.quiet_seconds.is_some());
}

#[test]
fn a_plain_reporter_takes_no_reports_from_outside() {
    let reporter = Reporter::builder("vae").listen("127.0.0.1:0").start().unwrap();
    assert_eq!(post(&reporter, "/v1/report", "{}"), "404");
    assert_eq!(progress(&reporter).sidecar, None);
}

#[test]
fn successor_continues_where_predecessor_ended() {
    let start = |before| {
        let builder = Reporter::builder("vae").acceptable(5.0).window(1).listen("127.0.0.1:0");
        let builder = if let Some(before) = before { builder.resume(before) } else { builder };
        builder.start().unwrap()
    };
    let first = start(None);
    first.step(100);
    for loss in [9.0, 4.0, f64::NAN] {
        first.record(Some(loss), Some(Duration::from_millis(20)));
    }
    first.epoch(3);
    first.total_steps(500);
    first.expected_steps(300);
    let before = progress(&first);
    drop(first);
    let second = start(Some(before.clone()));
    let now = progress(&second);
    assert_ne!(now.instance, before.instance);
    assert_eq!((now.step, now.epoch, now.rejected), (Some(103), Some(3), 1));
    let signals = (now.signals.activity, now.signals.loss_smoothed);
    assert_eq!(signals, (Activity::Starting, None), "the times of earlier reports are unknown");
    assert_eq!((now.total_steps, now.expected_steps), (Some(500), Some(300)));
    assert_eq!((now.eval.count, now.eval.sum, now.eval.best), (2, 13.0, Some(4.0)));
    assert_eq!((now.batch_latency.count, now.batch_latency.sum), (3, 0.06));
    // The histogram begins again, so its sum does as well.
    second.record(None, Some(Duration::from_millis(30)));
    let metrics = ask(&second, "GET /metrics", "host: localhost\r\n");
    for sample in ["_count 1", "_sum 0.03"] {
        assert!(
            metrics.contains(&format!("paceline_batch_duration_seconds{sample}\n")),
            "{metrics}"
        );
    }
    let Reached { acceptable_at, .. } = now.reached;
    assert!(acceptable_at.is_some() && acceptable_at == before.reached.acceptable_at);
    second.report(3.0);
    let later = progress(&second);
    assert_eq!((later.step, later.eval.count, later.eval.sum), (Some(104), 3, 16.0));
    assert!(second.checkpoint_requested().is_none(), "it was reached before");
}

#[test]
fn target_that_was_changed_is_not_reached_yet() {
    let start = |objective: f64, before: Option<Progress>| {
        let builder = Reporter::builder("vae").objective(objective).stop_at_objective().window(1);
        let builder = builder.listen("127.0.0.1:0");
        before.into_iter().fold(builder, paceline_reporter::Builder::resume).start().unwrap()
    };
    let first = start(5.0, None);
    first.report(4.0);
    assert!(first.should_stop());
    let before = progress(&first);
    drop(first);
    let same = start(5.0, Some(before.clone()));
    assert!(same.should_stop() && progress(&same).reached == before.reached);
    drop(same);
    let other = start(3.0, Some(before));
    assert!(!other.should_stop() && progress(&other).reached.objective_at.is_none());
    other.report(2.5);
    assert!(other.should_stop() && progress(&other).reached.objective_at.is_some());
}
