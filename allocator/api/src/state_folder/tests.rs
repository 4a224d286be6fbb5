use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn folder_and_files_are_private_whatever_the_umask() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b/state");
    let folder = StateFolder::open(&path).unwrap();
    folder.replace("x", b"1", Durability::Now).unwrap();
    drop(folder.appended_file("log").unwrap());
    let below = folder.subfolder("engine").unwrap();
    drop(below.updated_file("lock").unwrap());
    assert_eq!((mode(&path), mode(&path.join("engine"))), (0o700, 0o700));
    for file in ["x", "log", "engine/lock"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    assert_eq!(folder.names().unwrap(), ["engine", "log", "x"]);
}

/// A state folder as version 0.1.0 has left it.
fn open_folder(path: &Path) {
    fs::create_dir_all(path.join("AB-CD/moves")).unwrap();
    for file in ["audit.jsonl", "audit-00000000000000000009.jsonl", "AB-CD/lock", "AB-CD/4f.json"] {
        fs::write(path.join(file), "").unwrap();
        set_mode(&path.join(file), 0o644);
    }
    for folder in ["AB-CD/moves", "AB-CD", ""] {
        set_mode(&path.join(folder), 0o755);
    }
}

#[test]
fn folder_that_others_could_read_is_made_private() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    open_folder(&path);
    let outside = place.path().join("outside");
    fs::write(&outside, "").unwrap();
    set_mode(&outside, 0o644);
    symlink(&outside, path.join("AB-CD/5e.json")).unwrap();
    fs::write(path.join("notes"), "").unwrap();
    set_mode(&path.join("notes"), 0o644);
    drop(StateFolder::open(&path).unwrap());
    for name in ["", "AB-CD", "AB-CD/moves"] {
        assert_eq!(mode(&path.join(name)), 0o700, "{name}");
    }
    for name in ["audit.jsonl", "audit-00000000000000000009.jsonl", "AB-CD/lock", "AB-CD/4f.json"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    // What is not ours stays as it was.
    assert_eq!((mode(&outside), mode(&path.join("notes"))), (0o644, 0o644));
}

#[test]
fn folder_with_locks_alone_is_made_private() {
    // As Docker leaves it, if a user who is not root is the first to run the allocator.
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    fs::create_dir_all(path.join("locks")).unwrap();
    for file in ["locks/engine-AB-CD.lock", "locks/4f2a.claim"] {
        fs::write(path.join(file), "").unwrap();
    }
    set_mode(&path, 0o755);
    drop(StateFolder::open(&path).unwrap());
    assert_eq!(mode(&path), 0o700);

    // Another folder of that name is not a sign of a state folder.
    fs::write(path.join("locks/thesis.tex"), "").unwrap();
    set_mode(&path, 0o755);
    let error = StateFolder::open(&path).unwrap_err().to_string();
    assert!(error.contains("files of another kind"), "{error}");
}

#[test]
fn shared_folder_is_refused_and_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("shared");
    fs::create_dir(&path).unwrap();
    for (mode_before, file, words) in [
        (0o1777, None, "every user may write into it"),
        (0o757, Some("audit.jsonl"), "every user may write into it"),
        (0o755, Some("thesis.tex"), "files of another kind"),
    ] {
        if let Some(file) = file {
            fs::write(path.join(file), "").unwrap();
        }
        set_mode(&path, mode_before);
        let error = StateFolder::open(&path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("--state-dir"), "{error}");
        assert_eq!(mode(&path), mode_before);
        if let Some(file) = file {
            fs::remove_file(path.join(file)).unwrap();
        }
    }
}

#[test]
fn links_on_the_way_are_followed_but_none_below() {
    let place = tempfile::tempdir().unwrap();
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink("real", place.path().join("link")).unwrap();
    let folder = StateFolder::open(&place.path().join("link/../link/state")).unwrap();
    folder.replace("x", b"1", Durability::Later).unwrap();
    assert_eq!(fs::read(real.join("state/x")).unwrap(), b"1");
    let victim = place.path().join("victim");
    fs::write(&victim, "whole").unwrap();
    for name in ["log", "lock", "y.part", "z"] {
        symlink(&victim, real.join("state").join(name)).unwrap();
    }
    for refused in [folder.appended_file("log"), folder.updated_file("lock")] {
        assert!(refused.unwrap_err().to_string().contains("symbolic link"));
    }
    assert!(folder.read("z", 10).unwrap_err().to_string().contains("symbolic link"));
    folder.replace("y", b"2", Durability::Later).unwrap();
    folder.replace("z", b"3", Durability::Later).unwrap();
    symlink(place.path(), real.join("state/engine")).unwrap();
    assert!(folder.subfolder("engine").is_err());
    assert_eq!(fs::read(&victim).unwrap(), b"whole");
    assert_eq!(fs::read(real.join("state/z")).unwrap(), b"3");
}

#[test]
fn endless_links_are_an_error() {
    let place = tempfile::tempdir().unwrap();
    symlink("b", place.path().join("a")).unwrap();
    symlink("a", place.path().join("b")).unwrap();
    assert!(matches!(StateFolder::open(&place.path().join("a/x")), Err(StateError::Io(..))));
}

#[test]
fn file_of_another_kind_is_refused_without_waiting() {
    let place = tempfile::tempdir().unwrap();
    let folder = StateFolder::open(place.path()).unwrap();
    let fifo = place.path().join("audit.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, PRIVATE_FILE, 0).unwrap();
    for refused in [folder.appended_file("audit.jsonl"), folder.updated_file("audit.jsonl")] {
        assert!(refused.unwrap_err().to_string().contains("not a regular file"));
    }
    assert!(folder.file("audit.jsonl").is_err());
}

#[test]
fn name_that_leads_elsewhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = StateFolder::open(&place.path().join("state")).unwrap();
    for name in ["", ".", "..", "../x", "a/b", "/etc/passwd"] {
        assert!(folder.replace(name, b"", Durability::Later).is_err(), "{name}");
        assert!(folder.file(name).is_err(), "{name}");
    }
}

#[test]
fn file_beyond_its_bound_is_not_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = StateFolder::open(place.path()).unwrap();
    folder.replace("x", &[b'x'; 11], Durability::Later).unwrap();
    assert_eq!(folder.read("x", 11).unwrap().map(|bytes| bytes.len()), Some(11));
    assert!(folder.read("x", 10).unwrap_err().to_string().contains("more than 10 bytes"));
    assert_eq!(folder.read("y", 10).unwrap(), None);
}

#[test]
fn removed_folder_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let folder = StateFolder::open(&path).unwrap();
    let below = folder.subfolder("engine").unwrap();
    fs::remove_dir_all(&path).unwrap();
    below.replace("x", b"1", Durability::Now).unwrap();
    folder.replace("y", b"2", Durability::Now).unwrap();
    assert_eq!(fs::read(path.join("engine/x")).unwrap(), b"1");
    assert_eq!(fs::read(path.join("y")).unwrap(), b"2");
}

#[test]
fn folder_or_link_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    let error = StateFolder::open(&path).unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534") && error.contains("chown 0"), "{error}");
    let link = place.path().join("link");
    symlink(place.path(), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    let error = StateFolder::open(&link.join("new")).unwrap_err().to_string();
    assert!(error.contains("is a link of user 65534"), "{error}");
}
