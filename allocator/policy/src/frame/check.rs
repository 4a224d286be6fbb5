//! The rules for a frame's values. What a run can write passes them.

use std::collections::BTreeSet;

use super::{Frame, FrameError, Job, Node};

/// Checks the values of a frame. A missing one is allowed everywhere.
pub(super) fn check(frame: &Frame) -> Result<(), FrameError> {
    let mut seen = BTreeSet::new();
    if let Some(job) = frame.jobs.iter().find(|job| !seen.insert(&job.id)) {
        return Err(FrameError::Twice(job.id.to_string()));
    }
    differ(&frame.nodes)?;
    frame.nodes.iter().try_for_each(node)?;
    frame.jobs.iter().try_for_each(job)
}

/// Checks that no two nodes have one name.
pub(crate) fn differ(nodes: &[Node]) -> Result<(), FrameError> {
    let mut seen = BTreeSet::new();
    match nodes.iter().find(|node| !seen.insert(&node.name)) {
        Some(node) => Err(FrameError::NodeTwice(node.name.to_string())),
        None => Ok(()),
    }
}

/// What is allowed: the rule in words, and as a test.
type Rule = (&'static str, fn(f64) -> bool);

const ABOVE_0: Rule = ("a number above 0", |x| x > 0.0);
const FROM_0: Rule = ("a number of at least 0", |x| x >= 0.0);
const FRACTION: Rule = ("a number from 0 to 1", |x| (0.0..=1.0).contains(&x));
const SHARE: Rule = ("a number above 0 and at most 1", |x| x > 0.0 && x <= 1.0);

fn node(node: &Node) -> Result<(), FrameError> {
    let owner = || format!("node {:?}", node.name.as_str());
    require(&[("cpus", node.cpus, ABOVE_0), ("memory", node.memory, FROM_0)], owner)
}

fn job(job: &Job) -> Result<(), FrameError> {
    let owner = || format!("job {:?}", job.id.as_str());
    let limit = &job.limit;
    require(
        &[
            ("limit.cpu", limit.cpu, SHARE),
            ("limit.applied", limit.applied, SHARE),
            ("limit.min", limit.min, SHARE),
            ("limit.max", limit.max, SHARE),
            ("throttled", job.throttled, FRACTION),
            ("weight", job.weight, ABOVE_0),
            ("cpu_seconds", job.cpu_seconds, FROM_0),
        ],
        owner,
    )
}

/// Checks values by their rules; the error names the first that breaks one.
fn require(
    values: &[(&'static str, Option<f64>, Rule)],
    owner: impl Fn() -> String,
) -> Result<(), FrameError> {
    for (field, value, (expected, holds)) in values {
        if let Some(value) = value.filter(|value| !holds(*value)) {
            return Err(FrameError::Value { field, value, owner: owner(), expected });
        }
    }
    Ok(())
}
