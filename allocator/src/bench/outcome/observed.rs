//! A run with all that its folder tells of it.

use std::fs;
use std::path::Path;

use anyhow::Context;
use paceline_sim::fit::Recording;

use super::super::record::{JobRun, Recorded};
use crate::audit;

/// A run, what its policy saw, and what was done about it.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    pub(crate) recorded: &'a Recorded,
    /// Its frames, or why there are none to be used.
    pub(crate) frames: Result<Recording, String>,
    /// The allocator's log of decisions; empty where it kept none.
    pub(crate) log: Vec<audit::Record>,
}

impl<'a> Observed<'a> {
    /// Reads what lies in the run's folder. What is not there is not known.
    pub(crate) fn read(recorded: &'a Recorded) -> anyhow::Result<Self> {
        let folder = &recorded.folder;
        let log = audit::read::last(folder, usize::MAX)
            .with_context(|| format!("cannot read the audit log in {}", folder.display()))?;
        Ok(Self { recorded, frames: frames(folder), log })
    }

    /// What has to be added to the allocator's seconds to have seconds after the run began.
    pub(crate) fn offset(&self) -> Option<f64> {
        let sample = self.recorded.samples.last()?;
        Some(sample.unix - sample.t - self.recorded.run.began)
    }

    /// Whether its figures count: it is no warm-up, and nothing else disturbed it.
    pub(crate) fn counts(&self) -> bool {
        self.recorded.run.repeat > 0 && self.recorded.run.host.spoiled.is_none()
    }

    /// Why a job did not succeed, if it did not. One that was ended at its objective did, whatever
    /// its exit code.
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

/// The frames in a run's folder. What is wrong with them may be shown far from this machine, and
/// names that folder alone.
pub(crate) fn frames(folder: &Path) -> Result<Recording, String> {
    const FILE: &str = "frames.jsonl";
    let name = Path::new(folder.file_name().unwrap_or_default()).join(FILE);
    let text = fs::read_to_string(folder.join(FILE))
        .map_err(|error| format!("{} cannot be read: {error}", name.display()))?;
    Recording::parse(&text).map_err(|error| format!("{}: {error}", name.display()))
}
