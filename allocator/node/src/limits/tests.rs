mod absent;
mod auto;
mod by_owner;
mod cgroup_backend;
mod disk;
mod histories;
mod pods;
mod stub;
mod upgrade;

use paceline_policy::Share;
use paceline_policy::limiter::Setting;
use serde_json::json;

use super::*;
use stub::{Behavior, Groups, Stub, quota};

fn cap(share: f64) -> Setting {
    Setting::Cap(Share::nearest(share))
}

#[tokio::test]
async fn failure_of_the_engine_after_the_change_is_a_success() {
    let stub = Stub::start(&["a"]);
    stub.state.lock().unwrap().behavior = Behavior::FailsLate;
    let actuator = stub.engine_actuator();
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.state.lock().unwrap().updates.len(), 1, "the write is not repeated");
    assert_eq!(actuator.drifted("a").await, None);
    stub.state.lock().unwrap().behavior = Behavior::Honest;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn refused_request_is_not_made_again_by_the_restore() {
    // Only under systemd could it have left anything.
    let stub = Stub::start_on(Groups::Second(0), &["a"]);
    stub.state.lock().unwrap().behavior = Behavior::Refuses;
    let actuator = stub.engine_actuator();
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25), "by the file");
    stub.state.lock().unwrap().behavior = Behavior::Honest;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.state.lock().unwrap().updates.len(), 1);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn value_missing_in_the_kernel_is_written_twice_then_fails() {
    let stub = Stub::start(&["a"]);
    stub.state.lock().unwrap().behavior = Behavior::Idle;
    let actuator = stub.engine_actuator();
    let error = actuator.set("a", Setting::Weight(512)).await.unwrap_err().to_string();
    assert!(error.contains("container a: expected CpuShares=512, found weight 1024"), "{error}");
    assert_eq!(stub.state.lock().unwrap().updates.len(), 2);
    // For a cap there is another method.
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.state.lock().unwrap().updates.len(), 4);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
}

#[tokio::test]
async fn cgroup_backend_sends_no_updates_to_the_engine() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().with_backend(ActuatorBackend::Cgroup, OnDrift::Reassert);
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(actuator.set("a", Setting::Weight(512)).await.unwrap(), Setting::Weight(512));
    let group = stub.cgroup("a");
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(Some(50_000)), 512));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(None), 1024));
    assert!(stub.state.lock().unwrap().updates.is_empty());
}

#[tokio::test]
async fn outside_change_is_overwritten_and_restored_in_the_end() {
    for backend in [ActuatorBackend::Engine, ActuatorBackend::Cgroup] {
        let stub = Stub::start(&["a"]);
        let actuator = stub.actuator().with_backend(backend, OnDrift::Reassert);
        actuator.set("a", cap(0.25)).await.unwrap();
        assert_eq!(actuator.drifted("a").await, None, "{backend}");
        stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
        let drift = actuator.drifted("a").await.unwrap();
        assert_eq!((&drift.written, drift.found.as_str()), (&vec![cap(0.25)], "75.0 %"));
        assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Reassert);
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
        assert_eq!(actuator.drifted("a").await, None, "{backend}");
        assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
        assert_eq!(stub.kept("a", "NanoCpus"), 1_500_000_000);
    }
}

#[tokio::test]
async fn yielded_container_is_not_written_until_managed_again() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().with_backend(ActuatorBackend::Engine, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("a", Setting::Weight(512)).await.unwrap();
    stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
    let drift = actuator.drifted("a").await.unwrap();
    assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Yield);
    // The owner's cap stays, and our weight is undone.
    assert_eq!(stub.kept("a", "NanoCpus"), 1_500_000_000);
    assert_eq!(stub.cgroup("a").weight().unwrap(), 1024);
    assert!(actuator.pending().is_empty());
    assert!(matches!(actuator.set("a", cap(0.25)).await, Err(LimitError::Yielded(_))));
    assert_eq!(actuator.drifted("a").await, None);
    actuator.manage("a");
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
}

#[tokio::test]
async fn outside_change_between_two_writes_makes_the_second_yield() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().with_backend(ActuatorBackend::Engine, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.update("a", &json!({"CpuShares": 300}));
    assert!(matches!(actuator.set("a", cap(0.5)).await, Err(LimitError::Yielded(_))));
    assert_eq!((stub.kept("a", "CpuShares"), stub.kept("a", "NanoCpus")), (300, 2_000_000_000));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn cgroup_backend_yields_to_a_changed_file() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator().with_backend(ActuatorBackend::Cgroup, OnDrift::Yield);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.cgroup("a").set_quota(quota(Some(70_000))).unwrap();
    let drift = actuator.drifted("a").await.unwrap();
    assert_eq!(actuator.answer(&drift).await.unwrap(), OnDrift::Yield);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(70_000)));
}

#[tokio::test]
async fn weight_applies_to_block_io_if_the_kernel_supports_it() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = stub.engine_actuator();
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
