//! Kubeflow's `TrainJob`: it has no pod template, but a command and patches of its runtime's
//! templates.
//!
//! A patch cannot add an init container, so the program comes from a volume that is the sidecar's
//! image.

use crate::Options;
use crate::cursor::Cursor;
use crate::edit::Edit;
use crate::keys::{CONTAINER, ENABLE, INJECTED, MANAGER, PREFIX};
use crate::mark::Insertion;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::sidecar;
use crate::value::{Value, map, text};
use crate::wrapped;

/// The job and the container of the trainer in the runtimes of Kubeflow.
const NODE: &str = "node";

/// The edits that wrap a training job.
pub(crate) fn edits(
    object: &Cursor<'_>,
    settings: &Settings,
    options: &Options,
) -> Result<Vec<Edit>, Problem> {
    let Some((metadata, spec)) = object.map("metadata")?.zip(object.map("spec")?) else {
        return Ok(vec![]);
    };
    let advice = "label the pod template of its TrainingRuntime instead, and inject that";
    if let Some(file) = settings.files.first() {
        let cause = "a TrainJob cannot add the sidecar's container";
        return Err(Problem::new(file.field.clone(), cause, advice));
    }
    if let Some(old) = spec.get("podTemplateOverrides")? {
        let cause = "these are of an older Trainer, without runtimePatches";
        return Err(Problem::new(old.field, cause, advice));
    }
    let Some(trainer) = spec.map("trainer")? else {
        let cause = "missing trainer: the manifest does not have the runtime's command";
        return Err(Problem::new(spec.field_of("trainer"), cause, advice));
    };
    let mut insertion = Insertion::default();
    insertion.edits.push(wrapped::command(&trainer, "the trainer", settings)?);
    let annotations = metadata.map("annotations")?;
    let container = match &annotations {
        Some(annotations) => annotations.text(CONTAINER)?.unwrap_or(NODE),
        None => NODE,
    };
    let mut copied = Vec::new();
    for (key, value) in annotations.iter().flat_map(Cursor::values) {
        if key.starts_with(PREFIX) && key != INJECTED {
            copied.push((key.to_owned(), text(value.as_text()?)));
        }
    }
    let mut labels = vec![("labels".to_owned(), map([(ENABLE, text("true"))]))];
    if !copied.is_empty() {
        labels.push(("annotations".to_owned(), Value::Map(copied)));
    }
    let mounts = Value::List(vec![sidecar::mount(true)]);
    let pod = map([
        ("volumes", Value::List(vec![wrapped::image_volume(options)])),
        (
            "containers",
            Value::List(vec![map([("name", text(container)), ("volumeMounts", mounts)])]),
        ),
    ]);
    let template = map([("metadata", Value::Map(labels)), ("spec", pod)]);
    let job =
        map([("name", text(NODE)), ("template", map([("spec", map([("template", template)]))]))]);
    let jobs = map([("replicatedJobs", Value::List(vec![job]))]);
    let runtime = map([("template", map([("spec", jobs)]))]);
    let patch = map([("manager", text(MANAGER)), ("trainingRuntimeSpec", runtime)]);
    insertion.item(&spec, "runtimePatches", patch)?;
    insertion.mark("wrapped", &metadata)
}
