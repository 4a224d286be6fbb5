//! The state folder of a killed run of version 0.1.0: `state-0.1.0`, made by hand in the form in which
//! that version wrote it. Others could read it, and its audit log has no head.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use paceline_api::audit::verify::{End, verify};
use paceline_api::audit::{Audit, Entry};
use paceline_api::state_folder::StateFolder;
use serde_json::json;

use super::stub::Stub;
use super::*;

const ENGINE: &str = "b7d0f3c2-51aa-4c0e-9a64-2f6c1be08d35";
/// Limited by the engine; limited by files; limited by the engine, with a limit of its owner before.
const IDS: [&str; 3] = [
    "f31e1e55097bc66f6ab02c09ef666057c9f401b00454f245e5e421d4acfb7fc3",
    "f11f634067ca476644747f473780804658fe74997ac8223a6d6cf29cdb0c1b46",
    "a024a5e827753cd4d4cbcc49db30828fbf23edb2e85060352578c7ebeb9f62c7",
];

/// Copies the folder to `to`, with the permissions that the run had given it.
fn copy(to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/limits/tests/state-0.1.0");
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for below in ["", ENGINE] {
        fs::create_dir_all(to.join(below)).unwrap();
        for entry in fs::read_dir(from.join(below)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let copy = to.join(below).join(entry.file_name());
                fs::copy(entry.path(), &copy).unwrap();
                set_mode(&copy, 0o644);
            }
        }
        set_mode(&to.join(below), 0o755);
    }
}

fn state_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    folder
}

/// The engine and the containers as the run has left them, and its state folder.
fn left_behind() -> Stub {
    let stub = Stub::start(&IDS);
    ENGINE.clone_into(&mut stub.state.lock().unwrap().id);
    stub.update(IDS[0], &json!({"NanoCpus": 300_000_000}));
    fs::write(stub.file(IDS[1], "cpu.cfs_quota_us"), "30000").unwrap();
    stub.update(IDS[2], &json!({"NanoCpus": 300_000_000, "CpuShares": 512}));
    copy(&stub.state_folder("state"));
    stub
}

#[tokio::test]
async fn limits_left_by_version_0_1_0_are_restored_exactly() {
    let stub = left_behind();
    let actuator = stub.actuator();
    let mut pending = IDS.map(str::to_owned).to_vec();
    pending.sort();
    assert_eq!(actuator.pending(), pending);
    for id in IDS {
        assert!(actuator.restore(id).await.unwrap().is_some(), "{id}");
    }
    for id in &IDS[..2] {
        assert_eq!(stub.cgroup(id).quota().unwrap(), quota(None), "{id}");
        assert_eq!(stub.cgroup(id).weight().unwrap(), 1024, "{id}");
    }
    assert_eq!(stub.kept(IDS[1], "NanoCpus"), 0, "the engine was not asked");
    assert_eq!(stub.cgroup(IDS[2]).quota().unwrap(), quota(Some(75_000)));
    assert_eq!(stub.cgroup(IDS[2]).weight().unwrap(), 512);
    assert_eq!(stub.kept(IDS[2], "NanoCpus"), 750_000_000);
    assert!(actuator.pending().is_empty());
}

#[test]
fn state_folder_of_version_0_1_0_is_made_private() {
    let state = state_folder();
    drop(StateFolder::open(state.path()).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let engine = state.path().join(ENGINE);
    assert_eq!((mode(state.path()), mode(&engine)), (0o700, 0o700));
    for folder in [state.path(), &engine] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
}

#[test]
fn audit_log_of_version_0_1_0_is_accepted_once() {
    let state = state_folder();
    let verdict = verify(state.path(), None).unwrap();
    assert_eq!((verdict.holds(), verdict.end, verdict.entries), (true, End::Unknown, 6));
    Audit::open(state.path()).unwrap().write(&Entry::Ended { left: 0 });
    let verdict = verify(state.path(), None).unwrap();
    assert_eq!((verdict.holds(), verdict.end, verdict.entries), (true, End::Whole, 8));
    fs::remove_file(state.path().join("audit.head")).unwrap();
    assert!(!verify(state.path(), None).unwrap().holds());
}
