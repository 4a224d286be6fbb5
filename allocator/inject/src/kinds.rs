//! Where the pods of each kind are described.

use crate::cursor::Cursor;
use crate::problem::Problem;

/// How the pods of an object are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// By pod templates at these fields; `*` stands for each item or value.
    Templates(&'static str),
    /// By a command and patches of templates that a runtime has.
    TrainJob,
    /// By the objects in a list.
    Objects,
}

/// The groups, kinds and fields. A group that ends with `/` has any version.
const KINDS: &[(&str, &[&str], Shape)] = &[
    ("v1", &["Pod"], Shape::Templates("")),
    ("v1", &["ReplicationController"], Shape::Templates("spec.template")),
    ("v1", &["PodTemplate"], Shape::Templates("template")),
    ("batch/", &["Job"], Shape::Templates("spec.template")),
    ("batch/", &["CronJob"], Shape::Templates("spec.jobTemplate.spec.template")),
    (
        "apps/",
        &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"],
        Shape::Templates("spec.template"),
    ),
    (
        "jobset.x-k8s.io/",
        &["JobSet"],
        Shape::Templates("spec.replicatedJobs.*.template.spec.template"),
    ),
    (
        "trainer.kubeflow.org/",
        &["TrainingRuntime", "ClusterTrainingRuntime"],
        Shape::Templates("spec.template.spec.replicatedJobs.*.template.spec.template"),
    ),
    ("trainer.kubeflow.org/", &["TrainJob"], Shape::TrainJob),
    ("kubeflow.org/", &["PyTorchJob"], Shape::Templates("spec.pytorchReplicaSpecs.*.template")),
    ("kubeflow.org/", &["TFJob"], Shape::Templates("spec.tfReplicaSpecs.*.template")),
    ("kubeflow.org/", &["XGBoostJob"], Shape::Templates("spec.xgbReplicaSpecs.*.template")),
    ("kubeflow.org/", &["MPIJob"], Shape::Templates("spec.mpiReplicaSpecs.*.template")),
    ("kubeflow.org/", &["JAXJob"], Shape::Templates("spec.jaxReplicaSpecs.*.template")),
    ("kubeflow.org/", &["PaddleJob"], Shape::Templates("spec.paddleReplicaSpecs.*.template")),
    ("v1", &["List"], Shape::Objects),
    ("config.kubernetes.io/", &["ResourceList"], Shape::Objects),
];

/// How the pods of this object are described; `None` for an object without pods.
pub(crate) fn shape(api_version: &str, kind: &str) -> Option<Shape> {
    let fits = |group: &str| match group.strip_suffix('/') {
        Some(group) => api_version.split_once('/').is_some_and(|(own, _)| own == group),
        None => api_version == group,
    };
    let mut kinds = KINDS.iter();
    kinds.find(|(group, kinds, _)| fits(group) && kinds.contains(&kind)).map(|(.., shape)| *shape)
}

/// The pod templates at `fields` of an object.
pub(crate) fn templates<'a>(object: &Cursor<'a>, fields: &str) -> Result<Vec<Cursor<'a>>, Problem> {
    let mut found = vec![object.clone()];
    for step in fields.split('.').filter(|step| !step.is_empty()) {
        let mut next = Vec::new();
        for place in found {
            if step == "*" {
                next.extend(place.values().into_iter().map(|(_, value)| value));
                next.extend(place.items());
            } else {
                next.extend(place.get(step)?);
            }
        }
        found = next;
    }
    Ok(found)
}
