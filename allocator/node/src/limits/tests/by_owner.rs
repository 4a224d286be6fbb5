//! Whose limits are in force, and whose control group is written to.

use std::fs;

use super::*;
use crate::limits::originals::Scope;

fn by(stub: &Stub, backend: ActuatorBackend) -> Actuator {
    stub.actuator().with_backend(backend, OnDrift::Reassert)
}

#[tokio::test]
async fn limit_that_an_allocator_has_left_is_not_the_owners() {
    let stub = Stub::start(&["a", "b"]);
    let first = stub.allocator("first", Scope::Some).unwrap();
    let second = stub.allocator("second", Scope::Some).unwrap();
    assert_eq!((first.by_owner("a"), second.by_owner("a")), (ByOwner::InForce, ByOwner::InForce));
    first.set("a", cap(0.25)).await.unwrap();
    let ByOwner::Recorded(original) = first.by_owner("a") else { panic!("it has no record") };
    assert_eq!(original.cgroup, Some(quota(None)));
    assert_eq!(second.by_owner("a"), ByOwner::Unknown, "while the first one runs");
    drop(first);
    assert_eq!(second.by_owner("a"), ByOwner::Unknown, "after it was killed");
    assert_eq!(second.by_owner("b"), ByOwner::InForce);
    let first = stub.allocator("first", Scope::Some).unwrap();
    first.restore("a").await.unwrap();
    assert_eq!(second.by_owner("a"), ByOwner::InForce, "after its restore");
}

#[tokio::test]
async fn limit_whose_record_is_lost_is_not_the_owners() {
    let stub = Stub::start(&["a"]);
    stub.actuator().set("a", cap(0.25)).await.unwrap();
    let record = stub.state_folder("state").join("stub/a.json");
    let text = fs::read(&record).unwrap();
    fs::write(&record, "{").unwrap();
    assert_eq!(stub.actuator().by_owner("a"), ByOwner::Unknown, "it cannot be read");
    fs::remove_file(&record).unwrap();
    assert_eq!(stub.actuator().by_owner("a"), ByOwner::Unknown, "it is missing");
    fs::write(&record, text).unwrap();
    assert!(matches!(stub.actuator().by_owner("a"), ByOwner::Recorded(_)));
}

/// A description is some seconds old. Meanwhile the container may end, and its process's number be given
/// to another one.
#[tokio::test]
async fn process_with_a_number_that_is_used_again_is_never_limited() {
    let stub = Stub::start(&["a", "b"]);
    stub.show_as("a", "b");
    let before = stub.cgroup("b").quota().unwrap();
    for backend in [ActuatorBackend::Cgroup, ActuatorBackend::Auto, ActuatorBackend::Engine] {
        let actuator = by(&stub, backend);
        let set = actuator.set("a", cap(0.25)).await;
        assert_eq!(set.is_err(), backend == ActuatorBackend::Cgroup, "{backend:?}: {set:?}");
        let weighed = actuator.set("a", Setting::Weight(512)).await;
        assert_eq!(weighed.is_err(), backend == ActuatorBackend::Cgroup, "{backend:?}");
        let b = stub.cgroup("b");
        assert_eq!((b.quota().unwrap(), b.weight().unwrap()), (before, 1024), "{backend:?}");
        drop(actuator.restore("a").await);
        assert_eq!((b.quota().unwrap(), b.weight().unwrap()), (before, 1024), "{backend:?}");
    }
}
