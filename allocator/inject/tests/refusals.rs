//! What is refused, and in which words.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use paceline_inject::{Action, Error, MAX_BYTES, MAX_NODES, Options, ReadError, transform};

/// A pod with these lines of metadata and of its specification.
fn pod(metadata: &str, spec: &str) -> String {
    let indented =
        |lines: &str| lines.lines().flat_map(|line| ["  ", line, "\n"]).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\n  labels:\n    paceline.dev/enable: \"true\"\n{}spec:\n{}",
        indented(metadata),
        indented(spec)
    )
}

fn annotated(annotation: &str) -> String {
    pod(&format!("annotations:\n  {annotation}"), "containers:\n- name: a\n  command: [a]")
}

fn refused(text: &str) -> String {
    transform(text, Action::Inject, &Options::default()).unwrap_err().to_string()
}

fn injected(text: &str) -> String {
    transform(text, Action::Inject, &Options::default()).unwrap().text
}

#[test]
fn container_without_command_is_named_with_what_to_add() {
    for spec in
        ["containers:\n- name: job\n  image: python", "containers: [{name: job, command: []}]"]
    {
        assert_eq!(
            refused(&pod("", spec)),
            "cannot inject document 1, Pod \"train\", spec.containers[0].command: container \"job\" has no \
             command, and its image's is not known here; add the command that its image has as ENTRYPOINT \
             (docker image inspect shows it), for example command: [python, train.py]"
        );
    }
}

#[test]
fn several_containers_need_a_name_and_each_is_named() {
    let spec = "containers:\n- name: a\n  command: [a]\n- name: b\n  command: [b]";
    assert_eq!(
        refused(&pod("", spec)),
        "cannot inject document 1, Pod \"train\", spec.containers: there are 2 containers; name the job's \
         with the annotation paceline.dev/container: \"a\" or \"b\""
    );
    let named = |name: &str| pod(&format!("annotations:\n  paceline.dev/container: {name}"), spec);
    assert_eq!(
        refused(&named("c")),
        "cannot inject document 1, Pod \"train\", metadata.annotations[\"paceline.dev/container\"]: no \
         container is called \"c\"; \"a\" or \"b\""
    );
    assert!(injected(&named("b")).contains("\"--\", b]"));
}

#[test]
fn invalid_annotation_is_named_with_its_value_and_an_example() {
    for (annotation, reason) in [
        (
            "paceline.dev/acceptable: \"low\"",
            "invalid value \"low\"; expected a finite number, for example \"0.3\"",
        ),
        (
            "paceline.dev/acceptable: 0.3",
            "0.3 is not a string for Kubernetes; write \"0.3\" in quotes",
        ),
        (
            "paceline.dev/direction: up",
            "invalid value \"up\"; expected minimize or maximize, for example \"minimize\"",
        ),
        (
            "paceline.dev/log: train.log",
            "invalid value \"train.log\"; expected absolute paths, separated by commas, for example \"/logs/train.log\"",
        ),
        (
            "paceline.dev/endpoint: \"0\"",
            "invalid value \"0\"; expected a port or unix:/path, for example \"7223\"",
        ),
    ] {
        let error = refused(&annotated(annotation));
        assert!(
            error.ends_with(reason) && error.contains("annotations[\"paceline.dev/"),
            "{error}"
        );
    }
    let targets = "paceline.dev/acceptable: \"1\"\n  paceline.dev/objective: \"2\"";
    assert!(
        refused(&annotated(targets))
            .contains("the objective 2 is reached before the acceptable loss 1")
    );
}

#[test]
fn file_on_no_volume_is_refused_with_its_container() {
    assert_eq!(
        refused(&annotated("paceline.dev/log: /logs/train.log")),
        "cannot inject document 1, Pod \"train\", metadata.annotations[\"paceline.dev/log\"]: container \
         \"a\" mounts no volume that holds /logs/train.log; mount a volume there that both can use, for \
         example an emptyDir at /logs"
    );
    let expression = "containers:\n- name: a\n  volumeMounts:\n  - {name: v, mountPath: /logs, subPathExpr: $(A)}";
    let error = refused(&pod("annotations:\n  paceline.dev/log: /logs/a", expression));
    assert!(
        error.contains("spec.containers[0].volumeMounts[0].subPathExpr: its variables"),
        "{error}"
    );
    // A name that only begins alike is another folder.
    let other = "containers:\n- name: a\n  volumeMounts:\n  - {name: v, mountPath: /log}";
    assert!(
        refused(&pod("annotations:\n  paceline.dev/log: /logs/a", other))
            .contains("mounts no volume")
    );
}

#[test]
fn label_that_kubernetes_would_refuse_is_refused() {
    let text = pod("", "containers: [{name: a, command: [a]}]").replace("\"true\"", "true");
    assert!(
        refused(&text).contains("true is not a string for Kubernetes; write \"true\" in quotes")
    );
    for value in ["\"false\"", "\"yes\"", "yes", "\"True\""] {
        let other = text.replace("enable: true", &format!("enable: {value}"));
        assert_eq!(injected(&other), other, "{value}");
    }
}

#[test]
fn label_of_pods_overrides_that_of_containers() {
    let text = pod("", "containers: [{name: a, command: [a]}]");
    let with = |own: &str, old: &str| {
        let labels = format!("paceline.enable: \"{old}\"\n    paceline.dev/enable: \"{own}\"");
        text.replace("paceline.dev/enable: \"true\"", &labels)
    };
    let left = with("false", "true");
    assert_eq!(injected(&left), left);
    assert!(injected(&with("true", "false")).contains("paceline-sidecar"));
}

#[test]
fn volume_in_the_sidecars_place_is_refused() {
    let mount = "containers:\n- name: a\n  command: [a]\n  volumeMounts:\n  - {name: v, mountPath: /paceline/}";
    assert!(
        refused(&pod("", mount))
            .contains("volumeMounts[0].mountPath: the container mounts a volume at /paceline")
    );
    let volume = "containers: [{name: a, command: [a]}]\nvolumes: [{name: paceline-sidecar}]";
    assert!(
        refused(&pod("", volume))
            .contains("spec.volumes[0]: a volume is called paceline-sidecar already")
    );
}

#[test]
fn pod_for_windows_is_refused() {
    let spec = "os: {name: windows}\ncontainers: [{name: a, command: [a]}]";
    assert!(refused(&pod("", spec)).contains("spec.os.name: the pod is for Windows"));
}

#[test]
fn part_that_an_anchor_shares_is_refused_and_others_are_read() {
    let shared = "containers:\n- &one\n  name: a\n  command: [a]\ninitContainers:\n- *one";
    assert!(refused(&pod("", shared)).contains("shared by a YAML anchor, alias or merge key"));
    let merged = "x: &base {command: [a]}\ncontainers:\n- <<: *base\n  name: a";
    assert!(refused(&pod("", merged)).contains("containers[0].command: it is shared"));
    // What is only read may be shared.
    let labels = "apiVersion: v1\nkind: Pod\nx: &l {paceline.dev/enable: \"true\"}\nmetadata: {name: a, labels: *l}\nspec: {containers: [{name: a, command: [a]}]}\n";
    assert!(injected(labels).contains("\"exec\""));
}

#[test]
fn key_that_stands_twice_is_refused() {
    let spec = "containers: [{name: a, command: [a]}]\nvolumes: []\nvolumes: []";
    assert!(
        refused(&pod("", spec))
            .contains("spec.volumes: it stands here twice; remove one of the two")
    );
}

#[test]
fn every_refused_pod_is_named_and_nothing_is_returned() {
    let bad = pod("", "containers: [{name: a}]");
    let good = pod("", "containers: [{name: a, command: [a]}]");
    let error = refused(&format!("{good}---\n{bad}---\n{bad}"));
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.first().unwrap().starts_with("cannot inject document 2, Pod"), "{error}");
    assert!(lines.last().unwrap().starts_with("cannot inject document 3, Pod"), "{error}");
}

#[test]
fn text_that_is_not_yaml_is_refused_with_its_place() {
    let error = refused("a: 1\n---\nb: [1\n");
    assert!(error.starts_with("cannot read the manifests: document 2, line "), "{error}");
    assert!(error.ends_with("; correct the YAML there"), "{error}");
}

#[test]
fn layout_that_is_not_understood_is_refused_by_name() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: odd, labels: {paceline.dev/enable: \"true\"}}\nspec:\n  containers:\n  - ? name\n    : a\n    ? command\n    : - a\n";
    let error = refused(text);
    assert!(
        error.starts_with("cannot inject document 1, Pod \"odd\", its lines: their layout"),
        "{error}"
    );
}

#[test]
fn nested_aliases_cost_no_more_than_their_bytes() {
    let mut text = "a0: &a0 [x]\n".to_owned();
    for level in 1..=60 {
        let one = format!("*a{}", level - 1);
        let line = format!("a{level}: &a{level} [{}]\n", [one.as_str(); 10].join(", "));
        text += &line;
    }
    let job = pod("", "containers: [{name: a, command: [a]}]");
    let stream = format!("{text}---\n{job}");
    assert!(injected(&stream).starts_with(&text));
    // A mapping that merges itself ends, too.
    let circle = "apiVersion: v1\nkind: Pod\nmetadata: &m\n  name: a\n  <<: [*m, *m]\nspec: {}\n";
    assert_eq!(injected(circle), circle);
}

#[test]
fn bounds_of_size_depth_and_number_hold() {
    let read = |text: &str| transform(text, Action::Inject, &Options::default()).unwrap_err();
    assert_eq!(read(&" ".repeat(MAX_BYTES + 1)), Error::Read(ReadError::Long));
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(read(&deep(150)), Error::Read(ReadError::Deep { document: 1, line: 1 }));
    assert!(transform(&deep(100), Action::Inject, &Options::default()).is_ok());
    assert!(matches!(read(&"[".repeat(MAX_BYTES)), Error::Read(ReadError::Syntax { .. })));
    assert_eq!(read(&format!("[{}1]", "1,".repeat(MAX_NODES))), Error::Read(ReadError::Many));
}

#[test]
fn failed_function_answers_with_its_errors() {
    let text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, labels: {paceline.dev/enable: \"true\"}}\n  spec: {containers: [{name: a}]}\n";
    let error = transform(text, Action::Inject, &Options::default()).unwrap_err();
    let answer = paceline_inject::failed_function(text, &error).unwrap();
    assert!(answer.starts_with(text) && answer.contains("severity: error"), "{answer}");
    assert!(
        answer.contains("item 1, Pod") && answer.contains("items[0].spec.containers[0].command"),
        "{answer}"
    );
    let wrong = text.replace("items:", "functionConfig: {kind: Inject, spec: {imag: a}}\nitems:");
    let error = refused(&wrong);
    assert!(
        error
            .ends_with("functionConfig.spec.imag: unknown option; use image, pullPolicy or remove"),
        "{error}"
    );
    assert!(paceline_inject::failed_function("a: 1", &Error::Read(ReadError::Many)).is_none());
}

#[test]
fn train_job_that_cannot_be_patched_is_refused() {
    let job = |metadata: &str, spec: &str| {
        format!(
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: t, labels: {{paceline.dev/enable: \"true\"}}{metadata}}}\nspec: {{{spec}}}\n"
        )
    };
    for (metadata, spec, reason) in [
        ("", "a: 1", "spec.trainer: missing trainer"),
        ("", "trainer: {image: a}", "spec.trainer.command: the trainer has no command"),
        (
            "",
            "trainer: {command: [a]}, podTemplateOverrides: [{}]",
            "spec.podTemplateOverrides: these are of an older Trainer",
        ),
        (
            ", annotations: {paceline.dev/log: /a/b}",
            "trainer: {command: [a]}",
            "a TrainJob cannot add the sidecar's container",
        ),
    ] {
        let error = refused(&job(metadata, spec));
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn result_may_be_longer_than_the_bound_of_an_input() {
    let job = pod("", "containers: [{name: a, command: [a]}]");
    let filler = format!("---\nx: [{}1]\n", "1,".repeat(MAX_NODES - 60));
    let injected = injected(&(job + &filler));
    assert!(injected.ends_with(&filler));
    let again = transform(&injected, Action::Inject, &Options::default());
    assert_eq!(again.unwrap_err(), Error::Read(ReadError::Many));
}

#[test]
fn repeated_kind_or_version_of_an_opted_in_pod_is_refused() {
    let text = pod("", "containers: [{name: a, command: [a]}]");
    for (key, again) in [("kind", "kind: Pod\n"), ("apiVersion", "apiVersion: v1\n")] {
        let error = refused(&format!("{again}{text}"));
        assert!(
            error.ends_with(&format!("{key}: it stands here twice; remove one of the two")),
            "{error}"
        );
        let other = format!("{again}{text}").replace("\"true\"", "\"false\"");
        assert_eq!(injected(&other), other);
    }
}
