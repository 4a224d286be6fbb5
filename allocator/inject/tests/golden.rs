//! Whole manifests, before and after. `PACELINE_BLESS=1` writes the files of `golden` again.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::{Path, PathBuf};

use paceline_inject::{Action, Options, Outcome, transform};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The inputs: their names and texts.
fn inputs() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<_> = files
        .filter(|path| !path.to_string_lossy().contains(".injected."))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into(), fs::read_to_string(path).unwrap())
        })
        .collect();
    inputs.sort();
    assert_eq!(inputs.len(), 9);
    inputs
}

fn done(text: &str, action: Action) -> Outcome {
    transform(text, action, &Options::default()).unwrap()
}

fn injected(text: &str) -> String {
    done(text, Action::Inject).text
}

#[test]
fn each_kind_and_form_is_injected_as_written_down() {
    for (name, text) in inputs() {
        let outcome = done(&text, Action::Inject);
        assert!(outcome.notes.iter().any(paceline_inject::Note::is_change), "{name}");
        let (stem, end) = name.rsplit_once('.').unwrap();
        let path = folder().join(format!("{stem}.injected.{end}"));
        if std::env::var_os("PACELINE_BLESS").is_some() {
            fs::write(&path, &outcome.text).unwrap();
        }
        assert_eq!(outcome.text, fs::read_to_string(&path).unwrap_or_default(), "{name}");
    }
}

#[test]
fn injecting_twice_equals_injecting_once() {
    for (name, text) in inputs() {
        // The results of a function are of each call.
        let once = injected(&text);
        let items = |text: &str| text.split("\nresults:").next().unwrap().to_owned();
        assert_eq!(items(&injected(&once)), items(&once), "{name}");
    }
}

#[test]
fn removing_gives_back_every_byte() {
    for (name, text) in inputs() {
        let removed = if name == "function.yaml" {
            let asked = injected(&text).replace("pullPolicy: Always", "remove: \"true\"");
            let removed =
                done(&asked, Action::Inject).text.replace("remove: \"true\"", "pullPolicy: Always");
            removed.split("results:").next().unwrap().to_owned()
        } else {
            done(&injected(&text), Action::Remove).text
        };
        assert_eq!(removed, text, "{name}");
    }
}

#[test]
fn manifest_that_was_not_injected_is_not_changed_by_remove() {
    for (name, text) in inputs().into_iter().filter(|(name, _)| name != "function.yaml") {
        let outcome = done(&text, Action::Remove);
        assert_eq!((outcome.text, outcome.notes.len()), (text, 0), "{name}");
    }
}

#[test]
fn other_options_replace_those_of_before() {
    let (_, text) = inputs().into_iter().find(|(name, _)| name == "pod.yaml").unwrap();
    let options = Options { image: "registry.example/sidecar:2".to_owned(), ..Options::default() };
    let newer = transform(&injected(&text), Action::Inject, &options).unwrap().text;
    assert_eq!(newer, transform(&text, Action::Inject, &options).unwrap().text);
    assert!(newer.contains("registry.example/sidecar:2") && !newer.contains("paceline/sidecar:0"));
}
