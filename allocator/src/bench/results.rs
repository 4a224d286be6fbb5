//! The folder of a bench's results: what was asked for, and which runs are whole.
//!
//! `bench.json` says what bench it is; a run is whole once its `run.json` is there. A bench that is
//! started again goes on from the first run that is not, unless what is asked for is another.

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
use crate::exit::BadUsage;
use bench::Bench;
pub(crate) use bench::{Place, Program};

/// Says what bench it is.
const FILE: &str = "bench.json";

/// The folders of what was measured.
const MEASURED: [&str; 3] = ["runs", CALIBRATION, UNFINISHED];

/// The folder of the calibration …
pub(crate) const CALIBRATION: &str = "calibration";
/// … and what it is called until it is whole.
pub(crate) const UNFINISHED: &str = "calibration.part";

/// The results of one bench.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    pub(crate) bench: Bench,
    anew: Anew,
}

/// What is to be made that was measured before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anew {
    /// Nothing: what is there stays.
    Nothing,
    /// The runs that something else disturbed.
    Spoiled,
    /// All of it: whatever was measured is to go.
    All,
}

impl Results {
    /// The results of `schedule` in `folder`, asked for at `now` in Unix seconds. Nothing is written
    /// yet.
    ///
    /// Where another bench was begun there, or an image is missing that is needed, the error is a
    /// [`BadUsage`] that says what is wrong.
    pub(crate) fn open(
        folder: &Path,
        schedule: &Schedule,
        place: Place,
        now: f64,
        anew: Anew,
    ) -> anyhow::Result<Self> {
        // Of a report that is given by a bare name, the folder has no name itself.
        let file = std::path::absolute(folder.join(FILE));
        let mut folder = file.with_context(|| format!("cannot find {}", folder.display()))?;
        folder.pop();
        let mut new = Bench::new(schedule, place, now);
        let Some(bench) = begun(&folder)? else {
            refuse_what_no_bench_made(&folder)?;
            new.check_images()?;
            return Ok(Self { folder, bench: new, anew: Anew::Nothing });
        };
        // Containers that a start left which was killed are found by the name.
        new.run.clone_from(&bench.run);
        let begun = Self { folder, bench, anew };
        if anew == Anew::All || !begun.has_measured() {
            new.check_images()?;
            return Ok(Self { bench: new, ..begun });
        }
        Ok(begun.go_on_as(new)?)
    }

    fn has_measured(&self) -> bool {
        let Bench { rates, order, .. } = &self.bench;
        rates.iter().flatten().any(Option::is_some) || order.iter().any(|run| self.is_whole(run))
    }

    /// The bench that was begun, now asked for as `new`.
    fn go_on_as(self, new: Bench) -> Result<Self, BadUsage> {
        let begun = &self.bench;
        let is_made = |run: &Planned| {
            begun.order.iter().any(|made| made.is_same_as(run) && self.is_whole(made))
        };
        let mut other = begun.asked_otherwise(&new);
        if !new.order.iter().all(is_made) {
            new.check_images()?;
            other.extend(begun.placed_otherwise(&new));
        }
        if !other.is_empty() {
            return Err(BadUsage(format!(
                "{} holds the runs of another bench: {}. --fresh begins anew, --report keeps both",
                self.folder.display(),
                other.join("; ")
            )));
        }
        let order = begun.order.iter().cloned().chain(added(&begun.order, &new.order)).collect();
        Ok(Self { bench: self.bench.going_on(new, order), ..self })
    }

    /// Begins the bench at `now`, in Unix seconds, or goes on with it: from here on the folder is its.
    pub(crate) fn begin(&mut self, now: f64) -> anyhow::Result<()> {
        if self.anew == Anew::All {
            // The reports stay until there are new ones.
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

    /// Whether the jobs' rates were measured, and what that recorded is there.
    pub(crate) fn has_calibration(&self) -> bool {
        self.bench.rates.is_some() && self.folder.join(CALIBRATION).exists()
    }

    /// Remembers what the calibration measured, and that it is whole.
    pub(crate) fn calibrated(&mut self, rates: &[Option<f64>]) -> anyhow::Result<()> {
        let (unfinished, whole) = (self.folder.join(UNFINISHED), self.folder.join(CALIBRATION));
        if unfinished.exists() {
            remove(&whole)?;
            fs::rename(&unfinished, &whole)
                .with_context(|| format!("cannot make {}", whole.display()))?;
        }
        self.bench.rates = Some(rates.to_vec());
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        write_whole(&self.folder.join(FILE), &self.bench)
    }

    /// Where all of it lies.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder of these results, empty.
    pub(crate) fn empty(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        remove(&folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Where a run's files go, below the folder of the results.
    pub(crate) fn name_of(planned: &Planned) -> String {
        format!("runs/{}", planned.folder())
    }

    /// Whether a run need not be made. What cannot be read is not known to be disturbed.
    fn is_whole(&self, planned: &Planned) -> bool {
        let exists = self.folder.join(Self::name_of(planned)).join("run.json").exists();
        let is_disturbed = || {
            let run = self.run(planned).ok();
            planned.repeat > 0 && run.is_some_and(|run| run.host.spoiled.is_some())
        };
        exists && !(self.anew == Anew::Spoiled && is_disturbed())
    }

    fn run(&self, planned: &Planned) -> anyhow::Result<Run> {
        let path = self.folder.join(Self::name_of(planned)).join("run.json");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let run = serde_json::from_str(&text).map_err(|error| {
            BadUsage(format!("{} is not a run's: {error}; remove it", path.display()))
        })?;
        Ok(run)
    }

    /// A run that is whole.
    pub(crate) fn whole(&self, planned: &Planned) -> anyhow::Result<Option<Recorded>> {
        if !self.is_whole(planned) {
            return Ok(None);
        }
        let folder = self.folder.join(Self::name_of(planned));
        let run = self.run(planned)?;
        let samples = Tail::new(&folder.join("samples.jsonl")).poll()?;
        Ok(Some(Recorded { run, samples, folder }))
    }

    /// Makes a run whole.
    pub(crate) fn keep(recorded: &Recorded) -> anyhow::Result<()> {
        write_whole(&recorded.folder.join("run.json"), &recorded.run)
    }
}

/// The bench that was begun in `folder`, if one was.
fn begun(folder: &Path) -> anyhow::Result<Option<Bench>> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let bench = serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        BadUsage(format!("{path} is not a bench's: {error}; remove it, or name another --report"))
    })?;
    Ok(Some(bench))
}

/// Folders of these names may be anybody's where no bench was begun: they are not ours to be removed.
fn refuse_what_no_bench_made(folder: &Path) -> Result<(), BadUsage> {
    let strange = MEASURED.map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    strange.map_or(Ok(()), |path| {
        let path = path.display();
        Err(BadUsage(format!(
            "{path} is there, but no {FILE} beside it: remove it, or name another --report"
        )))
    })
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove {}", folder.display())),
    }
}

/// Writes a file so that, whatever happens, it is there whole or not at all.
fn write_whole(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
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
