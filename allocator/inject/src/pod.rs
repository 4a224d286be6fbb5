//! One pod template, and what is asked of it.

use crate::cursor::{Cursor, MAX_SHOWN};
use crate::keys::{CONTAINER, ENABLE, INJECTED, OLD_ENABLE, PREFIX, SIDECAR};
use crate::problem::Problem;

/// A pod, or the template of pods.
#[derive(Debug)]
pub(crate) struct Pod<'a> {
    pub(crate) metadata: Cursor<'a>,
    pub(crate) spec: Cursor<'a>,
}

impl<'a> Pod<'a> {
    /// The pod at this place; `None` where it has no metadata or no specification.
    pub(crate) fn at(place: &Cursor<'a>) -> Result<Option<Self>, Problem> {
        let (metadata, spec) = (place.map("metadata")?, place.map("spec")?);
        Ok(metadata.zip(spec).map(|(metadata, spec)| Self { metadata, spec }))
    }

    /// The containers of users.
    pub(crate) fn containers(&self) -> Result<Vec<Cursor<'a>>, Problem> {
        let mut containers = self.spec.list("containers")?;
        containers.retain(|container| name(container) != SIDECAR);
        Ok(containers)
    }

    /// The container of the job: the only one, or the one that the annotation names.
    pub(crate) fn job(&self) -> Result<Cursor<'a>, Problem> {
        let mut containers = self.containers()?;
        let field = self.spec.field_of("containers");
        if let Some(annotations) = self.metadata.map("annotations")?
            && let Some(wanted) = annotations.text(CONTAINER)?
        {
            let found = containers.iter().position(|container| name(container) == wanted);
            return found.map(|at| containers.swap_remove(at)).ok_or_else(|| {
                let cause = format!("no container is called {wanted:?}");
                Problem::new(annotations.field_of(CONTAINER), cause, advice(&containers))
            });
        }
        match containers.as_slice() {
            [_] => Ok(containers.swap_remove(0)),
            [] => Err(Problem::new(field, "there is no container", "add the job's container")),
            several => {
                let cause = format!("there are {} containers", several.len());
                let advice =
                    format!("name the job's with the annotation {CONTAINER}: {}", advice(several));
                Err(Problem::new(field, cause, advice))
            }
        }
    }

    /// Whether a sidecar is there that was not injected.
    pub(crate) fn has_own_sidecar(&self) -> Result<bool, Problem> {
        let mut all = self.spec.list("containers")?;
        all.extend(self.spec.list("initContainers")?);
        for container in all {
            if name(&container) == SIDECAR || runs_sidecar(&container)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the metadata opts in. As for the allocator, the pod's own label overrides the one of containers.
pub(crate) fn opts_in(metadata: &Cursor<'_>) -> Result<bool, Problem> {
    let Some(labels) = metadata.map("labels")? else { return Ok(false) };
    let key = if labels.get(ENABLE)?.is_some() { ENABLE } else { OLD_ENABLE };
    if labels.scalar(key)? != Some("true") {
        return Ok(false);
    }
    labels.text(key).map(|_| true)
}

/// The value of the label if it is neither true nor false.
pub(crate) fn other_value(metadata: &Cursor<'_>) -> Option<String> {
    let labels = metadata.map("labels").ok().flatten()?;
    let value = |key| labels.scalar(key).ok().flatten();
    let given = value(ENABLE).or_else(|| value(OLD_ENABLE))?;
    let is_other = !["true", "false"].contains(&given);
    is_other.then(|| given.chars().take(MAX_SHOWN).collect())
}

/// Whether a pod that does not opt in seems meant to: it has our annotations, or the label is that of its
/// workload, which `root` is. A label with another value is an answer.
pub(crate) fn seems_meant(metadata: &Cursor<'_>, root: &Cursor<'_>) -> bool {
    let has = |key: &str, is: fn(&str) -> bool| {
        let map = metadata.map(key).ok().flatten();
        map.iter().flat_map(Cursor::values).any(|(key, _)| is(key))
    };
    if has("labels", |key| [ENABLE, OLD_ENABLE].contains(&key)) {
        return false;
    }
    has("annotations", |key| key.starts_with(PREFIX)) || is_opted_in_above(root)
}

/// Whether the workload has the label that its pods need.
pub(crate) fn is_opted_in_above(root: &Cursor<'_>) -> bool {
    let above = root.map("metadata").ok().flatten();
    above.is_some_and(|above| opts_in(&above).unwrap_or(false))
}

/// The mark of an earlier injection.
pub(crate) fn mark<'a>(metadata: &Cursor<'a>) -> Result<Option<&'a str>, Problem> {
    match metadata.map("annotations")? {
        Some(annotations) => annotations.text(INJECTED),
        None => Ok(None),
    }
}

/// The name of a container, volume or mount.
pub(crate) fn name<'a>(item: &Cursor<'a>) -> &'a str {
    item.scalar("name").ok().flatten().unwrap_or_default()
}

fn advice(containers: &[Cursor<'_>]) -> String {
    let names: Vec<_> = containers.iter().map(|one| format!("{:?}", name(one))).collect();
    match names.as_slice() {
        [] => "add the job's container".to_owned(),
        names => names.join(" or "),
    }
}

/// Whether a container's command is the sidecar's program.
fn runs_sidecar(container: &Cursor<'_>) -> Result<bool, Problem> {
    let command = container.list("command")?;
    let program = command.first().and_then(|first| first.tree.scalar(first.id));
    Ok(program.is_some_and(|program| program.rsplit('/').next() == Some(SIDECAR)))
}
