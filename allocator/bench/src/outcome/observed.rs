//! A run with everything in its folder.

use std::path::Path;

use anyhow::Context;
use paceline_api::{audit, bounded};
use paceline_sim::fit::Recording;

use super::super::record::{JobRun, Recorded};
use super::Trajectory;

/// A run, with its frames and its audit log.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    pub(crate) recorded: &'a Recorded,
    /// Its frames, or why they cannot be used.
    pub(crate) frames: Result<Recording, String>,
    /// The allocator's audit log; empty if there is none.
    pub(crate) log: Vec<audit::Record>,
}

impl<'a> Observed<'a> {
    /// Reads the run's folder. Missing files are not an error.
    pub(crate) fn read(recorded: &'a Recorded) -> anyhow::Result<Self> {
        let folder = &recorded.folder;
        let log = audit::read::last(folder, usize::MAX)
            .with_context(|| format!("cannot read the audit log in {}", folder.display()))?;
        Ok(Self { recorded, frames: frames(folder), log })
    }

    /// Seconds to add to the allocator's times to get seconds after the run began.
    pub(crate) fn offset(&self) -> Option<f64> {
        let sample = self.recorded.samples.last()?;
        Some(sample.unix - sample.t - self.recorded.run.began)
    }

    /// Whether its figures count: it is not the warm-up, and no other work disturbed it.
    pub(crate) fn counts(&self) -> bool {
        self.recorded.run.repeat > 0 && self.recorded.run.host.spoiled.is_none()
    }

    /// Why a job failed, if it did. A job that was ended at its objective succeeded, whatever its exit
    /// code.
    pub(crate) fn failure(&self, job: &JobRun) -> Option<String> {
        let ended = |entry: &audit::Record| matches!(&entry.entry, audit::Entry::Terminated { job: ended, .. } if *ended == job.job);
        match (job.exit_code, job.out_of_memory) {
            (_, true) => Some("failed: out of memory".to_owned()),
            (0, false) => None,
            (_, false) if self.log.iter().any(ended) => None,
            (code, false) => Some(format!("failed: exit {code}")),
        }
    }
}

/// Reads the frames in a run's folder. Errors name only that folder, not its full path: they may be
/// published in a report.
pub(crate) fn frames(folder: &Path) -> Result<Recording, String> {
    const FILE: &str = "frames.jsonl";
    let name = Path::new(folder.file_name().unwrap_or_default()).join(FILE);
    let text = bounded::RECORDING
        .read(&folder.join(FILE))
        .map_err(|error| format!("cannot read {}: {error}", name.display()))?;
    Recording::parse(&text).map_err(|error| format!("{}: {error}", name.display()))
}

/// An observed run and its measured trajectory.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) observed: &'a Observed<'a>,
    pub(crate) trajectory: Trajectory,
}
