use std::os::unix::fs::PermissionsExt;

use super::*;

/// Places without images, in a temporary folder.
fn nowhere() -> (TempDir, Places) {
    let root = tempfile::tempdir().unwrap();
    let places = Places {
        chosen: None,
        cache: root.path().join("cache"),
        mirrors: vec!["http://127.0.0.1:1/mnist".to_owned()],
        installed: root.path().join("installed"),
        apt_get: root.path().join("apt-get"),
    };
    (root, places)
}

fn fill(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in files::ALL {
        fs::write(folder.join(format!("{name}.gz")), "").unwrap();
    }
}

#[test]
fn named_folder_comes_before_cache() {
    let (_root, mut places) = nowhere();
    fill(&places.installed);
    fill(&places.cache.join(FASHION_MNIST));
    assert_eq!(places.locate().unwrap(), places.cache.join(FASHION_MNIST));
    fill(&places.cache.join(MNIST));
    assert_eq!(places.locate().unwrap(), places.cache.join(MNIST));
    places.chosen = Some("/data".into());
    assert_eq!(places.locate().unwrap(), Path::new("/data"));
}

#[test]
fn unreachable_mirror_falls_back_to_installed_package() {
    let (_root, places) = nowhere();
    fill(&places.installed);
    assert_eq!(places.locate().unwrap(), places.installed);
}

#[test]
fn failure_lists_all_attempts_and_leaves_no_files() {
    let (_root, places) = nowhere();
    let message = places.locate().unwrap_err().to_string();
    assert!(message.contains("--data"), "{message}");
    assert!(message.contains("http://127.0.0.1:1/mnist/train-images-idx3-ubyte.gz"), "{message}");
    assert!(message.contains("apt-get: No such file"), "{message}");
    assert_eq!(fs::read_dir(&places.cache).unwrap().count(), 0);
}

#[test]
fn incomplete_cache_is_not_used() {
    let (_root, places) = nowhere();
    fill(&places.installed);
    fill(&places.cache.join(MNIST));
    fs::remove_file(places.cache.join(MNIST).join("t10k-labels-idx1-ubyte.gz")).unwrap();
    assert_eq!(places.locate().unwrap(), places.installed);
}

/// The fake apt-get builds a package of empty files; it fails until it has been asked to update.
#[test]
fn package_is_fetched_with_separate_lists_if_needed() {
    let (_root, places) = nowhere();
    if !Path::new("/usr/bin/dpkg-deb").exists() {
        eprintln!("skipped: this machine has no dpkg-deb");
        return;
    }
    let script = format!(
        r#"#!/bin/sh
        case "$*" in *update*) exec touch updated ;; esac
        [ -e updated ] || exit 100
        mkdir -p p/DEBIAN p/{folder}
        printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n' >p/DEBIAN/control
        for name in {names}; do : >"p/{folder}/$name.gz"; done
        dpkg-deb --build p x.deb
        "#,
        folder = debian::FOLDER,
        names = files::ALL.join(" "),
    );
    fs::write(&places.apt_get, script).unwrap();
    fs::set_permissions(&places.apt_get, fs::Permissions::from_mode(0o755)).unwrap();
    let found = places.locate().unwrap();
    assert_eq!(found, places.cache.join(FASHION_MNIST));
    assert!(files::is_whole(&found));
    assert_eq!(fs::read_dir(&places.cache).unwrap().count(), 1);
}
