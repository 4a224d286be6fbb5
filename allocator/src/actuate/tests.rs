mod seen;
mod stub;

use paceline_policy::Share;
use paceline_policy::limiter::Setting;
use serde_json::json;

use super::*;
use crate::observe::cgroup::Quota;
use stub::{Mood, Stub};

fn cap(share: f64) -> Setting {
    Setting::Cap(Share::nearest(share))
}

fn quota(quota: Option<u64>) -> Quota {
    Quota { quota, period: 100_000 }
}

#[tokio::test]
async fn an_engine_that_fails_and_has_done_it_all_the_same_is_seen_through() {
    let stub = Stub::start(&["a"]);
    stub.state.lock().unwrap().mood = Mood::FailsLate;
    let actuator = stub.actuator();
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.state.lock().unwrap().updates.len(), 1, "there is nothing to be repeated");
    assert_eq!(actuator.drifted("a").await, None);
    stub.state.lock().unwrap().mood = Mood::Honest;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn a_value_that_does_not_show_is_written_again_and_is_an_error_then() {
    let stub = Stub::start(&["a"]);
    stub.state.lock().unwrap().mood = Mood::Idle;
    let actuator = stub.actuator();
    let error = actuator.set("a", Setting::Weight(512)).await.unwrap_err().to_string();
    assert!(error.contains("container a was given CpuShares=512, and has weight 1024"), "{error}");
    assert_eq!(stub.state.lock().unwrap().updates.len(), 2);
    // For a cap there is another way.
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.state.lock().unwrap().updates.len(), 4);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
}

#[tokio::test]
async fn past_the_engine_nothing_is_asked_of_it() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().by(Means::Cgroup, OnDrift::Reassert);
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(actuator.set("a", Setting::Weight(512)).await.unwrap(), Setting::Weight(512));
    let group = stub.cgroup("a");
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(Some(50_000)), 512));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(None), 1024));
    assert!(stub.state.lock().unwrap().updates.is_empty());
}

#[tokio::test]
async fn somebody_elses_word_is_overruled_and_is_what_comes_back() {
    for means in [Means::Engine, Means::Cgroup] {
        let stub = Stub::start(&["a"]);
        let actuator = stub.actuator().by(means, OnDrift::Reassert);
        actuator.set("a", cap(0.25)).await.unwrap();
        assert_eq!(actuator.drifted("a").await, None, "{means}");
        stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
        let drift = actuator.drifted("a").await.unwrap();
        assert_eq!((&drift.written, drift.found.as_str()), (&vec![cap(0.25)], "75.0 %"));
        assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Reassert);
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
        assert_eq!(actuator.drifted("a").await, None, "{means}");
        assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
        assert_eq!(stub.kept("a", "NanoCpus"), 1_500_000_000);
    }
}

#[tokio::test]
async fn a_yielded_container_is_left_alone_until_it_is_to_be_managed() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().by(Means::Engine, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("a", Setting::Weight(512)).await.unwrap();
    stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
    let drift = actuator.drifted("a").await.unwrap();
    assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Yield);
    // Theirs stays, and ours goes back.
    assert_eq!(stub.kept("a", "NanoCpus"), 1_500_000_000);
    assert_eq!(stub.cgroup("a").weight().unwrap(), 1024);
    assert!(actuator.has_yielded("a") && actuator.pending().unwrap().is_empty());
    assert!(matches!(actuator.set("a", cap(0.25)).await, Err(LimitError::Yielded(_))));
    assert_eq!(actuator.drifted("a").await, None);
    actuator.manage("a");
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
}

#[tokio::test]
async fn a_word_that_comes_between_two_writes_makes_the_second_yield() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().by(Means::Engine, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.update("a", &json!({"CpuShares": 300}));
    assert!(matches!(actuator.set("a", cap(0.5)).await, Err(LimitError::Yielded(_))));
    assert_eq!((stub.kept("a", "CpuShares"), stub.kept("a", "NanoCpus")), (300, 2_000_000_000));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn what_is_written_past_the_engine_yields_too() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().by(Means::Cgroup, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.cgroup("a").set_quota(quota(Some(70_000))).unwrap();
    let drift = actuator.drifted("a").await.unwrap();
    assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Yield);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(70_000)));
}

#[tokio::test]
async fn a_weight_is_one_of_block_io_too_where_the_kernel_has_it() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = stub.actuator();
    std::fs::write(stub.file("a", "blkio.bfq.weight"), "100\n").unwrap();
    for id in ["a", "b"] {
        actuator.set(id, Setting::Weight(512)).await.unwrap();
    }
    let weight = || std::fs::read_to_string(stub.file("a", "blkio.bfq.weight")).unwrap();
    assert_eq!(weight(), "50");
    assert!(!stub.file("b", "blkio.bfq.weight").exists());
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Equivalently));
    assert_eq!(weight(), "100");
}
