//! The fixtures of `tests/frameworks`: output of frameworks with the recorded truth.

pub(crate) mod sources;
pub(crate) mod truth;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use truth::Row;

/// One run of a framework.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) folder: PathBuf,
    pub(crate) about: About,
    pub(crate) truth: Vec<Row>,
}

/// The properties of a fixture.
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) source: String,
    pub(crate) file: PathBuf,
    /// How far a printed loss may be from the true one, by phase.
    pub(crate) within: BTreeMap<String, Within>,
}

/// How far a printed loss may be from the true one.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Within {
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
}

impl Fixture {
    /// The fixture with this name.
    pub(crate) fn open(name: &str) -> Self {
        let folder = all().join(name);
        let about = serde_json::from_slice(&bytes(&folder.join("about.json"))).unwrap();
        let truth = truth::parse(&text(&folder.join("truth.jsonl")));
        Self { folder, about, truth }
    }

    /// The path of the output to read.
    pub(crate) fn source(&self) -> PathBuf {
        self.folder.join(&self.about.file)
    }
}

/// The names of all fixtures, in order.
pub(crate) fn names() -> Vec<String> {
    let entries = fs::read_dir(all()).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<_> = folders.map(name).collect();
    names.sort();
    names
}

/// The folder of the fixtures: in the repository, or `PACELINE_FIXTURES` for regenerated ones.
fn all() -> PathBuf {
    let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks");
    env::var_os("PACELINE_FIXTURES").map_or_else(ours, PathBuf::from)
}

/// The bytes of a file.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> String {
    String::from_utf8(bytes(path)).unwrap()
}
