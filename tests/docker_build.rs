//! `images/docker-build.sh`: the engine's notice of its old builder is left out, errors are not.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// As the engine's client prints it.
const NOTICE: &str =
    "DEPRECATED: The legacy builder is deprecated and will be removed in a future release.
            Install the buildx component to build images with BuildKit:
            https://docs.docker.com/go/buildx/

";
const ERROR: &str = "COPY failed: no such file\n  in the context\n\nlast line\n";

/// A client whose `docker build` prints the notice and `error`, and ends with `code`.
fn client(folder: &Path, buildx: bool, error: &str, code: u8) {
    let buildx = u8::from(!buildx);
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = buildx ] && exit {buildx}\n\
         printf '%s' '{NOTICE}{error}' >&2\ncat\nexit {code}\n"
    );
    let path = folder.join("docker");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn build(folder: &Path) -> Output {
    let helper = concat!(env!("CARGO_MANIFEST_DIR"), "/../images/docker-build.sh");
    let path = std::env::var("PATH").unwrap();
    let script = format!(". '{helper}'; set -e; docker_build - <<<id; echo after");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("PATH", format!("{}:{path}", folder.display()));
    command.output().unwrap()
}

#[test]
fn a_build_prints_its_id_and_no_notice() {
    let folder = tempfile::tempdir().unwrap();
    client(folder.path(), false, "", 0);
    let Output { status, stdout, stderr } = build(folder.path());
    assert!(status.success());
    assert_eq!(String::from_utf8(stdout).unwrap(), "id\nafter\n");
    assert_eq!(String::from_utf8(stderr).unwrap(), "");
}

#[test]
fn a_failing_build_keeps_its_error_and_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    client(folder.path(), false, ERROR, 17);
    let Output { status, stdout, stderr } = build(folder.path());
    assert_eq!(status.code(), Some(17));
    assert_eq!(String::from_utf8(stdout).unwrap(), "id\n", "the script ends there");
    assert_eq!(String::from_utf8(stderr).unwrap(), ERROR);
}

#[test]
fn a_build_with_buildx_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    client(folder.path(), true, ERROR, 17);
    let Output { status, stderr, .. } = build(folder.path());
    assert_eq!(status.code(), Some(17));
    assert_eq!(String::from_utf8(stderr).unwrap(), format!("{NOTICE}{ERROR}"));
}
