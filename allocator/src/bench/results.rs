//! The folder of a bench's results: what was asked for, and which runs are whole.
//!
//! `bench.json` says what bench it is; a run is whole once its `run.json` is there. A bench that is
//! started again goes on from the first run that is not, unless what is asked for is another.

mod difference;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::machine::Machine;
use super::plan::{Planned, order};
use super::record::{Recorded, Run};
use super::schedule::Schedule;
use super::tail::Tail;
use crate::exit::BadUsage;
use difference::differences;

/// The version of the folder's layout.
const FORMAT: u32 = 1;

/// What makes two starts the same bench: its `bench.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bench {
    format: u32,
    pub(crate) name: String,
    /// Names the bench on its machine: its containers are labelled with it.
    pub(crate) run: String,
    /// When it began, in Unix seconds.
    pub(crate) began: f64,
    /// The schedule's text, and its SHA-256.
    text: String,
    sha256: String,
    /// What of the schedule must not change between two starts.
    asked: Value,
    pub(crate) machine: Machine,
    /// The engine's own id.
    engine: String,
    program: Program,
    /// Each job's steps per second with the machine for itself, once that was measured; `None` for
    /// a job whose command takes no steps.
    pub(crate) rates: Option<Vec<Option<f64>>>,
    /// All runs, in their order.
    pub(crate) order: Vec<Planned>,
}

/// The program that measures, and is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    version: String,
    /// Of the file that is run.
    sha256: String,
}

impl Program {
    /// This one.
    pub(crate) fn this() -> anyhow::Result<Self> {
        let path = std::env::current_exe().context("cannot tell which program this is")?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), sha256: sha256(&bytes) })
    }
}

/// Where a bench runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) machine: Machine,
    /// The engine's own id.
    pub(crate) engine: String,
    pub(crate) program: Program,
}

/// The results of one bench.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    pub(crate) bench: Bench,
}

impl Results {
    /// Opens, and makes if need be, the results of `schedule` in `folder`, begun at `now` in Unix
    /// seconds unless they were begun before. With `fresh`, whatever was measured before goes.
    ///
    /// Where another bench was begun there, the error is a [`BadUsage`] that says what is other.
    pub(crate) fn open(
        folder: &Path,
        schedule: &Schedule,
        place: Place,
        now: f64,
        fresh: bool,
    ) -> anyhow::Result<Self> {
        if fresh {
            clear(folder)?;
        }
        let new = Bench::new(schedule, place, now);
        let path = folder.join("bench.json");
        let bench = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Runs that nobody can tell of any more.
                clear(folder)?;
                new
            }
            Err(error) => return Err(error).context(format!("cannot read {}", path.display())),
            Ok(text) => {
                let begun = serde_json::from_str(&text).map_err(|error| {
                    let path = path.display();
                    BadUsage(format!("{path} is not a bench's: {error}; --fresh begins anew"))
                })?;
                Self { folder: folder.to_owned(), bench: begun }.go_on_as(new)?
            }
        };
        let results = Self { folder: folder.to_owned(), bench };
        results.save()?;
        Ok(results)
    }

    /// The bench that was begun, now asked for as `new`.
    fn go_on_as(self, new: Bench) -> Result<Bench, BadUsage> {
        let begun = &self.bench;
        let measured = begun.rates.is_some() || begun.order.iter().any(|run| self.is_whole(run));
        if !measured {
            return Ok(new);
        }
        let mut other = differences("", &begun.asked, &new.asked);
        let complete = new.order.iter().all(|planned| self.is_whole(planned));
        if !complete {
            let place = |of: &Bench| json!({ "machine": of.machine, "engine": of.engine, "program": of.program });
            other.extend(differences("", &place(begun), &place(&new)));
        }
        if other.is_empty() {
            let order = new.order;
            return Ok(Bench { text: new.text, sha256: new.sha256, order, ..self.bench });
        }
        Err(BadUsage(format!(
            "{} holds the runs of another bench: {}. --fresh begins anew, --report keeps both",
            self.folder.display(),
            other.join("; ")
        )))
    }

    /// Remembers what the calibration measured.
    pub(crate) fn calibrated(&mut self, rates: &[Option<f64>]) -> anyhow::Result<()> {
        self.bench.rates = Some(rates.to_vec());
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        write_whole(&self.folder.join("bench.json"), &self.bench)
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

    fn is_whole(&self, planned: &Planned) -> bool {
        self.folder.join(Self::name_of(planned)).join("run.json").exists()
    }

    /// A run that is whole.
    pub(crate) fn whole(&self, planned: &Planned) -> anyhow::Result<Option<Recorded>> {
        if !self.is_whole(planned) {
            return Ok(None);
        }
        let folder = self.folder.join(Self::name_of(planned));
        let path = folder.join("run.json");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let run: Run = serde_json::from_str(&text).map_err(|error| {
            BadUsage(format!("{} is not a run's: {error}; remove it", path.display()))
        })?;
        let samples = Tail::new(&folder.join("samples.jsonl")).poll()?;
        Ok(Some(Recorded { run, samples, folder }))
    }

    /// Makes a run whole.
    pub(crate) fn keep(recorded: &Recorded) -> anyhow::Result<()> {
        write_whole(&recorded.folder.join("run.json"), &recorded.run)
    }
}

impl Bench {
    fn new(schedule: &Schedule, place: Place, now: f64) -> Self {
        let Place { machine, engine, program } = place;
        Self {
            format: FORMAT,
            name: schedule.name.clone(),
            run: run_name(now),
            began: now,
            text: schedule.text.clone(),
            sha256: sha256(schedule.text.as_bytes()),
            asked: asked(schedule),
            machine,
            engine,
            program,
            rates: None,
            order: order(schedule),
        }
    }
}

/// What of a schedule makes other runs of it. Words for readers do not, and more repeats only add
/// some.
fn asked(schedule: &Schedule) -> Value {
    let Schedule { warm_up, seed, arrivals, until, arms, nodes, jobs, .. } = schedule;
    let seed = arrivals.is_random().then_some(seed);
    json!({
        "format": FORMAT, "warm-up": warm_up, "seed": seed, "arrivals": arrivals, "until": until,
        "arm": arms, "node": nodes, "job": jobs,
    })
}

/// The milliseconds since 1970.
fn run_name(began: f64) -> String {
    let since = std::time::Duration::try_from_secs_f64(began).unwrap_or_default();
    format!("{:x}", since.as_millis())
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Removes what earlier benches measured; reports stay until there are new ones.
fn clear(folder: &Path) -> anyhow::Result<()> {
    ["runs", "calibration"].iter().try_for_each(|name| remove(&folder.join(name)))?;
    let path = folder.join("bench.json");
    match fs::remove_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove {}", path.display())),
    }
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
