//! Containers that the engine does not know, and files that cannot be read.

use std::fs;

use super::stub::Trouble;
use super::*;
use crate::limits::actuator::ENGINE_TIMEOUT;
use crate::limits::error::chain;
use crate::limits::originals::Scope;

fn by(stub: &Stub, backend: ActuatorBackend) -> Actuator {
    stub.actuator().with_backend(backend, OnDrift::Reassert)
}

#[tokio::test]
async fn engine_without_its_data_ends_no_record() {
    let stub = Stub::start(&["a"]);
    by(&stub, ActuatorBackend::Engine).set("a", cap(0.25)).await.unwrap();
    stub.state.lock().unwrap().lost = true;
    for _ in 0..4 {
        let error = stub.actuator().restore("a").await.unwrap_err();
        assert!(matches!(error, LimitError::Absent { .. }), "{error}");
        assert!(error.to_string().contains("state/stub/a.json"), "{error}");
    }
    // The kernel's limit needs no engine.
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
    stub.state.lock().unwrap().lost = false;
    let restored = stub.actuator().restore("a").await.unwrap();
    assert_eq!(restored, Some(Restored::Equivalently));
    assert_eq!(stub.kept("a", "NanoCpus"), 2_000_000_000);
}

#[tokio::test]
async fn removed_container_ends_its_record_at_once() {
    for backend in [ActuatorBackend::Engine, ActuatorBackend::Cgroup] {
        let stub = Stub::start(&["a"]);
        by(&stub, backend).set("a", cap(0.25)).await.unwrap();
        stub.remove("a");
        let actuator = stub.actuator();
        assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Gone), "{backend}");
        assert!(actuator.pending().is_empty(), "{backend}");
    }
}

#[tokio::test]
async fn limit_in_files_alone_ends_with_the_control_group() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("b", cap(0.25)).await.unwrap();
    stub.remove("a");
    stub.restart_engine("stub");
    stub.restart("b");
    stub.state.lock().unwrap().lost = true;
    for id in ["a", "b"] {
        assert_eq!(actuator.restore(id).await.unwrap(), Some(Restored::Gone), "{id}");
    }
    assert_eq!(stub.cgroup("b").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn limit_in_files_alone_is_restored_while_the_engine_is_of_no_use() {
    let stub = Stub::start(&["a", "b", "c"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    for id in ["a", "b", "c"] {
        actuator.set(id, cap(0.25)).await.unwrap();
    }
    stub.state.lock().unwrap().trouble = Some(Trouble::Fails);
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    // A change by the owner past the engine stays.
    stub.cgroup("b").set_quota(quota(Some(70_000))).unwrap();
    stub.state.lock().unwrap().trouble = Some(Trouble::Silent);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for id in ["b", "c"] {
        assert_eq!(actuator.restore(id).await.unwrap(), Some(Restored::Exactly), "{id}");
    }
    // The engine is waited for once.
    assert!(began.elapsed() < ENGINE_TIMEOUT * 2, "{:?}", began.elapsed());
    for (id, left) in [("a", None), ("b", Some(70_000)), ("c", None)] {
        assert_eq!(stub.cgroup(id).quota().unwrap(), quota(left), "{id}");
    }
    assert!(actuator.pending().is_empty());
}

#[tokio::test]
async fn running_container_whose_control_group_is_hidden_keeps_its_record() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    let mounts = stub.proc().join("self/mountinfo");
    let seen = fs::read(&mounts).unwrap();
    fs::write(&mounts, "").unwrap();
    let error = actuator.restore("a").await.unwrap_err().to_string();
    assert!(error.contains("cannot read its control group"), "{error}");
    assert_eq!(actuator.pending(), ["a"]);
    fs::write(&mounts, seen).unwrap();
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
}

#[tokio::test]
async fn limit_of_a_container_that_ended_by_an_old_description_is_restored() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    // The engine describes it without a process, and its group is still there.
    let group = stub.cgroup("a");
    stub.state.lock().unwrap().hosts.get_mut("a").unwrap()["Pid"] = 0.into();
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(group.quota().unwrap(), quota(None));
}

#[tokio::test]
async fn hurried_restore_leaves_out_the_engine_where_it_keeps_nothing() {
    let stub = Stub::start(&["a", "b"]);
    by(&stub, ActuatorBackend::Cgroup).set("a", cap(0.25)).await.unwrap();
    by(&stub, ActuatorBackend::Engine).set("b", cap(0.25)).await.unwrap();
    let actuator = stub.actuator();
    actuator.hurry();
    let asked = stub.state.lock().unwrap().inspections;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.state.lock().unwrap().inspections, asked);
    assert_eq!(actuator.restore("b").await.unwrap(), Some(Restored::Equivalently));
    for id in ["a", "b"] {
        assert_eq!(stub.cgroup(id).quota().unwrap(), quota(None), "{id}");
    }
}

#[tokio::test]
async fn later_control_group_is_left_alone_while_the_engine_fails() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.restart("a");
    // The value of our last write, and this time it is its owner's.
    stub.cgroup("a").set_quota(quota(Some(50_000))).unwrap();
    stub.state.lock().unwrap().trouble = Some(Trouble::Fails);
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
    assert!(actuator.pending().is_empty());
}

#[tokio::test]
async fn limit_that_the_engine_keeps_waits_for_the_engine() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Engine);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.state.lock().unwrap().trouble = Some(Trouble::Fails);
    let error = actuator.restore("a").await.unwrap_err();
    assert!(matches!(error, LimitError::Engine(..)), "{error}");
    assert_eq!(actuator.pending(), ["a"]);
    stub.state.lock().unwrap().trouble = None;
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Equivalently));
}

#[tokio::test]
async fn silent_engine_is_waited_for_once() {
    let ids = ["a", "b", "c", "d"];
    let stub = Stub::start(&ids);
    let actuator = by(&stub, ActuatorBackend::Engine);
    for id in ids {
        actuator.set(id, cap(0.25)).await.unwrap();
    }
    stub.state.lock().unwrap().trouble = Some(Trouble::Silent);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for id in ids {
        let error = actuator.restore(id).await.unwrap_err();
        assert!(matches!(error, LimitError::Silent { .. }), "{error}");
    }
    assert!(began.elapsed() < ENGINE_TIMEOUT * 2, "{:?}", began.elapsed());
    assert_eq!(actuator.pending(), ids);
    stub.state.lock().unwrap().trouble = None;
    tokio::time::advance(ENGINE_TIMEOUT).await;
    tokio::time::resume();
    for id in ids {
        assert_eq!(actuator.restore(id).await.unwrap(), Some(Restored::Equivalently), "{id}");
    }
}

#[tokio::test]
async fn container_that_has_just_ended_keeps_what_the_engine_knows_of_it() {
    let stub = Stub::start(&["a"]);
    let actuator = by(&stub, ActuatorBackend::Auto);
    actuator.set("a", cap(0.25)).await.unwrap();
    stub.end("a");
    let error = actuator.set("a", cap(0.4)).await.unwrap_err();
    assert!(matches!(error, LimitError::Gone(_)), "{error}");
    assert_eq!(stub.kept("a", "NanoCpus"), 0);
}

#[tokio::test]
async fn container_that_hangs_alone_keeps_no_other_one_waiting() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = by(&stub, ActuatorBackend::Engine);
    for id in ["a", "b"] {
        actuator.set(id, cap(0.25)).await.unwrap();
    }
    stub.state.lock().unwrap().trouble = Some(Trouble::SilentAbout("a"));
    tokio::time::pause();
    let error = actuator.restore("a").await.unwrap_err();
    assert!(matches!(error, LimitError::Silent { .. }), "{error}");
    tokio::time::resume();
    assert_eq!(actuator.restore("b").await.unwrap(), Some(Restored::Equivalently));
    assert_eq!(actuator.pending(), ["a"]);
}

#[tokio::test]
async fn block_io_is_restored_without_the_engine_or_its_record_stays() {
    let stub = Stub::start(&["a"]);
    fs::write(stub.file("a", "blkio.bfq.weight"), "100\n").unwrap();
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set("a", Setting::Weight(512)).await.unwrap();
    stub.state.lock().unwrap().lost = true;
    let error = chain(&actuator.restore("a").await.unwrap_err());
    assert!(error.contains("block I/O with weight 100"), "{error}");
    assert_eq!(actuator.pending(), ["a"]);
    // One of its processes shows the folder.
    fs::write(stub.file("a", "cgroup.procs"), "100\n").unwrap();
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(fs::read_to_string(stub.file("a", "blkio.bfq.weight")).unwrap(), "100");
    assert_eq!(stub.cgroup("a").weight().unwrap(), 1024);
}

#[tokio::test]
async fn job_is_restored_in_the_group_of_the_last_write() {
    let job = "job-0123456789abcdef";
    let stub = Stub::start(&[job, "b"]);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    actuator.set(job, cap(0.25)).await.unwrap();
    // Another record of the same id leads to another group.
    stub.show_as(job, "b");
    stub.cgroup("b").set_quota(quota(Some(70_000))).unwrap();
    assert_eq!(actuator.restore(job).await.unwrap(), Some(Restored::Exactly));
    let left = |id| fs::read_to_string(stub.file(id, "cpu.cfs_quota_us")).unwrap();
    assert_eq!((left(job).trim(), left("b").trim()), ("-1", "70000"));
}

#[tokio::test]
async fn absent_container_is_gone_after_a_long_time() {
    let stub = Stub::start(&["a"]);
    by(&stub, ActuatorBackend::Engine).set("a", cap(0.25)).await.unwrap();
    stub.remove("a");
    stub.restart_engine("stub");
    for _ in 0..3 {
        assert!(stub.actuator().restore("a").await.is_err(), "no one knows that it is gone");
    }
    let file = stub.state_folder("state").join("stub/a.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut original: serde_json::Value = serde_json::from_str(&text).unwrap();
    let since = original["absent"]["since"].as_f64().unwrap();
    original["absent"]["since"] = json!(since - 3600.0);
    fs::write(&file, original.to_string()).unwrap();
    assert_eq!(stub.actuator().restore("a").await.unwrap(), Some(Restored::Gone));
}

#[tokio::test]
async fn clock_that_is_set_makes_no_absence_long() {
    let stub = Stub::start(&["a"]);
    by(&stub, ActuatorBackend::Engine).set("a", cap(0.25)).await.unwrap();
    stub.state.lock().unwrap().lost = true;
    for _ in 0..3 {
        assert!(stub.actuator().restore("a").await.is_err());
    }
    // As if the clock had been set an hour ahead since then.
    let file = stub.state_folder("state").join("stub/a.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut original: serde_json::Value = serde_json::from_str(&text).unwrap();
    for field in ["since", "booted"] {
        let at = original["absent"][field].as_f64().unwrap_or_default();
        original["absent"][field] = json!(at - 3600.0);
    }
    fs::write(&file, original.to_string()).unwrap();
    assert!(stub.actuator().restore("a").await.is_err(), "the engine was asked for a moment only");
    stub.state.lock().unwrap().lost = false;
    assert_eq!(stub.actuator().restore("a").await.unwrap(), Some(Restored::Equivalently));
}

#[tokio::test]
async fn records_are_found_after_the_engines_id_has_changed() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = by(&stub, ActuatorBackend::Engine);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("b", cap(0.25)).await.unwrap();
    drop(actuator);
    stub.restart_engine("another");
    // The other container is of another engine with the same state folder.
    stub.state.lock().unwrap().hosts.remove("b");
    let moves = stub.state_folder("state").join("stub/moves");
    fs::create_dir(&moves).unwrap();
    fs::write(moves.join("a.json"), "{}").unwrap();
    let actuator = stub.actuator();
    let left = actuator.adopt_leftovers().await;
    assert_eq!(left.len(), 1);
    let text = left[0].to_string();
    assert!(text.contains("container b") && text.contains("state/stub/b.json"), "{text}");
    assert_eq!(actuator.pending(), ["a"]);
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Equivalently));
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
    assert!(!stub.state_folder("state").join("stub/a.json").exists());
    assert!(stub.state_folder("state").join("another/moves/a.json").exists());
    assert_eq!(actuator.leftovers(), left);
}

#[tokio::test]
async fn records_of_files_are_taken_over_while_the_engine_is_silent() {
    let ids = ["a", "b", "c"];
    let stub = Stub::start(&ids);
    let actuator = by(&stub, ActuatorBackend::Cgroup);
    for id in ids {
        actuator.set(id, cap(0.25)).await.unwrap();
    }
    drop(actuator);
    stub.restart_engine("another");
    let actuator = stub.actuator();
    stub.state.lock().unwrap().trouble = Some(Trouble::Silent);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    assert_eq!(actuator.adopt_leftovers().await, []);
    // The engine is waited for once.
    assert!(began.elapsed() < ENGINE_TIMEOUT * 2, "{:?}", began.elapsed());
    for id in ids {
        assert_eq!(actuator.restore(id).await.unwrap(), Some(Restored::Exactly), "{id}");
        assert_eq!(stub.cgroup(id).quota().unwrap(), quota(None), "{id}");
    }
}

#[tokio::test]
async fn lock_of_a_container_outlives_an_engine_without_its_data() {
    let stub = Stub::start(&["a"]);
    by(&stub, ActuatorBackend::Engine).set("a", cap(0.25)).await.unwrap();
    fs::remove_dir_all(stub.state_folder("state")).unwrap();
    stub.state.lock().unwrap().lost = true;
    assert_eq!(stub.actuator().adopt_leftovers().await, []);
    stub.state.lock().unwrap().lost = false;
    // Our own limit does not become its original one.
    let actuator = by(&stub, ActuatorBackend::Engine);
    assert_eq!(actuator.adopt_leftovers().await.len(), 1);
    assert!(actuator.set("a", cap(0.5)).await.unwrap_err().leaves_alone());
    drop(actuator);
    stub.remove("a");
    assert_eq!(stub.actuator().adopt_leftovers().await, []);
    assert!(!stub.locks().contains(&"a.claim".to_owned()));
}

#[tokio::test]
async fn record_is_taken_over_once_the_engine_has_its_data_again() {
    for damaged in [false, true] {
        let stub = Stub::start(&["a"]);
        by(&stub, ActuatorBackend::Engine).set("a", cap(0.25)).await.unwrap();
        stub.restart_engine("another");
        stub.state.lock().unwrap().lost = true;
        let file = stub.state_folder("state").join("stub/a.json");
        if damaged {
            fs::write(&file, "{").unwrap();
        }
        let actuator = by(&stub, ActuatorBackend::Engine);
        assert_eq!(actuator.adopt_leftovers().await.len(), 1);
        stub.state.lock().unwrap().lost = false;
        let set = actuator.set("a", cap(0.5)).await;
        if damaged {
            // Our own limit must not become its original one.
            let error = set.unwrap_err();
            assert!(error.leaves_alone() && chain(&error).contains("stub/a.json"), "{error:?}");
            assert_eq!((actuator.pending(), actuator.leftovers().len()), (vec![], 1));
            continue;
        }
        set.unwrap();
        assert_eq!((actuator.pending(), actuator.leftovers()), (vec!["a".to_owned()], vec![]));
        assert!(!file.exists());
        assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Equivalently));
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(None));
    }
}

#[tokio::test]
async fn folder_of_a_running_allocator_is_left_to_it() {
    let stub = Stub::start(&["a"]);
    let first = stub.allocator("state", Scope::Some).unwrap();
    first.set("a", cap(0.25)).await.unwrap();
    stub.restart_engine("another");
    let second = stub.allocator("state", Scope::Some).unwrap();
    assert_eq!((second.adopt_leftovers().await, second.pending()), (vec![], vec![]));
    let refused = second.set("a", cap(0.5)).await.unwrap_err();
    assert!(refused.leaves_alone(), "{refused}");
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
}

#[tokio::test]
async fn unreadable_file_leaves_one_container_alone() {
    let stub = Stub::start(&["a", "b"]);
    by(&stub, ActuatorBackend::Auto).set("a", cap(0.25)).await.unwrap();
    let file = stub.state_folder("state").join("stub/a.json");
    fs::write(&file, "").unwrap();
    let actuator = by(&stub, ActuatorBackend::Auto);
    let error = actuator.set("a", cap(0.5)).await.unwrap_err();
    assert!(matches!(error, LimitError::LeftAlone(..)) && error.leaves_alone(), "{error}");
    assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(50_000)));
    assert_eq!(actuator.set("b", cap(0.5)).await.unwrap(), cap(0.5));
    assert!(actuator.restore("b").await.is_ok() && actuator.restore("a").await.is_err());
    assert_eq!(actuator.pending(), ["a"]);
    stub.remove("a");
    assert_eq!(actuator.restore("a").await.unwrap(), Some(Restored::Gone));
    assert!(!file.exists());
}

#[tokio::test]
async fn files_that_are_lost_during_a_run_are_not_needed() {
    let stub = Stub::start(&["a"]);
    for backend in [ActuatorBackend::Engine, ActuatorBackend::Cgroup] {
        let actuator = by(&stub, backend);
        actuator.set("a", cap(0.25)).await.unwrap();
        fs::remove_dir_all(stub.state_folder("state")).unwrap();
        actuator.set("a", cap(0.5)).await.unwrap();
        assert_eq!(stub.cgroup("a").quota().unwrap(), quota(Some(100_000)), "{backend}");
        assert!(actuator.restore("a").await.unwrap().is_some(), "{backend}");
        assert_eq!(stub.cgroup("a").quota().unwrap().share(2.0), Share::ALL, "{backend}");
    }
}

#[tokio::test]
async fn container_whose_state_folder_was_moved_is_named() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = by(&stub, ActuatorBackend::Auto);
    actuator.set("a", cap(0.25)).await.unwrap();
    actuator.set("b", cap(0.25)).await.unwrap();
    drop(actuator);
    stub.remove("b");
    let (state, moved) = (stub.state_folder("state"), stub.state_folder("moved"));
    fs::rename(&state, &moved).unwrap();
    let other = stub.allocator("other", Scope::Recorded).unwrap();
    let [lost] = &other.adopt_leftovers().await[..] else { panic!("one is left") };
    assert_eq!((lost.id.as_str(), &lost.file), ("a", &state));
    assert!(lost.to_string().contains("has no record of it; put the folder back"), "{lost}");
    assert!(!stub.locks().contains(&"b.claim".to_owned()), "the container is gone");
    drop(other);
    let found = stub.allocator("moved", Scope::Recorded).unwrap();
    assert_eq!(found.restore("a").await.unwrap(), Some(Restored::Exactly));
    assert_eq!(found.adopt_leftovers().await, []);
}

#[tokio::test]
async fn container_whose_record_was_removed_is_named_and_left_alone() {
    let stub = Stub::start(&["a", "b"]);
    let actuator = by(&stub, ActuatorBackend::Auto);
    for id in ["a", "b"] {
        actuator.set(id, cap(0.25)).await.unwrap();
    }
    actuator.restore("b").await.unwrap();
    drop(actuator);
    fs::remove_dir_all(stub.state_folder("state")).unwrap();
    let again = stub.allocator("state", Scope::All).unwrap();
    let [lost] = &again.adopt_leftovers().await[..] else { panic!("one is left") };
    assert_eq!(lost.id, "a");
    assert_eq!(again.leftovers().len(), 1, "the end of a run names it, too");
    let error = again.set("a", cap(0.5)).await.unwrap_err();
    assert!(error.to_string().contains('a'), "{error}");
    again.set("b", cap(0.5)).await.unwrap();
    assert_eq!(again.pending(), ["b"], "our limit is not taken for an original of container a");
}
