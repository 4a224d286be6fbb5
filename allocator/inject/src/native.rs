//! The native form: a sidecar in its own container follows the job's files.
//!
//! Kubernetes 1.29 and later start it before the job and end it after the job.

use crate::Options;
use crate::cursor::Cursor;
use crate::edit::Edit;
use crate::keys::{FOLDER, SIDECAR};
use crate::mark::Insertion;
use crate::pod::{Pod, name};
use crate::problem::Problem;
use crate::settings::{File, Settings, literal};
use crate::sidecar;
use crate::value::{Value, flag, map, text};

/// The most that the sidecar's state needs.
const STATE_SIZE: &str = "16Mi";

/// The edits that put a sidecar beside the job of a pod.
pub(crate) fn edits(
    pod: &Pod<'_>,
    job: &Cursor<'_>,
    settings: &Settings,
    options: &Options,
) -> Result<Vec<Edit>, Problem> {
    if let Some(field) = &settings.socket {
        let cause = "a sidecar in its own container has no socket in the job's";
        return Err(Problem::new(field.clone(), cause, "give a port"));
    }
    let mut args = Vec::new();
    let mut mounts: Vec<Value> = Vec::new();
    for file in &settings.files {
        let mount = mount_of(job, file)?;
        if !mounts.contains(&mount) {
            mounts.push(mount);
        }
        args.extend([format!("--{}", file.option), literal(&file.path)]);
    }
    args.extend(["--state".to_owned(), format!("{FOLDER}/state.json")]);
    args.extend(settings.options.iter().cloned());
    mounts.push(sidecar::mount(false));
    let log =
        map([("name", text("PACELINE_TERMINATION_LOG")), ("value", text("/dev/termination-log"))]);
    let mut container = vec![
        ("name".to_owned(), text(SIDECAR)),
        ("image".to_owned(), text(&options.image)),
        ("imagePullPolicy".to_owned(), text(options.pull_policy.as_str())),
        ("restartPolicy".to_owned(), text("Always")),
        ("args".to_owned(), Value::List(args.into_iter().map(Value::Text).collect())),
        ("env".to_owned(), Value::List(vec![log])),
    ];
    let resources = sidecar::resources(pod, true)?;
    container.extend(resources.map(|resources| ("resources".to_owned(), resources)));
    container.push(("securityContext".to_owned(), sidecar::security_context(pod, Some(job))?));
    container.push(("volumeMounts".to_owned(), Value::List(mounts)));
    let mut insertion = Insertion::default();
    insertion.item(&pod.spec, "initContainers", Value::Map(container))?;
    insertion.item(&pod.spec, "volumes", sidecar::volume(STATE_SIZE))?;
    insertion.mark("native", &pod.metadata)
}

/// The job's mount that holds a file, for the sidecar to read.
fn mount_of(job: &Cursor<'_>, file: &File) -> Result<Value, Problem> {
    let mut best: Option<(&str, Cursor<'_>)> = None;
    for mount in job.list("volumeMounts")? {
        let path = mount.text("mountPath")?.unwrap_or_default();
        let is_longer = best.as_ref().is_none_or(|(other, _)| other.len() < path.len());
        if covers(path, &file.path) && is_longer {
            best = Some((path, mount));
        }
    }
    let Some((path, mount)) = best else {
        let cause = format!("container {:?} mounts no volume that holds {}", name(job), file.path);
        let advice = format!(
            "mount a volume there that both can use, for example an emptyDir at {}",
            folder(&file.path)
        );
        return Err(Problem::new(file.field.clone(), cause, advice));
    };
    if mount.get("subPathExpr")?.is_some() {
        let cause = "its variables are those of the job's container";
        return Err(Problem::new(
            mount.field_of("subPathExpr"),
            cause,
            "use subPath, or a volume of its own",
        ));
    }
    let mut entries =
        vec![("name".to_owned(), text(name(&mount))), ("mountPath".to_owned(), text(path))];
    entries.extend(mount.text("subPath")?.map(|part| ("subPath".to_owned(), text(part))));
    entries.push(("readOnly".to_owned(), flag(true)));
    Ok(Value::Map(entries))
}

fn covers(mount: &str, path: &str) -> bool {
    let mount = mount.trim_end_matches('/');
    path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}
