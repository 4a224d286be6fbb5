//! Checks the structure of the workspace: which crate may depend on which, and which dependencies
//! the pure crates must not have.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

#[path = "structure/packages.rs"]
mod packages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The allowed dependencies between crates of the workspace.
const EDGES: &[(&str, &[&str])] = &[
    ("paceline-wire", &[]),
    ("paceline-local", &[]),
    ("paceline-manual", &[]),
    ("paceline-https", &[]),
    ("paceline-otlp", &["paceline-https"]),
    ("paceline-tfevents", &[]),
    ("paceline-reporter", &["paceline-local", "paceline-tfevents", "paceline-wire"]),
    ("paceline-watch", &["paceline-local", "paceline-wire"]),
    ("paceline-lines", &[]),
    ("paceline-grammar", &["paceline-lines"]),
    (
        "paceline-sidecar",
        &[
            "paceline-grammar",
            "paceline-https",
            "paceline-lines",
            "paceline-manual",
            "paceline-otlp",
            "paceline-reporter",
            "paceline-tfevents",
            "paceline-watch",
        ],
    ),
    ("paceline-policy", &["paceline-wire"]),
    ("paceline-sim", &["paceline-policy", "paceline-wire"]),
    ("paceline-api", &["paceline-policy", "paceline-wire"]),
    ("paceline-cgroup", &["paceline-policy"]),
    ("paceline-runtime", &["paceline-api", "paceline-cgroup", "paceline-policy"]),
    (
        "paceline-node",
        &[
            "paceline-api",
            "paceline-cgroup",
            "paceline-policy",
            "paceline-runtime",
            "paceline-wire",
        ],
    ),
    (
        "paceline-cluster",
        &[
            "paceline-api",
            "paceline-cgroup",
            "paceline-node",
            "paceline-policy",
            "paceline-runtime",
            "paceline-wire",
        ],
    ),
    ("paceline-server", &["paceline-api", "paceline-local", "paceline-node", "paceline-otlp"]),
    ("paceline-inject", &[]),
    (
        "paceline-bench",
        &[
            "paceline-api",
            "paceline-node",
            "paceline-policy",
            "paceline-runtime",
            "paceline-sim",
            "paceline-wire",
        ],
    ),
    (
        "paceline",
        &[
            "paceline-api",
            "paceline-bench",
            "paceline-cgroup",
            "paceline-cluster",
            "paceline-inject",
            "paceline-manual",
            "paceline-node",
            "paceline-policy",
            "paceline-runtime",
            "paceline-server",
            "paceline-watch",
            "paceline-wire",
        ],
    ),
];

/// Crates that the pure ones must not use, directly or indirectly.
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

/// The names of all dependencies of a crate that is built alone, without the features that other
/// crates of the workspace enable.
fn used_by(package: &str, options: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", package])
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_pure_crates_stay_pure() {
    for (pure, uses) in [
        ("paceline-grammar", "regex"),
        ("paceline-inject", "saphyr-parser"),
        ("paceline-lines", "memchr"),
        ("paceline-policy", "serde"),
        ("paceline-sim", "serde"),
        ("paceline-wire", "serde"),
    ] {
        let used = used_by(pure, &[]);
        assert!(used.contains(uses), "{used:?}");
        let impure: Vec<_> = IMPURE.iter().filter(|name| used.contains(**name)).collect();
        assert!(impure.is_empty(), "{pure} uses {impure:?}");
    }
}

/// What only the bench and `watch` use: the daemon, which runs as root, is built without them.
const NOT_IN_DAEMON: &[&str] =
    &["paceline-bench", "paceline-sim", "plotters", "indicatif", "paceline-watch", "ratatui"];

#[test]
fn a_daemon_has_neither_charts_nor_simulations() {
    let all = used_by("paceline", &[]);
    let daemon = used_by("paceline", &["--no-default-features", "--features", "cri"]);
    for name in NOT_IN_DAEMON {
        assert!(all.contains(*name) && !daemon.contains(*name), "{name}: {daemon:?}");
    }
}

/// The most packages that the sidecar is built from without its features: it stands beside every
/// Python job.
const MAX_SIDECAR_PACKAGES: usize = 75;

#[test]
fn the_sidecar_stays_small_and_knows_no_engine_client() {
    let used = used_by("paceline-sidecar", &["--no-default-features"]);
    assert!(used.len() <= MAX_SIDECAR_PACKAGES, "{}: {used:?}", used.len());
    let all = used_by("paceline-sidecar", &[]);
    for optional in ["ratatui", "rustls"] {
        assert!(all.contains(optional) && !used.contains(optional), "{optional}");
    }
    assert!(!all.contains("bollard"));
}

/// Crates whose folders must not import each other in a circle.
const FOLDERS: &[&str] = &[
    "allocator",
    "allocator/api",
    "allocator/bench",
    "allocator/cgroup",
    "allocator/cluster",
    "allocator/inject",
    "allocator/node",
    "allocator/policy",
    "allocator/runtime",
    "allocator/server",
    "allocator/sim",
    "reporter",
    "reporter/https",
    "reporter/local",
    "reporter/otlp",
    "reporter/tfevents",
    "reporter/wire",
    "sidecar",
    "sidecar/grammar",
    "sidecar/lines",
    "sidecar/watch",
];

/// The product's code of a file: without comments and without the tests at its end.
fn product_code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join(
        "
",
    )
}

/// The modules that the text after `crate::` names: several in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    match rest.strip_prefix('{').and_then(|list| list.split('}').next()) {
        Some(list) => list.split(',').map(name).collect(),
        None => vec![name(rest)],
    }
}

/// Which modules each top-level module of a crate names by `crate::`.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut imports = BTreeMap::<String, BTreeSet<String>>::new();
    let mut open = vec![source.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests" || name == "example");
            if is_test {
                continue;
            }
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let first = path.strip_prefix(source).unwrap().components().next().unwrap();
            let module = Path::new(first.as_os_str()).file_stem().unwrap().to_string_lossy();
            let named = imports.entry(module.into_owned()).or_default();
            let code = product_code(&path);
            named.extend(code.split("crate::").skip(1).flat_map(first_names));
        }
    }
    imports
}

/// What is reached from a module by imports, one after the other.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if imports.contains_key(next) && next != module && reached.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    reached
}

#[test]
fn folders_import_each_other_in_no_circle() {
    for name in FOLDERS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let mut imports = imports(&source);
        // The root joins all.
        imports.retain(|module, _| !["lib", "main"].contains(&module.as_str()));
        for folder in imports.keys().filter(|module| source.join(module).is_dir()) {
            let circle: Vec<_> = reached(&imports, folder)
                .into_iter()
                .filter(|other| other != folder && reached(&imports, other).contains(folder))
                .collect();
            assert!(circle.is_empty(), "{name}: {folder} and {circle:?} import each other");
        }
    }
}

/// The most lines of a crate, comments included and tests left out: a reader can know it as a whole.
const MAX_LINES: usize = 14_000;

/// The files of the modules that a file declares for tests alone.
fn test_modules(file: &Path, text: &str) -> Vec<PathBuf> {
    let is_root = ["lib", "main", "mod"].iter().any(|root| file.file_stem().unwrap() == *root);
    let folder = if is_root { file.parent().unwrap().to_owned() } else { file.with_extension("") };
    let after = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.lines().next());
    let declared = after.filter_map(|line| line.trim().strip_suffix(';')?.rsplit_once("mod "));
    declared
        .flat_map(|(_, name)| [folder.join(name), folder.join(name).with_extension("rs")])
        .collect()
}

/// All files with Rust below a folder, with their texts.
fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files
}

#[test]
fn no_crate_is_too_large_to_know() {
    for name in FOLDERS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let files = rust_files(&source);
        let tests: Vec<_> =
            files.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
        let is_product = |file: &Path| !tests.iter().any(|test| file.starts_with(test));
        let lines = files.iter().filter(|(file, _)| is_product(file)).map(|(_, text)| {
            text.split("#[cfg(test)]\nmod tests {").next().unwrap().lines().count()
        });
        let lines: usize = lines.sum();
        println!("{name}: {lines} lines");
        assert!(lines > 0 && lines <= MAX_LINES, "{name} has {lines} lines");
    }
}
