//! Takes out what was injected.

use crate::cursor::Cursor;
use crate::edit::Edit;
use crate::keys::{INJECTED, MANAGER, PROGRAM, SIDECAR};
use crate::mark::Made;
use crate::pod::{self, Pod};
use crate::problem::Problem;

/// The edits that take the sidecar out of a pod.
pub(crate) fn from_pod(pod: &Pod<'_>, mark: &str) -> Result<Vec<Edit>, Problem> {
    let made = Made(mark);
    let mut edits = Vec::new();
    for container in pod.spec.list("containers")? {
        from_command(&container, &mut edits)?;
        named(&container, "volumeMounts", "name", made, &mut edits)?;
    }
    named(&pod.spec, "initContainers", "name", made, &mut edits)?;
    named(&pod.spec, "volumes", "name", made, &mut edits)?;
    unmark(&pod.metadata, made, &mut edits)?;
    Ok(joined(edits))
}

/// The edits that take the sidecar out of a training job.
pub(crate) fn from_train_job(object: &Cursor<'_>, mark: &str) -> Result<Vec<Edit>, Problem> {
    let made = Made(mark);
    let mut edits = Vec::new();
    let Some((metadata, spec)) = object.map("metadata")?.zip(object.map("spec")?) else {
        return Ok(edits);
    };
    if let Some(trainer) = spec.map("trainer")? {
        from_command(&trainer, &mut edits)?;
    }
    named(&spec, "runtimePatches", "manager", made, &mut edits)?;
    unmark(&metadata, made, &mut edits)?;
    Ok(edits)
}

/// The same edits, with one for all entries of a mapping.
fn joined(edits: Vec<Edit>) -> Vec<Edit> {
    let mut joined: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        if let Edit::NoEntries { map, keys } = &edit
            && let Some(Edit::NoEntries { keys: all, .. }) = joined
                .iter_mut()
                .find(|other| matches!(other, Edit::NoEntries { map: same, .. } if same == map))
        {
            all.extend(keys);
            continue;
        }
        joined.push(edit);
    }
    joined
}

/// Removes the sidecar, its options and the `--` from a command.
fn from_command(container: &Cursor<'_>, edits: &mut Vec<Edit>) -> Result<(), Problem> {
    let items = container.list("command")?;
    let word = |item: &Cursor<'_>| item.tree.scalar(item.id) == Some("--");
    let first = items.first().and_then(|first| first.tree.scalar(first.id));
    let Some(end) = items.iter().position(word).filter(|_| first == Some(PROGRAM)) else {
        return Ok(());
    };
    if let Some(list) = container.get("command")? {
        let items = items.iter().take(end + 1).map(|item| item.id).collect();
        edits.push(Edit::NoItems { list: list.own()?, items });
    }
    Ok(())
}

/// Removes the items that are called ours from the list at `key`.
fn named(
    parent: &Cursor<'_>,
    key: &'static str,
    by: &str,
    made: Made<'_>,
    edits: &mut Vec<Edit>,
) -> Result<(), Problem> {
    let all = parent.list(key)?;
    let is_ours = |item: &&Cursor<'_>| match by {
        "name" => pod::name(item) == SIDECAR,
        by => item.scalar(by).ok().flatten() == Some(MANAGER),
    };
    let items: Vec<_> = all.iter().filter(is_ours).map(|item| item.id).collect();
    let Some(list) = parent.get(key)?.filter(|_| !items.is_empty()) else { return Ok(()) };
    let undo = if items.len() == all.len() { made.undo(parent, key)? } else { None };
    edits.push(match undo {
        Some(undo) => undo,
        None => Edit::NoItems { list: list.own()?, items },
    });
    Ok(())
}

fn unmark(metadata: &Cursor<'_>, made: Made<'_>, edits: &mut Vec<Edit>) -> Result<(), Problem> {
    let Some(annotations) = metadata.map("annotations")? else { return Ok(()) };
    let is_last = annotations.values().len() == 1;
    let undo = if is_last { made.undo(metadata, "annotations")? } else { None };
    edits.push(match undo {
        Some(undo) => undo,
        None => Edit::NoEntries { map: annotations.own()?, keys: vec![INJECTED] },
    });
    Ok(())
}
