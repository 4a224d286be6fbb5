//! Writes past the engine to containers that it has described before.

use super::*;
use crate::observe::container::Container;

fn past_the_engine(stub: &Stub, on_drift: OnDrift) -> Actuator {
    stub.actuator().by(Means::Cgroup, on_drift)
}

/// What the engine says of a container.
async fn described(actuator: &Actuator, id: &str) -> Container {
    actuator.look(id).await.unwrap().container
}

fn looks(stub: &Stub) -> usize {
    std::mem::take(&mut stub.state.lock().unwrap().looks)
}

#[tokio::test]
async fn nothing_is_asked_again_as_long_as_nothing_has_changed() {
    let stub = Stub::start(&["a"]);
    let actuator = past_the_engine(&stub, OnDrift::Reassert);
    actuator.saw(&described(&actuator, "a").await);
    looks(&stub);
    for share in [0.25, 0.5] {
        assert_eq!(actuator.set("a", cap(share)).await.unwrap(), cap(share));
        assert_eq!(actuator.set("a", Setting::Weight(512)).await.unwrap(), Setting::Weight(512));
    }
    assert_eq!((looks(&stub), actuator.pending().unwrap()), (0, vec!["a".to_owned()]));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    let group = stub.cgroup("a");
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(None), 1024));
}

#[tokio::test]
async fn one_that_nobody_has_described_is_asked_about_once() {
    let stub = Stub::start(&["a"]);
    let actuator = past_the_engine(&stub, OnDrift::Reassert);
    for share in [0.25, 0.5] {
        actuator.set("a", cap(share)).await.unwrap();
    }
    assert_eq!(looks(&stub), 1);
}

#[tokio::test]
async fn what_the_kernel_has_by_somebody_elses_doing_is_asked_about() {
    let stub = Stub::start(&["a"]);
    let actuator = past_the_engine(&stub, OnDrift::Reassert);
    actuator.saw(&described(&actuator, "a").await);
    stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
    looks(&stub);
    actuator.set("a", cap(0.25)).await.unwrap();
    assert_eq!(looks(&stub), 1);
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
}

#[tokio::test]
async fn a_word_of_somebody_elses_that_the_kernel_does_not_show_is_found_in_the_description() {
    for on_drift in [OnDrift::Reassert, OnDrift::Yield] {
        let stub = Stub::start(&["a"]);
        let actuator = past_the_engine(&stub, on_drift);
        actuator.saw(&described(&actuator, "a").await);
        actuator.set("a", cap(0.25)).await.unwrap();
        // Just what was written.
        stub.update("a", &json!({"NanoCpus": 500_000_000}));
        actuator.saw(&described(&actuator, "a").await);
        let set = actuator.set("a", cap(0.5)).await;
        assert_eq!(matches!(set, Err(LimitError::Yielded(_))), on_drift == OnDrift::Yield);
        actuator.restore("a").await.unwrap();
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)), "{on_drift}");
    }
}

#[tokio::test]
async fn by_the_engine_a_container_is_looked_at_before_every_write() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator();
    actuator.saw(&described(&actuator, "a").await);
    looks(&stub);
    for share in [0.25, 0.5] {
        actuator.set("a", cap(share)).await.unwrap();
    }
    assert_eq!(looks(&stub), 2);
}

#[tokio::test]
async fn one_that_was_never_written_to_is_forgotten_when_it_goes() {
    let stub = Stub::start(&["a"]);
    let actuator = past_the_engine(&stub, OnDrift::Reassert);
    actuator.saw(&described(&actuator, "a").await);
    assert!(actuator.ledger.get("a").is_some());
    assert_eq!(actuator.restore("a").await.unwrap(), None);
    assert!(actuator.ledger.get("a").is_none());
}
