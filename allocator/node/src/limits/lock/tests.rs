use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::file::{Failed, LOOK_PAUSE, Lock, text_after};
use super::*;

#[test]
fn pipe_in_the_place_of_a_lock_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("lock");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let error = format!(
        "{:#}",
        anyhow::Error::from(
            FolderLock::take(folder.path(), "a test", ReadOnly::Refused).unwrap_err()
        )
    );
    assert!(error.contains("/lock") && error.contains("not a regular file"), "{error}");
}

#[test]
fn link_in_the_place_of_a_lock_is_named_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    fs::write(&other, "another program's").unwrap();
    std::os::unix::fs::symlink(&other, folder.path().join("lock")).unwrap();
    let taken = FolderLock::take(folder.path(), "a test", ReadOnly::Refused);
    let error = format!("{:#}", anyhow::Error::from(taken.unwrap_err()));
    assert!(error.contains("/lock") && error.contains("not a regular file"), "{error}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "another program's");
}

#[test]
fn search_for_lost_records_waits_for_no_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let locks = folder.path().join("locks");
    fs::create_dir_all(state.join("engine")).unwrap();
    let own = FolderLock::take(&state.join("engine"), "a test", ReadOnly::Refused).unwrap();
    let take = || {
        let engine = ("engine", "/var/lib/docker");
        EngineLock::take(&locks, engine, (Scope::Some, Duration::ZERO), (&state, &own))
    };
    let lock = take().unwrap().unwrap();
    let older = folder.path().join("engine");
    fs::create_dir(&older).unwrap();
    for pipe in [locks.join("job.claim"), older.join("lock")] {
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    }
    assert!(lock.abandoned().is_empty());
    assert!(take().unwrap().is_some());
}

#[test]
fn search_for_lost_records_takes_no_lock_that_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let originals = state.join("engine");
    fs::create_dir_all(&originals).unwrap();
    fs::write(originals.join("job.json"), "{}").unwrap();
    let own = FolderLock::take(&originals, "a test", ReadOnly::Refused).unwrap();
    let locks = folder.path().join("locks");
    let engine = ("engine", "/var/lib/docker");
    let lock = EngineLock::take(&locks, engine, (Scope::Some, Duration::ZERO), (&state, &own))
        .unwrap()
        .unwrap();
    let claims = 2_000;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert!(lock.abandoned().is_empty());
            }
        });
        let taken = (0..claims).filter(|_| lock.claim("job", true).is_ok()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(taken, claims);
    });
}

#[test]
fn holder_that_has_just_taken_a_lock_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let Ok(mut first) = Lock::take(&path, false) else { panic!("it is free") };
    let writing = std::thread::spawn(move || {
        std::thread::park_timeout(LOOK_PAUSE * 3);
        first.write("process 7\n").unwrap();
        first
    });
    let Err(Failed::Held(file)) = Lock::take(&path, false) else { panic!("it is held") };
    // As many looks as a busy machine may need.
    assert_eq!(text_after(&file, 10_000), "process 7");
    drop(writing.join());
}
