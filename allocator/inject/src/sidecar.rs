//! The sidecar's container, in a form that every pod admits.

use crate::cursor::Cursor;
use crate::keys::{FOLDER, SIDECAR};
use crate::pod::Pod;
use crate::problem::Problem;
use crate::value::{Value, flag, map, text, texts};

/// The user of the sidecar's image.
const USER: &str = "65532";

/// What the sidecar may use.
#[derive(Clone, Copy, Debug)]
struct Resources {
    requests: (&'static str, &'static str),
    limits: (&'static str, &'static str),
}

/// Where requests must equal limits, and where they add nothing: before the job starts.
const EQUAL: Resources = Resources { requests: ("100m", "64Mi"), limits: ("100m", "64Mi") };
/// Beside the job.
const BESIDE: Resources = Resources { requests: ("10m", "16Mi"), limits: ("250m", "64Mi") };

/// The resources that leave the pod in its class: a guaranteed pod stays guaranteed, and one
/// without any resources stays so.
pub(crate) fn resources(pod: &Pod<'_>, beside: bool) -> Result<Option<Value>, Problem> {
    // Those of the whole pod are enough.
    if pod.spec.map("resources")?.is_some() {
        return Ok(None);
    }
    let mut containers = pod.spec.list("containers")?;
    containers.extend(pod.spec.list("initContainers")?);
    let (mut some, mut limited) = (false, true);
    for container in containers {
        let resources = container.map("resources")?;
        let has = |kind: &str, name: &str| -> Result<bool, Problem> {
            let amounts =
                resources.as_ref().map(|resources| resources.map(kind)).transpose()?.flatten();
            amounts.map_or(Ok(false), |amounts| Ok(amounts.scalar(name)?.is_some()))
        };
        for name in ["cpu", "memory"] {
            let limit = has("limits", name)?;
            some |= limit || has("requests", name)?;
            limited &= limit;
        }
    }
    let amounts = |(cpu, memory)| map([("cpu", text(cpu)), ("memory", text(memory))]);
    let Resources { requests, limits } = if beside && !limited { BESIDE } else { EQUAL };
    Ok(some.then(|| map([("requests", amounts(requests)), ("limits", amounts(limits))])))
}

/// The security context of the sidecar's container, which fulfils the restricted Pod Security
/// Standard. It reads the job's files as the user of `job`, if that is not root.
pub(crate) fn security_context(pod: &Pod<'_>, job: Option<&Cursor<'_>>) -> Result<Value, Problem> {
    let mut entries = vec![
        ("allowPrivilegeEscalation".to_owned(), flag(false)),
        ("capabilities".to_owned(), map([("drop", texts(&["ALL"]))])),
        ("readOnlyRootFilesystem".to_owned(), flag(true)),
        ("runAsNonRoot".to_owned(), flag(true)),
    ];
    let ids = |place: &Cursor<'_>| -> Result<(Option<String>, Option<String>), Problem> {
        let Some(context) = place.map("securityContext")? else { return Ok((None, None)) };
        let id = |key| Ok(context.scalar(key)?.filter(|id| is_id(id)).map(str::to_owned));
        Ok((id("runAsUser")?, id("runAsGroup")?))
    };
    let (user, group) = match job {
        Some(job) => ids(job)?,
        None => (None, None),
    };
    let (pods_user, _) = ids(&pod.spec)?;
    match (user.as_deref(), pods_user.as_deref()) {
        (Some("0"), _) | (None, Some("0")) => {
            entries.push(("runAsUser".to_owned(), Value::Plain(USER.to_owned())));
            entries.push(("runAsGroup".to_owned(), Value::Plain(USER.to_owned())));
        }
        (Some(user), _) => {
            entries.push(("runAsUser".to_owned(), Value::Plain(user.to_owned())));
            let group = group.map(|group| ("runAsGroup".to_owned(), Value::Plain(group)));
            entries.extend(group);
        }
        // The pod's user, or that of the image.
        (None, _) => {}
    }
    entries.push(("seccompProfile".to_owned(), map([("type", text("RuntimeDefault"))])));
    Ok(Value::Map(entries))
}

fn is_id(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

/// The volume of the sidecar.
pub(crate) fn volume(limit: &str) -> Value {
    map([("name", text(SIDECAR)), ("emptyDir", map([("sizeLimit", text(limit))]))])
}

/// The mount of that volume.
pub(crate) fn mount(read_only: bool) -> Value {
    let mut entries =
        vec![("name".to_owned(), text(SIDECAR)), ("mountPath".to_owned(), text(FOLDER))];
    entries.extend(read_only.then(|| ("readOnly".to_owned(), flag(true))));
    Value::Map(entries)
}

/// Refuses a pod that the sidecar cannot run in.
pub(crate) fn check(pod: &Pod<'_>, job: &Cursor<'_>) -> Result<(), Problem> {
    if let Some(os) = pod.spec.map("os")?
        && os.scalar("name")? == Some("windows")
    {
        let cause = "the pod is for Windows";
        return Err(Problem::new(
            os.field_of("name"),
            cause,
            "the sidecar runs under Linux: remove the label",
        ));
    }
    for mount in job.list("volumeMounts")? {
        let path = mount.scalar("mountPath")?.unwrap_or_default().trim_end_matches('/');
        if path == FOLDER || path.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/')) {
            let cause = format!(
                "the container mounts a volume at {path}, where the sidecar's has its place"
            );
            return Err(Problem::new(mount.field_of("mountPath"), cause, "mount it elsewhere"));
        }
    }
    for volume in pod.spec.list("volumes")? {
        if crate::pod::name(&volume) == SIDECAR {
            let cause = format!("a volume is called {SIDECAR} already");
            return Err(Problem::new(volume.field, cause, "give it another name"));
        }
    }
    Ok(())
}
