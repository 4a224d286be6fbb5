//! Writes of the cgroup backend to containers that the engine has described before.

use paceline_runtime::Container;

use super::*;

fn cgroup_actuator(stub: &Stub, on_drift: OnDrift) -> Actuator {
    stub.actuator().with_backend(ActuatorBackend::Cgroup, on_drift)
}

/// The engine's description of a container.
async fn described(actuator: &Actuator, id: &str) -> Container {
    actuator.inspect(id).await.unwrap().container
}

fn inspections(stub: &Stub) -> usize {
    std::mem::take(&mut stub.state.lock().unwrap().inspections)
}

#[tokio::test]
async fn engine_is_not_asked_while_nothing_changes() {
    let stub = Stub::start(&["a"]);
    let actuator = cgroup_actuator(&stub, OnDrift::Reassert);
    actuator.described(&described(&actuator, "a").await);
    inspections(&stub);
    for share in [0.25, 0.5] {
        // Before the first write, too.
        assert_eq!(actuator.drifted("a").await, None);
        assert_eq!(actuator.set("a", cap(share)).await.unwrap(), cap(share));
        assert_eq!(actuator.set("a", Setting::Weight(512)).await.unwrap(), Setting::Weight(512));
    }
    assert_eq!((inspections(&stub), actuator.pending()), (0, vec!["a".to_owned()]));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    let group = stub.cgroup("a");
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(None), 1024));
}

#[tokio::test]
async fn undescribed_container_is_inspected_once() {
    let stub = Stub::start(&["a"]);
    let actuator = cgroup_actuator(&stub, OnDrift::Reassert);
    for share in [0.25, 0.5] {
        actuator.set("a", cap(share)).await.unwrap();
    }
    assert_eq!(inspections(&stub), 1);
}

#[tokio::test]
async fn outside_change_in_the_kernel_causes_an_inspection() {
    let stub = Stub::start(&["a"]);
    let actuator = cgroup_actuator(&stub, OnDrift::Reassert);
    actuator.described(&described(&actuator, "a").await);
    stub.update("a", &json!({"NanoCpus": 1_500_000_000}));
    inspections(&stub);
    actuator.set("a", cap(0.25)).await.unwrap();
    assert_eq!(inspections(&stub), 1);
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
}

#[tokio::test]
async fn outside_change_is_found_in_the_description_alone() {
    for on_drift in [OnDrift::Reassert, OnDrift::Yield] {
        let stub = Stub::start(&["a"]);
        let actuator = cgroup_actuator(&stub, on_drift);
        actuator.described(&described(&actuator, "a").await);
        actuator.set("a", cap(0.25)).await.unwrap();
        // The same value as we have written.
        stub.update("a", &json!({"NanoCpus": 500_000_000}));
        actuator.described(&described(&actuator, "a").await);
        let set = actuator.set("a", cap(0.5)).await;
        assert_eq!(matches!(set, Err(LimitError::Yielded(_))), on_drift == OnDrift::Yield);
        actuator.restore("a").await.unwrap();
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)), "{on_drift}");
    }
}

#[tokio::test]
async fn engine_backend_inspects_before_every_write() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.engine_actuator();
    actuator.described(&described(&actuator, "a").await);
    inspections(&stub);
    for share in [0.25, 0.5] {
        actuator.set("a", cap(share)).await.unwrap();
    }
    assert_eq!(inspections(&stub), 2);
}

#[tokio::test]
async fn container_never_written_to_is_forgotten_when_gone() {
    let stub = Stub::start(&["a"]);
    let actuator = cgroup_actuator(&stub, OnDrift::Reassert);
    actuator.described(&described(&actuator, "a").await);
    assert!(actuator.written.get("a").is_some());
    assert_eq!(actuator.restore("a").await.unwrap(), None);
    assert!(actuator.written.get("a").is_none());
}
