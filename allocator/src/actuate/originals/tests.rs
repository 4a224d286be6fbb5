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
        memory: None,
    }
}

fn open(state: &tempfile::TempDir) -> Originals {
    Originals::open(state.path(), "one", "a test").unwrap()
}

#[test]
fn what_was_first_kept_stays() {
    let state = tempfile::tempdir().unwrap();
    let originals = Originals::open(state.path(), "ABCD:EFGH", "a test").unwrap();
    originals.keep(&original(0)).unwrap();
    originals.keep(&original(500_000_000)).unwrap();
    assert_eq!(originals.ids().unwrap(), ["4f2a"]);
    assert_eq!(originals.get("4f2a").unwrap(), Some(original(0)));
    originals.forget("4f2a").unwrap();
    originals.forget("4f2a").unwrap();
    assert_eq!(originals.get("4f2a").unwrap(), None);
}

#[test]
fn what_an_owner_says_later_takes_its_place() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    let limit = MemoryLimit { memory: Some(1 << 30), swap: None };
    let memory = OriginalMemory { host_config: HostMemory::default(), cgroup: Some(limit) };
    let later = Original { memory: Some(memory), ..original(500_000_000) };
    originals.keep(&original(0)).unwrap();
    originals.replace(&later).unwrap();
    assert_eq!(originals.get("4f2a").unwrap(), Some(later));
}

#[test]
fn a_second_allocator_is_told_who_holds_the_engine() {
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

#[test]
fn a_half_written_file_is_not_taken_for_a_container() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    fs::write(state.path().join("one/4f2a.part"), "{").unwrap();
    assert!(originals.ids().unwrap().is_empty());
    fs::write(state.path().join("one/4f2a.json"), "{").unwrap();
    assert!(matches!(originals.get("4f2a"), Err(OriginalsError::Malformed(..))));
}

#[test]
fn what_version_1_kept_is_read_and_what_a_newer_one_keeps_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    let text = |format| {
        format!(
            r#"{{"format": {format}, "id": "4f2a", "name": "vae", "cgroup": null,
                "host_config": {{"nano_cpus": 5, "cpu_quota": 0, "cpu_period": 0}}}}"#
        )
    };
    fs::write(state.path().join("one/4f2a.json"), text(1)).unwrap();
    let old = originals.get("4f2a").unwrap().unwrap();
    assert_eq!((old.host_config.nano_cpus, old.weight, old.memory), (5, None, None));
    fs::write(state.path().join("one/4f2a.json"), text(9)).unwrap();
    let error = originals.get("4f2a").unwrap_err().to_string();
    assert!(error.contains("has format 9; this version reads up to 2"), "{error}");
}

#[test]
fn what_cannot_be_kept_leaves_nothing_behind() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    let impossible = Original { id: "no/folder".to_owned(), ..original(0) };
    assert!(matches!(originals.keep(&impossible), Err(OriginalsError::Io(..))));
    assert!(originals.ids().unwrap().is_empty());
}

#[test]
fn what_needs_not_wait_for_the_disk_is_kept_at_once_and_synced_later() {
    let state = tempfile::tempdir().unwrap();
    let originals = open(&state);
    assert!(originals.keep_unsynced(&original(0)).unwrap());
    assert!(!originals.keep_unsynced(&original(500_000_000)).unwrap(), "it is kept already");
    assert_eq!(originals.get("4f2a").unwrap(), Some(original(0)));
    let (first, second) = (originals.sync("4f2a"), originals.sync("4f2a"));
    first().unwrap();
    originals.forget("4f2a").unwrap();
    second().unwrap();
}

#[test]
fn what_a_machine_that_went_down_has_left_half_is_no_obstacle() {
    let state = tempfile::tempdir().unwrap();
    open(&state).keep(&original(0)).unwrap();
    for half in ["77aa.json", "77aa.part", "88bb.part"] {
        fs::write(state.path().join("one").join(half), "").unwrap();
    }
    let originals = open(&state);
    assert_eq!(originals.ids().unwrap(), ["4f2a"]);
    assert_eq!(originals.get("4f2a").unwrap(), Some(original(0)));
    assert!(!state.path().join("one/88bb.part").exists());
}
