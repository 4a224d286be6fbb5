//! The automatic choice of the means, and reports of restores.

use std::fs;

use super::*;

fn by(stub: &Stub, backend: ActuatorBackend) -> Actuator {
    stub.actuator().with_backend(backend, OnDrift::Reassert)
}

/// Takes a file that is needed for writes, so that the engine must write. Root may write to any file.
fn hide_weight(stub: &Stub, id: &str) {
    fs::remove_file(stub.file(id, "cpu.shares")).unwrap();
    fs::create_dir(stub.file(id, "cpu.shares")).unwrap();
}

#[tokio::test]
async fn auto_writes_files_and_leaves_the_engine_as_it_was() {
    let stub = Stub::start(&["a"]);
    let actuator = stub.actuator();
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(actuator.set("a", Setting::Weight(512)).await.unwrap(), Setting::Weight(512));
    assert!(stub.state.lock().unwrap().updates.is_empty());
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    // The machine has fewer CPUs, and the container is started again.
    stub.boot(1);
    assert!(stub.restart("a"), "what the engine keeps fits any machine");
    assert!(stub.update("a", &json!({"CpuQuota": 50_000})), "its owner may still set a quota");
}

#[tokio::test]
async fn auto_takes_the_engine_where_files_cannot_be_written() {
    let stub = Stub::start(&["a", "b"]);
    hide_weight(&stub, "a");
    let actuator = stub.actuator();
    assert_eq!(actuator.set("a", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.kept("a", "NanoCpus"), 500_000_000);
    // Each container has its own means.
    assert_eq!(actuator.set("b", cap(0.25)).await.unwrap(), cap(0.25));
    assert_eq!(stub.kept("b", "NanoCpus"), 0);
    assert!(actuator.restore("a").await.unwrap().is_some());
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

/// Makes a weight's file readable alone, even for root: it leads to a number of the kernel.
fn make_weight_read_only(stub: &Stub, id: &str) {
    fs::remove_file(stub.file(id, "cpu.shares")).unwrap();
    let number = "/proc/sys/kernel/ngroups_max";
    std::os::unix::fs::symlink(number, stub.file(id, "cpu.shares")).unwrap();
}

#[tokio::test]
async fn engine_is_asked_before_each_write_that_auto_makes_by_it() {
    let stub = Stub::start(&["a"]);
    make_weight_read_only(&stub, "a");
    let actuator = stub.actuator();
    actuator.described(&actuator.inspect("a").await.unwrap().container);
    actuator.set("a", cap(0.25)).await.unwrap();
    assert_eq!(stub.kept("a", "NanoCpus"), 500_000_000);
    // The kernel has the next value, and the engine keeps the one before: that is ours as well.
    stub.state.lock().unwrap().behavior = Behavior::FailsLate;
    actuator.set("a", cap(0.5)).await.unwrap();
    assert_eq!(stub.state.lock().unwrap().inspections, 3);
    stub.state.lock().unwrap().behavior = Behavior::Honest;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Equivalently));
    assert_eq!(stub.kept("a", "NanoCpus"), 2_000_000_000);
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn explicit_backend_does_not_take_the_other() {
    let stub = Stub::start(&["a"]);
    hide_weight(&stub, "a");
    fs::remove_file(stub.file("a", "cpu.cfs_quota_us")).unwrap();
    let error = by(&stub, ActuatorBackend::Cgroup).set("a", cap(0.25)).await.unwrap_err();
    assert!(matches!(error, LimitError::Refused { .. }), "{error}");
    assert!(stub.state.lock().unwrap().updates.is_empty());
}

#[tokio::test]
async fn limit_stays_on_the_container_when_its_process_moves_below() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    // As an init or an inner engine does.
    stub.move_process("a", "init");
    assert_eq!(actuator.drifted("a").await, None);
    actuator.set("a", cap(0.5)).await.unwrap();
    assert_eq!(fs::read_to_string(stub.file("a", "cpu.cfs_quota_us")).unwrap(), "100000");
    drop(actuator);
    assert_eq!(
        by(&stub, ActuatorBackend::Cgroup).restore("a").await.unwrap(),
        Some(Restored::Exactly)
    );
    assert_eq!(fs::read_to_string(stub.file("a", "cpu.cfs_quota_us")).unwrap(), "-1");
}

#[tokio::test]
async fn owners_update_after_a_kill_is_kept() {
    for backend in [ActuatorBackend::Engine, ActuatorBackend::Cgroup] {
        for next_run in [false, true] {
            let stub = Stub::start(&["a"]);
            by(&stub, backend).set("a", cap(0.25)).await.unwrap();
            assert!(stub.update("a", &json!({"NanoCpus": 1_500_000_000})));
            let actuator = by(&stub, backend);
            if next_run {
                actuator.set("a", cap(0.5)).await.unwrap();
            }
            let report = actuator.restore_and_report("a").await.unwrap().unwrap();
            assert_eq!(report.outcome, Restored::Exactly, "{backend}");
            assert_eq!(stub.kept("a", "NanoCpus"), 1_500_000_000, "{backend}");
            assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(150_000)), "{backend}");
        }
    }
}

#[tokio::test]
async fn report_has_the_limits_before_and_after() {
    let stub = Stub::start(&["a"]);
    by(&stub, ActuatorBackend::Cgroup).set("a", cap(0.25)).await.unwrap();
    let report = stub.actuator().restore_and_report("a").await.unwrap().unwrap();
    assert_eq!(
        (report.name.as_str(), report.to_string().as_str()),
        (
            "a",
            "found 50000/100000 us, weight 1024; put back no limit, weight 1024; \
             read back no limit, weight 1024: as it was"
        )
    );
    assert_eq!(stub.actuator().restore_and_report("a").await.unwrap(), None);
}
