//! `images/docker-build.sh`: the engine's notice of its old builder is left out, errors are not. Images of compiled
//! programs are those of the repository's `Dockerfile`.

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

/// The lines of a file of the repository.
fn lines(file: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(file)).unwrap().lines().map(str::to_owned).collect()
}

/// The Dockerfile of an image whose program is compiled already.
fn packed(image: &str) -> String {
    let helper = concat!(env!("CARGO_MANIFEST_DIR"), "/../images/docker-build.sh");
    let script = format!("set -euo pipefail; . '{helper}'; packed {image}");
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_compiled_program_gets_the_last_stage_of_its_image() {
    for (image, entry) in [("allocator", "/paceline"), ("sidecar", "/paceline-sidecar")] {
        let packed = packed(image);
        let first = format!("FROM scratch AS compiled-{image}\nCOPY rootfs/ /rootfs/\n");
        assert!(packed.starts_with(&first), "{packed}");
        assert!(packed.contains(&format!("org.opencontainers.image.title=\"Paceline {image}\"")));
        assert!(packed.contains(&format!("\nENTRYPOINT [\"{entry}\"]\n")), "{packed}");
        assert_eq!(packed.matches("FROM ").count(), 2, "{packed}");
        assert!(!packed.contains("cargo"), "{packed}");
    }
    assert!(packed("sidecar").contains("\nUSER 65532:65532\nHEALTHCHECK "));
}

#[test]
fn images_compiled_inside_and_outside_have_the_same_features() {
    let dockerfile = lines("Dockerfile");
    for image in ["allocator", "sidecar"] {
        let script = lines(&format!("{image}/image.sh")).join("\n");
        let features = script.split("--no-default-features --features ").nth(1).unwrap();
        let features = features.split_whitespace().next().unwrap();
        let stage = dockerfile
            .iter()
            .skip_while(|line| !line.ends_with(&format!(" AS compiled-{image}")))
            .take_while(|line| !line.is_empty())
            .any(|line| line.contains(&format!("--no-default-features --features {features} ")));
        assert!(stage, "{image}: the Dockerfile compiles without --features {features} alone");
    }
}

#[test]
fn images_have_the_version_of_the_crates() {
    let version = concat!("ARG VERSION=", env!("CARGO_PKG_VERSION"));
    assert!(lines("Dockerfile").iter().any(|line| line == version), "expected {version}");
    // A user without root runs the image of the program's own version.
    let tag = concat!("docker build --tag paceline/allocator:", env!("CARGO_PKG_VERSION"), " ");
    assert!(
        lines("examples/guide/machine.md").iter().any(|line| line.starts_with(tag)),
        "expected {tag}"
    );
}
