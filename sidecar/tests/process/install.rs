//! `install` puts a copy of the program into a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::program::{Bench, append};

#[test]
fn copy_runs_and_no_other_file_is_left() {
    let bench = Bench::new();
    let copy = bench.path("paceline-sidecar");
    append(&copy, "a predecessor");
    let folder = bench.path("");
    let output = bench.run(&["install", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, format!("{}\n", copy.display()).as_bytes());
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(Command::new(&copy).arg("--version").output().unwrap().status.success());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn unusable_folder_is_named_in_the_error() {
    let bench = Bench::new();
    let file = bench.path("file");
    append(&file, "text");
    // In the last one, not even root can create files.
    for folder in ["/no/such/folder", file.to_str().unwrap(), "/proc/self"] {
        let output = bench.run(&["install", folder]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{folder}: {said}");
        assert!(said.contains("; name an existing folder"), "{said}");
        assert!(said.contains(folder) && said.lines().count() == 1, "{said}");
    }
}
