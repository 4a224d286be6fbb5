//! Limits of pods, which a fake container runtime of Kubernetes keeps.

use std::path::Path;

use paceline_runtime::testing::{Fake, id};

use super::*;
use crate::limits::originals::Originals;

const OPTED_IN: &[(&str, &str)] = &[("paceline.dev/enable", "true")];
/// The weight of a container with the fake's usual request.
const WEIGHT: i64 = 204;

/// A runtime with the container `a1` of a pod that opted in.
fn one_job() -> Fake {
    let fake = Fake::start();
    fake.pod("vae", OPTED_IN, &[]);
    fake.container("a1", "vae", "train");
    fake
}

/// An actuator whose state folder is `folder`.
fn actuator(fake: &Fake, folder: &Path) -> Actuator {
    let originals = Originals::open(folder, "cri", "a test").unwrap();
    Actuator::new(fake.runtime(), originals, folder.join("proc"), 2.0)
        .with_backend(ActuatorBackend::Auto, OnDrift::Reassert)
}

#[tokio::test]
async fn only_the_quota_is_written_and_restored_exactly() {
    let fake = one_job();
    fake.pod("free", OPTED_IN, &[]);
    fake.container("b1", "free", "train");
    fake.declare("b1", 0, 2);
    let place = tempfile::tempdir().unwrap();
    let limits = actuator(&fake, place.path());
    for short in ["a1", "b1"] {
        assert_eq!(limits.set(&id(short), cap(0.25)).await.unwrap(), cap(0.25));
        assert_eq!(limits.restore(&id(short)).await.unwrap(), Some(Restored::Exactly));
    }
    let updates = fake.updates();
    let expected = [("a1", 50_000), ("a1", 100_000), ("b1", 50_000), ("b1", -1)];
    assert_eq!(updates, expected.map(|(short, quota)| (id(short), quota, 0)));
}

#[tokio::test]
async fn no_cap_is_the_owners_quota_and_never_none() {
    let fake = one_job();
    // More than the machine has.
    fake.declare("a1", 400_000, WEIGHT);
    let place = tempfile::tempdir().unwrap();
    let limits = actuator(&fake, place.path());
    limits.set(&id("a1"), cap(0.25)).await.unwrap();
    assert_eq!(limits.set(&id("a1"), cap(1.0)).await.unwrap(), cap(1.0));
    let updates = fake.updates();
    assert_eq!(updates, [(id("a1"), 50_000, 0), (id("a1"), 400_000, 0)]);
    // As it was: nothing is left to be restored.
    assert_eq!(limits.restore(&id("a1")).await.unwrap(), Some(Restored::Exactly));
    assert_eq!(fake.updates().len(), 2);
}

#[tokio::test]
async fn limit_of_a_killed_run_is_restored_by_the_next() {
    let fake = one_job();
    let place = tempfile::tempdir().unwrap();
    let killed = actuator(&fake, place.path());
    killed.set(&id("a1"), cap(0.1)).await.unwrap();
    drop(killed);
    let next = actuator(&fake, place.path());
    assert_eq!(next.pending(), [id("a1")]);
    assert_eq!(next.restore(&id("a1")).await.unwrap(), Some(Restored::Exactly));
    assert_eq!(fake.quota("a1"), 100_000);
}

#[tokio::test]
async fn limit_that_the_owner_changed_is_kept() {
    let fake = one_job();
    let place = tempfile::tempdir().unwrap();
    let limits = actuator(&fake, place.path());
    limits.set(&id("a1"), cap(0.25)).await.unwrap();
    // The kubelet resizes the pod in place.
    fake.declare("a1", 150_000, WEIGHT);
    assert_eq!(limits.restore(&id("a1")).await.unwrap(), Some(Restored::Exactly));
    assert_eq!(fake.quota("a1"), 150_000);
}

#[tokio::test]
async fn record_of_a_deleted_pod_ends_at_once() {
    let fake = one_job();
    let place = tempfile::tempdir().unwrap();
    let limits = actuator(&fake, place.path());
    limits.set(&id("a1"), cap(0.25)).await.unwrap();
    fake.clear();
    assert_eq!(limits.restore(&id("a1")).await.unwrap(), Some(Restored::Gone));
    assert!(limits.pending().is_empty());
    // A pod that is deleted in mid-write is gone as well.
    let error = limits.set(&id("a1"), cap(0.5)).await.unwrap_err().to_string();
    assert!(error.ends_with("is gone"), "{error}");
}
