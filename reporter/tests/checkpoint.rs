//! Checkpoints: requested by a client or at the acceptable loss, answered by the loop.

mod client;

use std::io;

use client::{ask, body, progress};
use paceline_reporter::{Reason, Reporter};
use paceline_wire::{Activity, Kept};

fn start() -> Reporter {
    let builder = Reporter::builder("vae").acceptable(10.0).objective(1.0).stop_at_objective();
    builder.listen("127.0.0.1:0").start().expect("a port is free")
}

fn report(reporter: &Reporter, loss: f64) {
    (0..5).for_each(|_| reporter.report(loss));
}

/// Asks for a checkpoint; returns the answer with the request's number.
fn post(reporter: &Reporter) -> String {
    let answer = ask(reporter, "POST /v1/checkpoint", "host: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    body(&answer).trim().to_owned()
}

#[test]
fn a_checkpoint_that_was_asked_for_is_saved_by_the_loop() {
    let reporter = start();
    assert!(reporter.checkpoint_requested().is_none());
    report(&reporter, 50.0);
    assert_eq!(post(&reporter), r#"{"requested":1}"#);
    let request = reporter.checkpoint_requested().unwrap();
    assert_eq!(request.reason(), Reason::Asked);
    assert!(reporter.checkpoint_requested().is_none(), "one thread has it");
    request.save(|_| Ok::<_, io::Error>("/ckpt/vae.bin")).unwrap();
    let read = progress(&reporter).checkpoint;
    assert_eq!((read.requested, read.answered, read.saved), (1, 1, 1));
    assert_eq!((read.step, read.loss, read.error), (Some(5), Some(50.0), None));
    assert_eq!((read.path.as_deref(), read.kept), (Some("/ckpt/vae.bin"), None));
}

#[test]
fn failed_and_dropped_requests_report_an_error() {
    let reporter = start();
    post(&reporter);
    let failed = reporter.checkpoint_requested().unwrap();
    failed.save(|_| Err::<&str, _>(io::Error::other("the disk is full"))).unwrap_err();
    assert_eq!(progress(&reporter).checkpoint.error.as_deref(), Some("the disk is full"));
    post(&reporter);
    drop(reporter.checkpoint_requested().unwrap());
    let read = progress(&reporter).checkpoint;
    assert_eq!((read.requested, read.answered, read.saved), (2, 2, 0));
    assert_eq!(
        read.error.as_deref(),
        Some("the training loop dropped the request without an answer")
    );
}

#[test]
fn kept_checkpoint_is_not_replaced_by_a_later_one() {
    let reporter = start();
    report(&reporter, 50.0);
    assert!(reporter.checkpoint_requested().is_none());
    report(&reporter, 8.0);
    let request = reporter.checkpoint_requested().unwrap();
    assert_eq!(request.reason(), Reason::Keep);
    request.saved("/ckpt/best.bin");
    report(&reporter, 40.0);
    post(&reporter);
    let request = reporter.checkpoint_requested().unwrap();
    assert_eq!(request.reason(), Reason::Asked);
    request.saved("/ckpt/latest.bin");
    let read = progress(&reporter).checkpoint;
    assert_eq!((read.path.as_deref(), read.loss), (Some("/ckpt/latest.bin"), Some(40.0)));
    let Kept { path, loss, step, .. } = read.kept.unwrap();
    assert_eq!((path.as_str(), loss, step), ("/ckpt/best.bin", 8.0, 10));
}

#[test]
fn loop_is_stopped_at_its_objective() {
    let reporter = start();
    report(&reporter, 5.0);
    assert!(!reporter.should_stop());
    report(&reporter, 0.5);
    assert!(reporter.should_stop());
    let other = Reporter::builder("other").objective(1.0).listen("127.0.0.1:0").start().unwrap();
    report(&other, 0.5);
    assert!(!other.should_stop(), "it did not set `stop_at_objective`");
}

#[test]
fn saving_and_evaluating_show_as_activities() {
    let reporter = start();
    report(&reporter, 50.0);
    let activity = || progress(&reporter).signals.activity;
    let evaluating = reporter.evaluating();
    assert_eq!(activity(), Activity::Evaluating);
    reporter.validation(49.0);
    drop(evaluating);
    assert_eq!(activity(), Activity::Training);
    post(&reporter);
    let request = reporter.checkpoint_requested().unwrap();
    assert_eq!(activity(), Activity::Checkpointing);
    request.saved("a");
    assert_eq!(activity(), Activity::Training);
    assert_eq!(progress(&reporter).validation.map(|validation| validation.value), Some(49.0));
}
