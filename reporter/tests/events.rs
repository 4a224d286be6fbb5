//! Server-sent events: which changes are sent, and to which listeners.

mod client;

use client::{Events, ask};
use paceline_reporter::Reporter;
use paceline_wire::State;

fn start() -> Reporter {
    let builder = Reporter::builder("vae").acceptable(2.0).objective(1.0);
    builder.listen("127.0.0.1:0").start().expect("a port is free")
}

fn report(reporter: &Reporter, loss: f64) {
    (0..5).for_each(|_| reporter.report(loss));
}

#[test]
fn listener_gets_the_current_state_and_then_changes() {
    let reporter = start();
    let mut events = Events::listen(&reporter);
    let first = events.next().unwrap();
    assert_eq!((first.state, first.step), (State::Starting, None));
    report(&reporter, 1.5);
    let reached = events.find(|event| event.reached.acceptable_at.is_some()).unwrap();
    assert_eq!((reached.state, reached.reached.objective_at), (State::Running, None));
    report(&reporter, 0.5);
    assert!(events.any(|event| event.reached.objective_at.is_some()));
    reporter.finish();
    assert!(events.any(|event| event.state == State::Finished));
    drop(reporter);
    assert_eq!(events.count(), 0, "the reporter closes the connection");
}

#[test]
fn job_that_ends_at_once_still_says_how() {
    let reporter = start();
    let mut events = Events::listen(&reporter);
    assert_eq!(events.next().unwrap().state, State::Starting);
    reporter.fail();
    drop(reporter);
    assert_eq!(events.last().unwrap().state, State::Failed);
}

#[test]
fn total_that_is_set_before_a_step_is_an_event() {
    let reporter = start();
    let mut events = Events::listen(&reporter);
    assert_eq!(events.next().unwrap().total_steps, None);
    reporter.total_steps(500);
    let event = events.find(|event| event.total_steps.is_some()).unwrap();
    assert_eq!((event.total_steps, event.state), (Some(500), State::Starting));
}

#[test]
fn saved_checkpoint_is_an_event() {
    let reporter = start();
    report(&reporter, 9.0);
    let mut events = Events::listen(&reporter);
    assert!(ask(&reporter, "POST /v1/checkpoint", "host: localhost\r\n").contains(" 202 "));
    reporter.checkpoint_requested().unwrap().saved("/ckpt/vae.bin");
    let saved = events.find(|event| event.checkpoint.saved == 1).unwrap();
    assert_eq!(saved.checkpoint.path.as_deref(), Some("/ckpt/vae.bin"));
}

#[test]
fn leaving_listener_does_not_disturb_others() {
    let reporter = start();
    let mut all: Vec<_> = (0..8).map(|_| Events::listen(&reporter)).collect();
    assert!(all.iter_mut().all(|events| events.next().is_some()));
    all.truncate(3);
    report(&reporter, 1.5);
    for events in &mut all {
        assert!(events.any(|event| event.reached.acceptable_at.is_some()));
    }
}

#[test]
fn head_returns_the_type_without_listening() {
    let answer = ask(&start(), "HEAD /v1/events", "host: localhost\r\n");
    assert!(answer.contains("content-type: text/event-stream"), "{answer}");
}
