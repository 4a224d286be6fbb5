//! The folder of a bench's results: what was requested, and which runs are complete.
//!
//! `bench.json` identifies the bench. A run is complete once its `run.json` exists. A bench that is started
//! again continues with the first incomplete run, unless the request differs.

mod bench;
mod difference;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::plan::{Planned, added, order};
use super::record::{Recorded, Run};
use super::schedule::Schedule;
use super::tail::Tail;
use bench::Bench;
pub(crate) use bench::{Environment, Program};
use paceline_api::bounded;
use paceline_api::usage::BadUsage;

/// The file that identifies the bench.
const FILE: &str = "bench.json";

/// The folders of measurements.
const MEASURED: [&str; 3] = ["runs", CALIBRATION, UNFINISHED];

/// The folder of the calibration …
pub(crate) const CALIBRATION: &str = "calibration";
/// … and its name until it is complete.
pub(crate) const UNFINISHED: &str = "calibration.part";

/// The results of one bench.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    pub(crate) bench: Bench,
    rerun: Rerun,
}

/// Which of the existing measurements to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rerun {
    /// None: existing measurements stay.
    Nothing,
    /// The runs that other work disturbed.
    Spoiled,
    /// All of them: existing measurements are deleted.
    All,
}

impl Results {
    /// The results of `schedule` in `folder`, requested at `now` in Unix seconds. Writes nothing yet.
    ///
    /// The error is a [`BadUsage`] if the folder holds another bench, or if a needed image is missing.
    pub(crate) fn open(
        folder: &Path,
        schedule: &Schedule,
        environment: Environment,
        now: f64,
        rerun: Rerun,
    ) -> anyhow::Result<Self> {
        // If the report is a bare file name, its folder is the empty path, so make it absolute.
        let file = std::path::absolute(folder.join(FILE));
        let mut folder = file.with_context(|| format!("cannot find {}", folder.display()))?;
        folder.pop();
        let mut new = Bench::new(schedule, environment, now);
        let Some(bench) = begun(&folder)? else {
            refuse_foreign_folders(&folder)?;
            new.check_images()?;
            return Ok(Self { folder, bench: new, rerun: Rerun::Nothing });
        };
        // Keep the name: it identifies the containers of an earlier start that was killed.
        new.run.clone_from(&bench.run);
        let begun = Self { folder, bench, rerun };
        if rerun == Rerun::All || !begun.has_measured() {
            new.check_images()?;
            return Ok(Self { bench: new, ..begun });
        }
        Ok(begun.continue_as(new)?)
    }

    fn has_measured(&self) -> bool {
        let Bench { rates, order, .. } = &self.bench;
        rates.iter().flatten().any(Option::is_some) || order.iter().any(|run| self.is_complete(run))
    }

    /// Continues the bench that was begun, now requested as `new`.
    fn continue_as(self, new: Bench) -> Result<Self, BadUsage> {
        let begun = &self.bench;
        let is_done = |run: &Planned| {
            begun.order.iter().any(|done| done.is_same_as(run) && self.is_complete(done))
        };
        let mut differences = begun.request_differences(&new);
        if !new.order.iter().all(is_done) {
            new.check_images()?;
            differences.extend(begun.environment_differences(&new));
        }
        if !differences.is_empty() {
            return Err(BadUsage(format!(
                "{} holds the runs of another bench: {}; delete them with --fresh, or keep both with --report",
                self.folder.display(),
                differences.join("; ")
            )));
        }
        let order = begun.order.iter().cloned().chain(added(&begun.order, &new.order)).collect();
        Ok(Self { bench: self.bench.continued_as(new, order), ..self })
    }

    /// Begins the bench at `now`, in Unix seconds, or continues it. From here on it owns the folder.
    pub(crate) fn begin(&mut self, now: f64) -> anyhow::Result<()> {
        if self.rerun == Rerun::All {
            // The report stays until there is a new one.
            MEASURED.iter().try_for_each(|name| remove(&self.folder.join(name)))?;
        }
        if !self.has_measured() {
            self.bench.began = now;
        }
        self.save()
    }

    /// The runs of `schedule`, in their order.
    pub(crate) fn planned(&self, schedule: &Schedule) -> Vec<Planned> {
        let asked = order(schedule);
        let is_asked = |run: &&Planned| asked.iter().any(|asked| asked.is_same_as(run));
        self.bench.order.iter().filter(is_asked).cloned().collect()
    }

    /// Whether the jobs' rates are known and the recordings of their measurement exist.
    pub(crate) fn has_calibration(&self) -> bool {
        self.bench.rates.is_some() && self.folder.join(CALIBRATION).exists()
    }

    /// Saves the measured rates, and marks the calibration as complete.
    pub(crate) fn save_calibration(&mut self, rates: &[Option<f64>]) -> anyhow::Result<()> {
        let (unfinished, complete) = (self.folder.join(UNFINISHED), self.folder.join(CALIBRATION));
        if unfinished.exists() {
            remove(&complete)?;
            fs::rename(&unfinished, &complete)
                .with_context(|| format!("cannot create {}", complete.display()))?;
        }
        self.bench.rates = Some(rates.to_vec());
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        write_atomically(&self.folder.join(FILE), &self.bench)
    }

    /// The folder of the results.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a folder of these results, empty.
    pub(crate) fn empty_folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        remove(&folder)?;
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// A run's folder, relative to the folder of the results.
    pub(crate) fn name_of(planned: &Planned) -> String {
        format!("runs/{}", planned.folder())
    }

    /// Whether a run need not be repeated. An unreadable run is not known to be disturbed.
    fn is_complete(&self, planned: &Planned) -> bool {
        let exists = self.folder.join(Self::name_of(planned)).join("run.json").exists();
        let is_disturbed = || {
            let run = self.run(planned).ok();
            planned.repeat > 0 && run.is_some_and(|run| run.host.spoiled.is_some())
        };
        exists && !(self.rerun == Rerun::Spoiled && is_disturbed())
    }

    fn run(&self, planned: &Planned) -> anyhow::Result<Run> {
        let path = self.folder.join(Self::name_of(planned)).join("run.json");
        let text = bounded::RESULT
            .read(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let run = serde_json::from_str(&text).map_err(|error| {
            BadUsage(format!("invalid run record {}: {error}; remove it", path.display()))
        })?;
        Ok(run)
    }

    /// A completed run; `None` if it must still run.
    pub(crate) fn completed(&self, planned: &Planned) -> anyhow::Result<Option<Recorded>> {
        if !self.is_complete(planned) {
            return Ok(None);
        }
        let folder = self.folder.join(Self::name_of(planned));
        let run = self.run(planned)?;
        let samples = Tail::new(&folder.join("samples.jsonl")).poll()?;
        Ok(Some(Recorded { run, samples, folder }))
    }

    /// Saves a run, which completes it.
    pub(crate) fn save_run(recorded: &Recorded) -> anyhow::Result<()> {
        write_atomically(&recorded.folder.join("run.json"), &recorded.run)
    }
}

/// The bench that was begun in `folder`, if one was.
fn begun(folder: &Path) -> anyhow::Result<Option<Bench>> {
    let path = folder.join(FILE);
    let text = match bounded::RESULT.read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let bench = serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        BadUsage(format!("invalid bench file {path}: {error}; remove it, or name another --report"))
    })?;
    Ok(Some(bench))
}

/// Fails if folders of measurements exist without a bench: they may belong to something else, so the bench must
/// not remove them.
fn refuse_foreign_folders(folder: &Path) -> Result<(), BadUsage> {
    let foreign = MEASURED.map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    foreign.map_or(Ok(()), |path| {
        let path = path.display();
        Err(BadUsage(format!(
            "{path} exists, but no {FILE} beside it: remove it, or name another --report"
        )))
    })
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove {}", folder.display())),
    }
}

/// Writes a file atomically: after a crash it is complete, or unchanged.
fn write_atomically(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    let unfinished = path.with_extension("part");
    let write = || {
        fs::create_dir_all(folder)?;
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        File::open(folder)?.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests;
