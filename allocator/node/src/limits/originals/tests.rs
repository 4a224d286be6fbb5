use std::time::{Duration, SystemTime};

use paceline_cgroup::Quota;
use paceline_runtime::HostCpu;

use super::super::record::FORMAT;
use super::*;

fn original(nano_cpus: i64) -> Original {
    Original {
        format: FORMAT,
        id: "4f2a".to_owned(),
        name: "vae".to_owned(),
        host_config: HostCpu { nano_cpus, ..HostCpu::default() },
        cgroup: Some(Quota { quota: None, period: 100_000 }),
        weight: Some(1024),
        io_weight: None,
        since: Some(1e9),
        absent: None,
    }
}

fn last(nano_cpus: i64) -> LastWrite {
    let host = vec![HostCpu { nano_cpus, ..HostCpu::default() }];
    LastWrite { engine: true, host, ..LastWrite::default() }
}

fn open(state: &tempfile::TempDir) -> Originals {
    Originals::open(state.path(), "one", "a test").unwrap()
}

/// What is recorded of the container in these tests.
fn kept(originals: &Originals) -> Option<Original> {
    originals.get("4f2a").unwrap().map(|record| record.original)
}

#[test]
fn first_original_stays() {
    let state = tempfile::tempdir().unwrap();
    let originals = Originals::open(state.path(), "ABCD:EFGH", "a test").unwrap();
    originals.write_ahead(&original(0), last(1), true).unwrap();
    originals.write_ahead(&original(500_000_000), last(2), false).unwrap();
    assert_eq!(originals.ids(), ["4f2a"]);
    assert_eq!(kept(&originals), Some(original(0)));
    originals.forget("4f2a").unwrap();
    originals.forget("4f2a").unwrap();
    assert_eq!(kept(&originals), None);
}

#[test]
fn record_survives_the_process_with_the_last_write() {
    let state = tempfile::tempdir().unwrap();
    for number in 1..6 {
        let originals = open(&state);
        let before = originals.get("4f2a").unwrap().map(|record| record.last);
        assert_eq!(before, (number > 1).then(|| Some(last(number - 1))));
        originals.write_ahead(&original(0), last(number), number % 2 == 0).unwrap();
    }
    let originals = open(&state);
    originals.settle("4f2a", last(9));
    drop(originals);
    assert_eq!(open(&state).get("4f2a").unwrap().unwrap().last, Some(last(9)));
}

#[test]
fn later_limit_of_the_owner_replaces_the_original() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    let later = original(500_000_000);
    originals.write_ahead(&original(0), last(1), false).unwrap();
    originals.replace(&later).unwrap();
    assert_eq!(kept(&originals), Some(later.clone()));
    drop(originals);
    assert_eq!(kept(&open(&state)), Some(later));
}

#[test]
fn second_allocator_is_refused_with_the_holder() {
    let state = tempfile::tempdir().unwrap();
    let first = Originals::open(state.path(), "one", "policy flowcon").unwrap();
    let held = Originals::open(state.path(), "one", "restore").unwrap_err().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let holder = format!("process {} on {} since 2", std::process::id(), host.trim());
    assert!(held.contains(&holder) && held.contains("Z, policy flowcon;"), "{held}");
    drop(Originals::open(state.path(), "two", "restore").unwrap());
    drop(first);
    drop(Originals::open(state.path(), "one", "restore").unwrap());
}

/// Opens the state folder `name`, and takes the engine's lock.
fn locked(
    folder: &tempfile::TempDir,
    name: &str,
    scope: Scope,
) -> Result<Originals, OriginalsError> {
    let state = folder.path().join(name);
    Originals::open(&state, "one", name).unwrap().lock_engine(
        &folder.path().join("locks"),
        "/data",
        (scope, Duration::ZERO),
    )
}

#[test]
fn allocator_of_all_containers_is_alone_on_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    for (first, second, together) in [
        (Scope::All, Scope::All, false),
        (Scope::All, Scope::Some, false),
        (Scope::Some, Scope::All, false),
        (Scope::Some, Scope::Some, true),
        (Scope::All, Scope::Recorded, true),
        (Scope::Some, Scope::Recorded, true),
    ] {
        let held = locked(&folder, "root", first).unwrap();
        let other = locked(&folder, "member", second);
        assert_eq!(other.is_ok(), together, "{first:?} {second:?}");
        if let Err(error) = &other {
            let state = folder.path().join("root").display().to_string();
            let text = error.to_string();
            assert!(text.contains("Z, root") && text.contains(&state), "{text}");
        }
        drop((held, other));
        drop(locked(&folder, "member", second).unwrap());
    }
    let files = fs::read_dir(folder.path().join("locks")).unwrap().count();
    assert_eq!(files, 0, "the last holder removes the lock's file");
}

#[test]
fn engines_of_one_id_have_locks_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let take = |name: &str, data: &str| {
        let own = Originals::open(&folder.path().join(name), "one", name).unwrap();
        own.lock_engine(&folder.path().join("locks"), data, (Scope::All, Duration::ZERO))
    };
    let _first = take("first", "/var/lib/docker").unwrap();
    let _other = take("other", "/srv/second/docker").unwrap();
    take("again", "/var/lib/docker").unwrap_err();
}

#[test]
fn container_has_one_allocator_and_keeps_its_claim_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let first = locked(&folder, "root", Scope::Some).unwrap();
    let second = locked(&folder, "member", Scope::Some).unwrap();
    first.write_ahead(&original(0), last(1), false).unwrap();
    let held = second.write_ahead(&original(0), last(1), false).unwrap_err();
    assert!(held.is_of_one_container() && held.to_string().contains("Z, root"), "{held}");
    drop(first);
    // Its process has ended, and left a limit.
    let left = second.write_ahead(&original(0), last(1), false).unwrap_err();
    let state = folder.path().join("root");
    let command = format!("paceline restore --state-dir {}", state.display());
    assert!(left.to_string().contains(&command), "{left}");
    let first = locked(&folder, "root", Scope::Some).unwrap();
    first.forget("4f2a").unwrap();
    second.write_ahead(&original(0), last(1), false).unwrap();
    assert!(first.write_ahead(&original(0), last(1), false).is_err());
}

#[test]
fn running_older_version_counts_as_a_holder() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("default");
    fs::create_dir_all(state.join("one")).unwrap();
    let lock = fs::File::create(state.join("one/lock")).unwrap();
    lock.lock().unwrap();
    fs::write(state.join("one/lock"), "process 7 on here since 2, policy flowcon").unwrap();
    let take = |name: &str| {
        let own = Originals::open(&folder.path().join(name), "one", "a test").unwrap();
        own.lock_engine(&state.join("locks"), "/data", (Scope::Some, Duration::ZERO))
    };
    let held = take("member").unwrap_err().to_string();
    assert!(held.contains("process 7 on here"), "{held}");
    drop(lock);
    drop(take("member").unwrap());
    // One of this version in the default folder is not an older one: a bench starts allocators itself.
    let own = Originals::open(&state, "one", "a test").unwrap();
    drop(take("member").unwrap());
    let _own =
        own.lock_engine(&state.join("locks"), "/data", (Scope::Some, Duration::ZERO)).unwrap();
    take("member").unwrap();
}

#[test]
fn folder_of_locks_that_others_can_write_to_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let locks = folder.path().join("locks");
    fs::create_dir(&locks).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&locks, mode).unwrap();
    let one = locked(&folder, "root", Scope::All).unwrap();
    assert!(one.engine_lock().is_none() && locked(&folder, "member", Scope::All).is_ok());
}

#[test]
fn unreadable_file_concerns_its_container_alone() {
    let state = tempfile::tempdir().unwrap();
    open(&state).write_ahead(&original(0), last(1), true).unwrap();
    let folder = state.path().join("one");
    for (id, text) in [
        ("empty", ""),
        ("cut", "{"),
        ("other", r#"{"format": 2, "id": "4f2a", "name": "x"}"#),
        ("moved", &serde_json::to_string(&original(0)).unwrap()),
    ] {
        fs::write(folder.join(format!("{id}.json")), text).unwrap();
        let originals = open(&state);
        assert_eq!(kept(&originals), Some(original(0)), "{id}");
        let error = originals.get(id).unwrap_err();
        let text = error.to_string();
        assert!(error.is_of_one_container() && text.contains(&format!("{id}.json")), "{text}");
        assert!(originals.ids().contains(&id.to_owned()), "it is not an absent one");
        let write =
            originals.write_ahead(&Original { id: id.to_owned(), ..original(0) }, last(1), false);
        assert!(write.is_err(), "{id} has no original that is known");
        fs::remove_file(folder.join(format!("{id}.json"))).unwrap();
        assert_eq!(originals.get(id).unwrap(), None, "a person has removed it");
    }
}

#[test]
fn version_1_is_read_and_a_newer_version_refused() {
    let state = tempfile::tempdir().unwrap();
    let text = |format| {
        format!(
            r#"{{"format": {format}, "id": "4f2a", "name": "vae", "cgroup": null,
                "host_config": {{"nano_cpus": 5, "cpu_quota": 0, "cpu_period": 0}}}}"#
        )
    };
    fs::create_dir(state.path().join("one")).unwrap();
    fs::write(state.path().join("one/4f2a.json"), text(1)).unwrap();
    let old = open(&state).get("4f2a").unwrap().unwrap();
    assert_eq!((old.original.host_config.nano_cpus, old.original.weight), (5, None));
    assert!(old.last.is_none() && old.is_of_engine());
    fs::write(state.path().join("one/4f2a.json"), text(9)).unwrap();
    let error = open(&state).get("4f2a").unwrap_err().to_string();
    assert!(error.contains("has format 9; this version reads up to 2"), "{error}");
}

#[test]
fn failed_write_leaves_nothing_behind() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    let impossible = Original { id: "no/folder".to_owned(), ..original(0) };
    let failed = originals.write_ahead(&impossible, last(1), true);
    assert!(matches!(failed, Err(OriginalsError::Io(..))));
    assert!(originals.ids().is_empty());
}

#[test]
fn removed_and_changed_files_are_written_again() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    originals.write_ahead(&original(0), last(1), false).unwrap();
    let folder = state.path().join("one");
    let changes: [&dyn Fn(); 4] = [
        &|| fs::write(folder.join("4f2a.json"), "").unwrap(),
        &|| fs::remove_file(folder.join("4f2a.last")).unwrap(),
        &|| fs::remove_file(folder.join("4f2a.json")).unwrap(),
        &|| fs::remove_dir_all(state.path()).unwrap(),
    ];
    for (number, change) in changes.iter().enumerate() {
        change();
        originals.mend();
        let files = RecordFiles::new(&folder, "4f2a");
        assert_eq!(files.read_original().unwrap(), original(0), "{number}");
        assert_eq!(files.read_last().unwrap().1, last(1), "{number}");
    }
    // The lock's file is new as well, and held.
    assert!(matches!(
        Originals::open(state.path(), "one", "second"),
        Err(OriginalsError::Held { .. })
    ));
    fs::remove_dir_all(state.path()).unwrap();
    originals.write_ahead(&original(0), last(2), false).unwrap();
    originals.mend();
    drop(originals);
    assert_eq!(open(&state).get("4f2a").unwrap().unwrap().last, Some(last(2)));
}

#[test]
fn locks_whose_folder_was_removed_are_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let originals = locked(&folder, "root", Scope::All).unwrap();
    originals.write_ahead(&original(0), last(1), false).unwrap();
    fs::remove_dir_all(folder.path().join("locks")).unwrap();
    // A container that comes before the next look can be limited.
    let second = Original { id: "77aa".to_owned(), ..original(0) };
    originals.write_ahead(&second, last(1), false).unwrap();
    originals.mend();
    let error = locked(&folder, "member", Scope::All).unwrap_err().to_string();
    assert!(error.contains("another allocator works on this engine"), "{error}");
    drop(locked(&folder, "restore", Scope::Recorded).unwrap());
    let claimed = |id: &str| {
        let own = locked(&folder, "other", Scope::Recorded).unwrap();
        own.write_ahead(&Original { id: id.to_owned(), ..original(0) }, last(1), false)
    };
    for id in ["4f2a", "77aa"] {
        assert!(matches!(claimed(id), Err(OriginalsError::Claimed { .. })), "{id}");
    }
}

#[test]
fn container_whose_removed_lock_another_allocator_took_is_written_to_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let originals = locked(&folder, "root", Scope::Some).unwrap();
    originals.write_ahead(&original(0), last(1), false).unwrap();
    fs::remove_dir_all(folder.path().join("locks")).unwrap();
    let other = locked(&folder, "member", Scope::Some).unwrap();
    other.write_ahead(&original(0), last(1), false).unwrap();
    originals.mend();
    let error = originals.write_ahead(&original(0), last(2), false).unwrap_err();
    assert!(matches!(error, OriginalsError::Claimed { .. }), "{error}");
    // Nothing is lost: it has its record.
    assert_eq!(kept(&originals), Some(original(0)));
}

#[test]
fn what_the_memory_alone_has_is_written_once_the_disk_works_again() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    originals.write_ahead(&original(0), last(1), false).unwrap();
    let (folder, aside) = (state.path().join("one"), state.path().join("aside"));
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "").unwrap();
    // A new limit needs the disk, and a restore does not.
    originals.replace(&original(5)).unwrap_err();
    originals.write_ahead(&original(0), last(2), true).unwrap_err();
    let record = originals.get("4f2a").unwrap().unwrap();
    assert_eq!((record.original, record.last), (original(0), Some(last(1))));
    originals.replace_to_restore(&original(5)).unwrap_err();
    originals.write_ahead_of_restore(&original(5), last(2), true).unwrap_err();
    let record = originals.get("4f2a").unwrap().unwrap();
    assert_eq!((record.original, record.last), (original(5), Some(last(2))));
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    originals.mend();
    let files = RecordFiles::new(&folder, "4f2a");
    assert_eq!(files.read_original().unwrap(), original(5));
    assert_eq!(files.read_last().unwrap().1, last(2));
}

#[test]
fn record_whose_files_stay_has_ended_and_keeps_its_claim_until_they_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let originals = locked(&folder, "root", Scope::Some).unwrap();
    let other = locked(&folder, "member", Scope::Some).unwrap();
    originals.write_ahead(&original(0), last(1), false).unwrap();
    let (state, aside) = (folder.path().join("root"), folder.path().join("aside"));
    fs::rename(&state, &aside).unwrap();
    fs::write(&state, "").unwrap();
    originals.forget("4f2a").unwrap_err();
    assert_eq!((originals.ids(), kept(&originals)), (vec![], None));
    // Another try fails in the same way.
    originals.mend();
    originals.write_ahead(&original(7), last(2), false).unwrap_err();
    assert!(other.write_ahead(&original(7), last(2), false).is_err(), "its files are still there");
    fs::remove_file(&state).unwrap();
    fs::rename(&aside, &state).unwrap();
    originals.write_ahead(&original(7), last(2), false).unwrap();
    assert_eq!(kept(&originals), Some(original(7)));
    originals.forget("4f2a").unwrap();
    other.write_ahead(&original(7), last(2), false).unwrap();
}

#[test]
fn incomplete_files_of_a_crashed_machine_are_removed() {
    let state = tempfile::tempdir().unwrap();
    open(&state).write_ahead(&original(0), last(1), true).unwrap();
    let folder = state.path().join("one");
    for half in ["77aa.json", "77aa.json.part", "88bb.last.part", "99cc.last"] {
        let file = fs::File::create(folder.join(half)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let originals = open(&state);
    assert_eq!(originals.ids(), ["4f2a"]);
    assert_eq!(kept(&originals), Some(original(0)));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "the lock and one record");
}

#[test]
fn absence_is_counted_for_one_engine() {
    let state = tempfile::tempdir().unwrap();
    open(&state).write_ahead(&original(0), last(1), true).unwrap();
    assert_eq!(open(&state).count_absence("4f2a").times, 1);
    let originals = open(&state);
    let absence = originals.count_absence("4f2a");
    assert_eq!((absence.times, absence.engine.as_str()), (2, "one"));
    let record = kept(&originals).unwrap();
    originals.replace(&Original { absent: None, ..record }).unwrap();
    assert_eq!(originals.count_absence("4f2a").times, 1);
    let elsewhere = Absence { engine: "two".to_owned(), since: 0.0, times: 9, booted: None };
    originals.replace(&Original { absent: Some(elsewhere), ..original(0) }).unwrap();
    assert_eq!(originals.count_absence("4f2a").times, 1);
}
