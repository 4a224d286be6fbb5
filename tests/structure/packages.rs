//! What a registry of crates needs of each package that others may use, and what a package must not have.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::text;

/// The crates that only this repository uses.
const PRIVATE: &[&str] = &["paceline-examples", "paceline-system-tests"];

/// The registry refuses other categories.
const CATEGORIES: &[&str] = &[
    "algorithms",
    "command-line-interface",
    "command-line-utilities",
    "config",
    "data-structures",
    "development-tools::profiling",
    "encoding",
    "os::linux-apis",
    "science",
    "simulation",
    "virtualization",
    "visualization",
    "web-programming::http-server",
];

const MAX_WORDS: usize = 5;
const MAX_WORD_LENGTH: usize = 20;

/// What a package may have beside what cargo itself adds.
const FOLDERS: &[&str] = &["benches/", "examples/", "scenarios/", "src/"];
const FILES: &[&str] = &[
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "PARTS.md",
    "README.md",
];

/// Files that come from other folders by links, without which a package would not compile.
const LINKED: &[(&str, &str)] =
    &[("paceline-sim", "scenarios/fc-3.toml"), ("paceline-watch", "src/serve/page/job.html")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The packages of the workspace, and the adapter for Burn, which is a workspace of its own.
fn packages() -> Vec<Value> {
    let mut packages = Vec::new();
    for manifest in ["Cargo.toml", "reporter/burn/Cargo.toml"] {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path", manifest])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        packages.extend(metadata["packages"].as_array().unwrap().iter().cloned());
    }
    packages
}

/// Whether the registry takes the package: cargo writes an empty list for `publish = false`.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(package, "manifest_path")).parent().unwrap().to_owned()
}

fn words<'a>(package: &'a Value, key: &str) -> Vec<&'a str> {
    package[key].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn only_examples_and_tests_are_private() {
    let packages = packages();
    let private: Vec<_> =
        packages.iter().filter(|package| !is_published(package)).map(|p| text(p, "name")).collect();
    assert_eq!(private, PRIVATE);
    assert!(packages.len() > PRIVATE.len());
}

#[test]
fn published_packages_say_what_they_are() {
    let is_keyword = |word: &&str| {
        (1..=MAX_WORD_LENGTH).contains(&word.len())
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_+".contains(c))
    };
    let packages = packages();
    let repository = text(&packages[0], "repository");
    assert!(repository.starts_with("https://"), "{repository}");
    for package in packages.iter().filter(|package| is_published(package)) {
        let name = text(package, "name");
        assert!(!text(package, "description").is_empty(), "{name}");
        assert_eq!(text(package, "license"), "MIT OR Apache-2.0", "{name}");
        assert_eq!(text(package, "repository"), repository, "{name}");
        assert_eq!(text(package, "documentation"), format!("https://docs.rs/{name}"));
        assert!(!text(package, "rust_version").is_empty(), "{name}");
        for key in ["keywords", "categories"] {
            let words = words(package, key);
            assert!((1..=MAX_WORDS).contains(&words.len()), "{name}: {key} {words:?}");
        }
        assert!(words(package, "keywords").iter().all(is_keyword), "{name}");
        let mut categories = words(package, "categories").into_iter();
        assert!(categories.all(|category| CATEGORIES.contains(&category)), "{name}");
    }
}

#[test]
fn published_packages_have_a_page_and_the_licences() {
    for package in packages().iter().filter(|package| is_published(package)) {
        let (name, folder) = (text(package, "name"), folder(package));
        let page = fs::read_to_string(folder.join(text(package, "readme"))).unwrap();
        assert!(page.starts_with("# "), "{name}");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let [ours, common] =
                [folder.join(licence), root().join(licence)].map(fs::read_to_string);
            assert_eq!(ours.unwrap(), common.unwrap(), "{name}: {licence}");
        }
    }
}

#[test]
fn what_published_packages_use_is_published_in_that_version() {
    let packages = packages();
    let versions: BTreeMap<_, _> = packages
        .iter()
        .filter(|package| is_published(package))
        .map(|package| (text(package, "name"), text(package, "version")))
        .collect();
    let mut checked = 0;
    for package in packages.iter().filter(|package| is_published(package)) {
        for used in package["dependencies"].as_array().unwrap() {
            if !used["path"].is_string() {
                continue;
            }
            let (name, used, required) =
                (text(package, "name"), text(used, "name"), text(used, "req"));
            let version =
                versions.get(used).unwrap_or_else(|| panic!("{name} uses {used}: not published"));
            assert_eq!(required.trim_start_matches(['^', '=']), *version, "{name} uses {used}");
            checked += 1;
        }
    }
    assert!(checked > packages.len());
}

#[test]
fn packages_have_their_code_and_no_strays() {
    for package in packages().iter().filter(|package| is_published(package)) {
        let name = text(package, "name");
        // Only the lock file needs an index of crates, which a new machine does not have yet.
        let output = Command::new(env!("CARGO"))
            .args(["package", "--list", "--allow-dirty", "--offline", "--exclude-lockfile"])
            .args(["--manifest-path", text(package, "manifest_path")])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // On Windows cargo prints its own separator.
        let listed = String::from_utf8(output.stdout).unwrap().replace('\\', "/");
        let files: Vec<_> = listed.lines().collect();
        let is_expected = |file: &&str| {
            FILES.contains(file) || FOLDERS.iter().any(|folder| file.starts_with(folder))
        };
        let strays: Vec<_> = files.iter().filter(|file| !is_expected(file)).collect();
        assert!(strays.is_empty(), "{name}: {strays:?}");
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(files.contains(&file), "{name}: {file}");
        }
        let code = ["src/lib.rs", "src/main.rs"];
        assert!(code.iter().any(|file| files.contains(file)), "{name}: {files:?}");
        for (_, file) in LINKED.iter().filter(|(package, _)| *package == name) {
            assert!(files.contains(file), "{name}: {file}");
        }
    }
}

/// Rustdoc hides lines that start with `# `; a registry shows them.
#[test]
fn code_on_pages_has_no_hidden_lines() {
    let mut blocks = 0;
    for package in packages().iter().filter(|package| is_published(package)) {
        let page = folder(package).join(text(package, "readme"));
        let mut is_rust = false;
        for line in fs::read_to_string(&page).unwrap().lines() {
            if line.starts_with("```") {
                is_rust = line.starts_with("```rust");
                blocks += usize::from(is_rust);
            }
            let is_hidden = is_rust && (line.trim() == "#" || line.trim_start().starts_with("# "));
            assert!(!is_hidden, "{}: {line}", page.display());
        }
    }
    assert!(blocks > 0);
}
