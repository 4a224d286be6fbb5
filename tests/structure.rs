//! The shape of the workspace, as a program: which crate may depend on which, and what never
//! reaches the pure ones.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Every edge that there may be between crates of the workspace.
const EDGES: &[(&str, &[&str])] = &[
    ("paceline-wire", &[]),
    ("paceline-local", &[]),
    ("paceline-reporter", &["paceline-local", "paceline-wire"]),
    ("paceline-sidecar", &["paceline-reporter"]),
    ("paceline-policy", &["paceline-wire"]),
    ("paceline-sim", &["paceline-policy", "paceline-wire"]),
    ("paceline-allocator", &["paceline-local", "paceline-policy", "paceline-sim", "paceline-wire"]),
];

/// What the pure crates never use, at whatever remove.
const IMPURE: &[&str] = &["tokio", "hyper", "bollard", "tracing", "tch", "rustix", "libc", "rand"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Normal dependencies of every package, by id, as cargo has resolved them.
fn resolved(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let normal = |dep: &&Value| {
        dep["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
    };
    nodes
        .iter()
        .map(|node| {
            let deps = node["deps"].as_array().unwrap().iter().filter(normal);
            (text(node, "id"), deps.map(|dep| text(dep, "pkg")).collect())
        })
        .collect()
}

fn names(metadata: &Value) -> BTreeMap<&str, &str> {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (text(package, "id"), text(package, "name"))).collect()
}

#[test]
fn crates_depend_on_each_other_as_the_picture_shows() {
    let metadata = metadata();
    let (names, resolved) = (names(&metadata), resolved(&metadata));
    for (id, deps) in &resolved {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| names.get(id) == Some(name)) else {
            continue;
        };
        let ours: BTreeSet<&str> = deps
            .iter()
            .filter_map(|dep| names.get(dep).copied())
            .filter(|name| name.starts_with("paceline-"))
            .collect();
        assert_eq!(ours, allowed.iter().copied().collect(), "what {} uses", names[id]);
    }
}

/// The names of all that a crate is built with when it is built alone: not with the features that
/// others of the workspace ask for.
fn used_by(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_pure_crates_stay_pure() {
    for pure in ["paceline-policy", "paceline-sim", "paceline-wire"] {
        let used = used_by(pure);
        assert!(used.contains("serde"), "{used:?}");
        let impure: Vec<_> = IMPURE.iter().filter(|name| used.contains(**name)).collect();
        assert!(impure.is_empty(), "{pure} uses {impure:?}");
    }
}
