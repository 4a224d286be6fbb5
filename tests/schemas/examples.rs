//! The examples: each names its schema, and fits it.

use std::fs;
use std::path::{Path, PathBuf};

use paceline_system_tests::Allocator;
use serde_json::Value;

use crate::validator::Validator;
use crate::{examples, schema, schema_file};

/// A folder of examples, and the schema of its files.
const FOLDERS: [(&str, &str); 4] = [
    ("deploy", "config.json"),
    ("jobs", "job.json"),
    ("scenarios", "scenario.json"),
    ("schedules", "schedule.json"),
];

/// The TOML files in a folder.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(examples().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(!files.is_empty(), "{folder} has examples");
    files
}

/// A TOML text as JSON, which has no infinity: the largest number stands for it.
pub(crate) fn from_toml(text: &str) -> Result<Value, toml::de::Error> {
    fn json(value: toml::Value) -> Value {
        match value {
            toml::Value::Float(number) if number.is_infinite() => Value::from(f64::MAX),
            toml::Value::Array(values) => values.into_iter().map(json).collect(),
            toml::Value::Table(table) => {
                table.into_iter().map(|(key, value)| (key, json(value))).collect()
            }
            value @ (toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)) => serde_json::to_value(value).unwrap(),
        }
    }
    let value: toml::Table = toml::from_str(text)?;
    Ok(json(toml::Value::Table(value)))
}

fn check(path: &Path, text: &str, schema: &Validator) {
    let value = from_toml(text).unwrap();
    schema.check(&value).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
}

#[test]
fn every_example_names_its_schema_and_fits_it() {
    for (folder, name) in FOLDERS {
        let validator = Validator::new(schema(name));
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            let first = text.lines().next().unwrap().strip_prefix("#:schema ");
            let named = first.unwrap_or_else(|| panic!("{} names no schema", path.display()));
            let named = path.parent().unwrap().join(named).canonicalize().unwrap();
            assert_eq!(named, schema_file(name), "{}", path.display());
            check(&path, &text, &validator);
        }
    }
}

#[test]
fn every_key_that_the_configuration_shows_fits_the_schema() {
    let validator = Validator::new(schema("config.json"));
    for path in files("deploy") {
        let text = fs::read_to_string(&path).unwrap();
        let shown = |line: &str| match line.strip_prefix('#') {
            Some(key) if !key.starts_with([' ', ':']) => key.to_owned() + "\n",
            Some(_) | None => line.to_owned() + "\n",
        };
        let all: String = text.lines().map(shown).collect();
        assert!(from_toml(&all).unwrap()["web"]["tls_key"].is_string(), "{all}");
        check(&path, &all, &validator);
    }
}

/// The engine's socket in the folder of a test, where there may be none.
pub(crate) const ENGINE: &str = "engine.sock";

/// Runs `paceline` with these words in a folder.
pub(crate) async fn paceline(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Allocator::command(words).unwrap();
    let host = format!("unix://{}/{ENGINE}", folder.display());
    command.current_dir(folder).env("DOCKER_HOST", &host).env("PACELINE_CONTROL", "no.sock");
    command.env("PACELINE_STATE_DIR", folder.join("state"));
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn program_prints_the_schema_of_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, error) = paceline(folder.path(), &["config", "schema"]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert_eq!(said, fs::read_to_string(schema_file("config.json")).unwrap());
}

#[tokio::test]
async fn shown_settings_fit_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, error) = paceline(folder.path(), &["config", "show"]).await;
    assert_eq!(code, Some(0), "{error}");
    check(folder.path(), &said, &Validator::new(schema("config.json")));
}

#[tokio::test]
async fn printed_scenario_names_no_schema_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, error) = paceline(folder.path(), &["scenarios", "FC-3"]).await;
    assert_eq!(code, Some(0), "{error}");
    assert!(!said.contains("#:schema"), "{said}");
    check(folder.path(), &said, &Validator::new(schema("scenario.json")));
}

#[tokio::test]
async fn recorded_frames_fit_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["simulate", "FC-3", "--policy", "flowcon", "--record", "frames.jsonl"];
    let (code, _, error) = paceline(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{error}");
    let validator = Validator::new(schema("frame.json"));
    let text = fs::read_to_string(folder.path().join("frames.jsonl")).unwrap();
    assert!(text.lines().count() > 10, "{text}");
    for line in text.lines() {
        validator.check(&serde_json::from_str(line).unwrap()).unwrap();
    }
}
