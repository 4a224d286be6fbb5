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
    let expected = [format!("document 1, Job \"a\": spec.template: {LEFT}")];
    assert_eq!(notes(text, Action::Inject), expected);
    let without = text.replace("    metadata: {labels: {app: a}}\n", "");
    assert_eq!(notes(&without, Action::Inject), expected);
    assert!(notes(&without, Action::Remove).is_empty());
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

/// An object of this head whose pod template, as others have it, has these labels.
fn of_kind(head: &str, labels: &str) -> String {
    format!(
        "{head}\nmetadata: {{name: a}}\nspec:\n  groups:\n  - template:\n      metadata: {{labels: {{{labels}}}}}\n      \
         spec:\n        containers:\n        - name: job\n          command: [a]\n"
    )
}

#[test]
fn labelled_pod_of_an_unknown_kind_is_named_with_its_field() {
    const ON: &str = "paceline.dev/enable: \"true\"";
    let advice = "and it is left as it is; start its command by paceline-sidecar exec in its image";
    for (head, kind, what) in [
        ("apiVersion: ray.example/v1\nkind: Cluster", "Cluster", "Cluster of ray.example/v1"),
        ("apiVersion: batch.example/v1\nkind: Job", "Job", "Job of batch.example/v1"),
        ("kind: Cluster", "Cluster", "Cluster without an apiVersion"),
        ("apiVersion: v1", "", "an object without a kind"),
        // A known kind whose template stands elsewhere.
        ("apiVersion: batch/v1\nkind: Job", "Job", "Job of batch/v1"),
    ] {
        let place = format!("document 1, {kind} \"a\": spec.groups[0].template");
        let expected = format!("{place}: pods of {what} are not known, {advice}");
        for labels in [ON, "paceline.enable: \"true\"", "paceline.dev/enable: \"yes\""] {
            let text = of_kind(head, labels);
            assert_eq!(notes(&text, Action::Inject), [expected.as_str()], "{head}: {labels}");
            assert!(notes(&text, Action::Remove).is_empty());
        }
        for labels in ["app: a", "paceline.dev/enable: \"false\""] {
            assert!(notes(&of_kind(head, labels), Action::Inject).is_empty(), "{head}");
        }
    }
}

#[test]
fn labelled_pod_in_a_list_of_another_kind_is_named() {
    let pod = pod("labels: {paceline.dev/enable: \"true\"}");
    let item = pod.trim_end().replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: PodList\nitems:\n- {item}\n");
    let expected = "document 1, PodList \"\": items[0]: pods of PodList of v1 are not known, and it is left \
                    as it is; write a List of v1, or a document for each item";
    assert_eq!(notes(&list, Action::Inject), [expected]);
    let inner = list.replace("PodList", "List").trim_end().replace('\n', "\n  ");
    let outer = format!("apiVersion: v1\nkind: List\nitems:\n- {inner}\n");
    let [note] = &notes(&outer, Action::Inject)[..] else { panic!("one note") };
    assert!(note.starts_with("document 1, item 1, List \"\": items[0]: pods of List"), "{note}");
}

#[test]
fn selector_and_label_of_another_object_are_not_named() {
    for text in [
        "apiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {paceline.dev/enable: \"true\"}}\n\
         spec: {selector: {paceline.dev/enable: \"true\"}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {paceline.dev/enable: \"true\"}}\n",
    ] {
        assert!(notes(text, Action::Inject).is_empty(), "{text}");
    }
}

#[test]
fn label_that_is_neither_true_nor_false_is_named() {
    for (value, shown) in [("\"yes\"", "yes"), ("yes", "yes"), ("\"True\"", "True"), ("1", "1")] {
        let expected = format!(
            "document 1, Pod \"a\": its label paceline.dev/enable is {shown:?}, and it is left as it is; \
             write \"true\" in quotes to opt in"
        );
        let text = pod(&format!("labels: {{paceline.dev/enable: {value}}}"));
        assert_eq!(notes(&text, Action::Inject), [expected]);
        assert!(notes(&text, Action::Remove).is_empty());
    }
}
