//! What the sidecar's container may do, and what it costs.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use paceline_inject::{Action, Options, transform};

const FILES: &str = "annotations: {paceline.dev/log: /logs/a}";

/// The lines of the sidecar's container in a pod with these annotations, pod fields and container
/// fields.
fn sidecar(annotations: &str, pod: &str, container: &str) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {{paceline.dev/enable: \"true\"}}\n  {annotations}\nspec:\n  {pod}\n  containers:\n  - name: a\n    command: [a]\n    volumeMounts: [{{name: v, mountPath: /logs}}]\n    {container}\n"
    );
    let injected = transform(&text, Action::Inject, &Options::default()).unwrap().text;
    let (_, rest) = injected.split_once("initContainers:\n").unwrap();
    rest.split("  volumes:").next().unwrap().to_owned()
}

#[test]
fn sidecar_fits_the_restricted_standard() {
    for annotations in ["", FILES] {
        let sidecar = sidecar(annotations, "", "");
        for wanted in [
            "allowPrivilegeEscalation: false",
            "drop: [ALL]",
            "readOnlyRootFilesystem: true",
            "runAsNonRoot: true",
            "type: RuntimeDefault",
        ] {
            assert!(sidecar.contains(wanted), "{wanted}: {sidecar}");
        }
    }
    // The job's volume is not written.
    let beside = sidecar(FILES, "", "");
    assert!(beside.contains("mountPath: /logs\n          readOnly: true"), "{beside}");
    assert!(beside.contains("restartPolicy: Always"), "{beside}");
}

#[test]
fn sidecar_is_never_root_and_reads_as_the_jobs_user() {
    let root = "securityContext: {runAsUser: 0}";
    let user = "securityContext: {runAsUser: 1000, runAsGroup: 1001}";
    assert!(sidecar("", root, "").contains("runAsUser: 65532"));
    assert!(!sidecar("", "", root).contains("runAsUser"));
    assert!(sidecar(FILES, "", root).contains("runAsUser: 65532"));
    let own = sidecar(FILES, root, user);
    assert!(own.contains("runAsUser: 1000") && own.contains("runAsGroup: 1001"), "{own}");
    // The pod's user is inherited.
    assert!(!sidecar(FILES, user, "").contains("runAsUser"));
}

#[test]
fn pod_stays_in_its_class_of_service() {
    let equal = "requests:\n          cpu: 100m\n          memory: 64Mi\n        limits:\n          cpu: 100m\n          memory: 64Mi";
    let beside = "requests:\n          cpu: 10m\n          memory: 16Mi\n        limits:\n          cpu: 250m";
    let guaranteed = "resources: {limits: {cpu: 1, memory: 1Gi}}";
    let burstable = "resources: {requests: {cpu: 1}}";
    for (annotations, container, wanted) in [
        ("", guaranteed, equal),
        ("", burstable, equal),
        (FILES, guaranteed, equal),
        (FILES, burstable, beside),
    ] {
        let sidecar = sidecar(annotations, "", container);
        assert!(sidecar.contains(wanted), "{container}: {sidecar}");
    }
    for (pod, container) in [
        ("", ""),
        ("", "resources: {limits: {nvidia.com/gpu: 1}}"),
        ("resources: {limits: {cpu: 1}}", guaranteed),
    ] {
        assert!(!sidecar(FILES, pod, container).contains("resources:"), "{pod} {container}");
    }
}
