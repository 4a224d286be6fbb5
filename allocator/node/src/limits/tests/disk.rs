//! A disk that fails during a run: new limits are refused, and the original ones come back from memory.

use std::fs;

use super::*;

fn by(stub: &Stub, backend: ActuatorBackend) -> Actuator {
    stub.actuator().with_backend(backend, OnDrift::Reassert)
}

/// Puts a file in the place of the state folder, so that everything below it fails. Root may write to any
/// folder that is only read-only.
fn fail(stub: &Stub) {
    fs::rename(stub.state_folder("state"), stub.state_folder("aside")).unwrap();
    fs::write(stub.state_folder("state"), "").unwrap();
}

/// The disk works again.
fn mend(stub: &Stub) {
    fs::remove_file(stub.state_folder("state")).unwrap();
    fs::rename(stub.state_folder("aside"), stub.state_folder("state")).unwrap();
}

#[tokio::test]
async fn limits_come_back_from_memory_while_the_disk_fails() {
    for backend in [ActuatorBackend::Engine, ActuatorBackend::Cgroup] {
        let stub = Stub::start(&["a", "b"]);
        let actuator = by(&stub, backend);
        actuator.set("a", cap(0.25)).await.unwrap();
        fail(&stub);
        for id in ["a", "b"] {
            let refused = actuator.set(id, cap(0.5)).await.unwrap_err();
            assert!(matches!(refused, LimitError::Originals(..)), "{backend}: {refused}");
        }
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)), "{backend}");
        assert_eq!(stub.cgroup("b").quota().unwrap(), quota(None), "{backend}");
        assert!(actuator.restore("a").await.unwrap().is_some(), "{backend}");
        assert_eq!(stub.cgroup("a").quota().unwrap().share(2.0), Share::ALL, "{backend}");
        assert_eq!(actuator.pending(), [""; 0], "{backend}: it is not a limit that is left behind");
        assert_eq!(actuator.restore("a").await.unwrap(), None, "{backend}");
    }
}

#[tokio::test]
async fn record_that_could_not_be_removed_is_removed_later_and_does_no_harm() {
    for mended in [true, false] {
        let stub = Stub::start(&["a"]);
        let actuator = by(&stub, ActuatorBackend::Cgroup);
        actuator.set("a", cap(0.25)).await.unwrap();
        fail(&stub);
        assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
        mend(&stub);
        let file = stub.state_folder("state").join("stub/a.json");
        assert!(file.exists());
        if mended {
            actuator.mend_files();
            assert!(!file.exists() && !stub.locks().contains(&"a.claim".to_owned()));
        }
        // What its owner sets now is its original limit, whatever the old record has.
        assert!(stub.update("a", &json!({"NanoCpus": 1_500_000_000})));
        actuator.set("a", cap(0.5)).await.unwrap();
        drop(actuator);
        let next = by(&stub, ActuatorBackend::Cgroup);
        assert_eq!(next.restore("a").await.unwrap(), Some(Restored::Exactly));
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)));
        assert!(!file.exists());
    }
}

#[tokio::test]
async fn owners_change_is_kept_while_the_disk_fails() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("a", Setting::Weight(512)).await.unwrap();
    fail(&stub);
    assert!(stub.update("a", &json!({"NanoCpus": 1_500_000_000})));
    assert!(matches!(actuator.set("a", cap(0.5)).await, Err(LimitError::Originals(..))));
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    let group = stub.cgroup("a");
    assert_eq!((group.quota().unwrap(), group.weight().unwrap()), (quota(Some(150_000)), 1024));
}
