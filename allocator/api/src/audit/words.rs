//! The entries as sentences, and the job or container that they are about.

use std::fmt;

use super::Entry;
use super::entry::Since;

impl Entry {
    /// The job that the entry is about.
    pub fn job(&self) -> Option<&str> {
        match self {
            Self::Appeared { job, .. }
            | Self::Gone { job, .. }
            | Self::Decided { job, .. }
            | Self::Placed { job, .. }
            | Self::Withdrawn { job, .. }
            | Self::Waits { job, .. }
            | Self::Limited { job, .. }
            | Self::Failed { job, .. }
            | Self::Drifted { job, .. }
            | Self::Moved { job, .. }
            | Self::Stayed { job, .. }
            | Self::Revived { job, .. }
            | Self::Terminated { job, .. }
            | Self::LeftOut { job, .. } => Some(job),
            Self::Began { .. }
            | Self::Ended { .. }
            | Self::Restored { .. }
            | Self::Ordered { .. }
            | Self::Reloaded { .. }
            | Self::Missed { .. }
            | Self::HeadKept { .. }
            | Self::Torn { .. } => None,
        }
    }

    /// The container that the entry names.
    pub fn container(&self) -> Option<&str> {
        match self {
            Self::Appeared { container, .. }
            | Self::Gone { container, .. }
            | Self::Limited { container, .. }
            | Self::Failed { container, .. }
            | Self::Restored { container, .. }
            | Self::Drifted { container, .. }
            | Self::Moved { container, .. }
            | Self::Terminated { container, .. } => Some(container),
            Self::Stayed { container, .. } => container.as_deref(),
            Self::Began { .. }
            | Self::Ended { .. }
            | Self::Decided { .. }
            | Self::Placed { .. }
            | Self::Withdrawn { .. }
            | Self::Waits { .. }
            | Self::Revived { .. }
            | Self::Ordered { .. }
            | Self::Reloaded { .. }
            | Self::LeftOut { .. }
            | Self::Missed { .. }
            | Self::HeadKept { .. }
            | Self::Torn { .. } => None,
        }
    }

    /// Whether the entry is about the job or container `name`.
    pub fn is_about(&self, name: &str) -> bool {
        let ordered = if let Self::Ordered { command, .. } = self { command.name() } else { None };
        [self.job(), self.container(), ordered].contains(&Some(name))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { version, pid, policy, actuator, dry_run } => {
                let dry = if *dry_run { ", writing nothing" } else { "" };
                write!(f, "paceline {version} began as process {pid}: {policy} by {actuator}{dry}")
            }
            Self::Ended { left: 0 } => f.write_str("the run ended, every limit is restored"),
            Self::Ended { left } => write!(f, "the run ended, {left} limits are not restored"),
            Self::Appeared { job, container } => {
                write!(f, "{job} is managed, in container {}", short(container))
            }
            Self::Gone { job, container } => {
                write!(f, "{job} is gone, with container {}", short(container))
            }
            Self::Decided {
                number, job, class, score, chosen, why, ends_in, fair_ends_in, ..
            } => {
                write!(f, "decision {number}: {job} is given {:.1} % ({class}", chosen * 100.0)?;
                score.map_or(Ok(()), |score| write!(f, ", score {score:.4}"))?;
                write!(f, "): {why}")?;
                ends_in.map_or(Ok(()), |ends| write!(f, "; ends in about {ends:.0} s"))?;
                fair_ends_in
                    .map_or(Ok(()), |fair| write!(f, "; under equal sharing in {fair:.0} s"))
            }
            Self::Placed { task, node, why, .. } => write!(f, "{task} goes to {node}: {why}"),
            Self::Withdrawn { task, node, why, .. } => {
                write!(f, "{task} is taken back from {node}: {why}")
            }
            Self::Waits { job, why } => write!(f, "{job} waits: {why}"),
            Self::Limited { job, from, to, why, seconds, .. } => {
                let ms = seconds * 1000.0;
                write!(f, "{job} was limited from {from} to {to} in {ms:.1} ms: {why}")
            }
            Self::Failed { job, to, error, .. } => {
                write!(f, "{job} was not limited to {to}: {error}")
            }
            Self::Restored { container, how } => {
                write!(f, "limits of container {}: {how}", short(container))
            }
            Self::Drifted { job, written, found, response, .. } => {
                write!(f, "{job} has {found} where {written} was written: {response}")
            }
            Self::Ordered { who, command, outcome, done } => {
                let came = if *done { "done" } else { "refused" };
                write!(f, "{who} ordered to {command}; {came}: {outcome}")
            }
            Self::Reloaded { changes } => {
                write!(f, "the configuration was read again: {}", changes.join("; "))
            }
            Self::Terminated { job, .. } => write!(f, "{job} is at its objective, and is ended"),
            Self::Moved { job, from, to, reason, seconds, .. } => {
                write!(f, "{job} was moved from {from} to {to}: {reason}")?;
                without_progress(f, *seconds)
            }
            Self::Stayed { job, from, to, reason, why, seconds, .. } => {
                write!(f, "{job} stays on {from}, and was to move to {to}: {reason}, but {why}")?;
                without_progress(f, *seconds)
            }
            Self::Revived { job, task, why } => {
                write!(f, "{job} is started again, its task {} has ended: {why}", short(task))
            }
            Self::LeftOut { job, count } => {
                write!(f, "{job} caused too many entries: {count} were left out here")
            }
            Self::Missed { count } => write!(f, "{count} entries could not be written here"),
            Self::HeadKept { since: Since::Began } => {
                f.write_str("the log's end is kept from here on")
            }
            Self::HeadKept { since: Since::NextFile } => {
                f.write_str("a new file of the log begins")
            }
            Self::HeadKept { since: Since::Lost } => {
                f.write_str("the record of the log's end was lost here, and is kept again")
            }
            Self::Torn { bytes } => {
                write!(f, "a writer was cut short here: {bytes} bytes of a line were taken off")
            }
        }
    }
}

fn without_progress(f: &mut fmt::Formatter<'_>, seconds: Option<f64>) -> fmt::Result {
    seconds.map_or(Ok(()), |seconds| write!(f, "; {seconds:.1} s without progress"))
}

/// A container's id as people write it.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
