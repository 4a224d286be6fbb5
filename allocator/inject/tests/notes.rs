//! What is said of pods that are left as they are.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use paceline_inject::{Action, Options, transform};

const LEFT: &str = "it lacks the label paceline.dev/enable: \"true\", and is left as it is";

/// The notes on a text that stays as it is.
fn notes(text: &str, action: Action) -> Vec<String> {
    let outcome = transform(text, action, &Options::default()).unwrap();
    assert_eq!(outcome.text, text);
    assert!(outcome.notes.iter().all(|note| !note.is_change()));
    outcome.notes.iter().map(ToString::to_string).collect()
}

fn pod(metadata: &str) -> String {
    format!(
        "kind: Pod\napiVersion: v1\nmetadata: {{name: a, {metadata}}}\nspec:\n  containers:\n  - name: job\n    command: [a]\n"
    )
}

#[test]
fn pod_with_annotations_but_without_the_label_is_named() {
    for annotations in ["paceline.dev/enable: \"true\"", "paceline.dev/acceptable: \"0.3\""] {
        let text = pod(&format!("annotations: {{{annotations}}}"));
        let expected = format!("document 1, Pod \"a\": {LEFT}");
        assert_eq!(notes(&text, Action::Inject), [expected], "{annotations}");
        assert!(notes(&text, Action::Remove).is_empty());
    }
}

#[test]
fn template_whose_workload_alone_has_the_label_is_named() {
    let text = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  labels: {paceline.dev/enable: \"true\"}\n\
                spec:\n  template:\n    metadata: {labels: {app: a}}\n    spec:\n      containers:\n      \
                - name: job\n        command: [a]\n";
    let expected = format!("document 1, Job \"a\": spec.template: {LEFT}");
    assert_eq!(notes(text, Action::Inject), [expected]);
}

#[test]
fn pod_that_is_not_meant_is_not_named() {
    for metadata in [
        "labels: {app: a}",
        "annotations: {note: paceline.dev/enable}",
        "labels: {paceline.dev/enable: \"false\"}, annotations: {paceline.dev/job: a}",
    ] {
        assert!(notes(&pod(metadata), Action::Inject).is_empty(), "{metadata}");
    }
}
