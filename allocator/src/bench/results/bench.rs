//! What makes two starts the same bench: its `bench.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::allocator_process::PROGRAM;
use super::super::machine::Machine;
use super::super::plan::{Planned, order};
use super::super::schedule::Schedule;
use super::difference::differences;
use crate::exit::BadUsage;
use crate::nodes::Node;

/// The version of the folder's layout.
const FORMAT: u32 = 1;

/// What was asked for and where, and what came of it so far.
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
    #[serde(flatten)]
    place: Place,
    /// Each job's steps per second with the machine for itself, once that was measured; `None` for
    /// a job whose command takes no steps.
    pub(crate) rates: Option<Vec<Option<f64>>>,
    /// All runs that were ever asked for, in their order.
    pub(super) order: Vec<Planned>,
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
        let bytes = fs::read(PROGRAM).context("cannot read this program")?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), sha256: sha256(&bytes) })
    }

    #[cfg(test)]
    pub(super) fn called(sha256: &str) -> Self {
        Self { version: "1".to_owned(), sha256: sha256.to_owned() }
    }
}

/// Where a bench runs, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) machine: Machine,
    /// The engine's own id.
    pub(crate) engine: String,
    pub(crate) program: Program,
    /// What jobs see as /data.
    pub(crate) data: Option<String>,
    /// The id of each image that jobs are run from; `None` where the engine lacks it.
    #[serde(default)]
    pub(crate) images: BTreeMap<String, Option<String>>,
}

impl Bench {
    pub(super) fn new(schedule: &Schedule, place: Place, now: f64) -> Self {
        Self {
            format: FORMAT,
            name: schedule.name.clone(),
            run: run_name(now),
            began: now,
            text: schedule.text.clone(),
            sha256: sha256(schedule.text.as_bytes()),
            asked: asked(schedule),
            place,
            rates: None,
            order: order(schedule),
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.place.machine
    }

    /// The name of the folder that jobs see as /data.
    pub(crate) fn data(&self) -> Option<String> {
        let folder = Path::new(self.place.data.as_ref()?);
        folder.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Fails unless the engine has all images.
    pub(super) fn check_images(&self) -> Result<(), BadUsage> {
        let lacking = self.place.images.iter().filter(|(_, id)| id.is_none());
        let lacking: Vec<&str> = lacking.map(|(image, _)| image.as_str()).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let lacking = lacking.join(", ");
        Err(BadUsage(format!("the engine has no image {lacking}: build or pull it first")))
    }

    /// What `new` asks for otherwise. Arms that it adds only add runs, and the runs of those that it
    /// leaves out stay.
    pub(super) fn asked_otherwise(&self, new: &Self) -> Vec<String> {
        let (before, arms) = arms_apart(self.asked.clone());
        let (after, new_arms) = arms_apart(new.asked.clone());
        let in_both = new_arms.iter().filter_map(|arm| {
            let name = arm.get("name")?;
            let before = arms.iter().find(|before| before.get("name") == Some(name))?;
            Some(differences(&format!("arm {name}"), before, arm))
        });
        differences("", &before, &after).into_iter().chain(in_both.flatten()).collect()
    }

    /// What is other in the place of `new`.
    pub(super) fn placed_otherwise(&self, new: &Self) -> Vec<String> {
        differences("", &json!(self.place), &json!(new.place))
    }

    /// The same as `new` asks for it, which asks for nothing otherwise: with the arms of both, and all
    /// runs in `order`.
    pub(super) fn going_on(self, new: Self, order: Vec<Planned>) -> Self {
        let (mut asked, mut arms) = arms_apart(self.asked);
        let (_, new_arms) = arms_apart(new.asked);
        let added: Vec<Value> = new_arms.into_iter().filter(|arm| !arms.contains(arm)).collect();
        arms.extend(added);
        if let Some(asked) = asked.as_object_mut() {
            asked.insert("arm".to_owned(), arms.into());
        }
        Self { text: new.text, sha256: new.sha256, asked, order, ..self }
    }
}

/// What of a schedule makes other runs of it. Words for readers do not, and more repeats only add
/// some.
fn asked(schedule: &Schedule) -> Value {
    let Schedule { warm_up, seed, arrivals, until, arms, nodes, jobs, .. } = schedule;
    let seed = arrivals.is_random().then_some(seed);
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|Node { name, cpus }| json!({ "name": name, "cpus": cpus.to_string() }))
        .collect();
    json!({
        "format": FORMAT, "warm-up": warm_up, "seed": seed, "arrivals": arrivals, "until": until,
        "arm": arms, "node": nodes, "job": jobs,
    })
}

/// What was asked for but for the arms, and these.
fn arms_apart(mut asked: Value) -> (Value, Vec<Value>) {
    let arms = asked.as_object_mut().and_then(|asked| asked.remove("arm"));
    let Some(Value::Array(arms)) = arms else { return (asked, Vec::new()) };
    (asked, arms)
}

/// The milliseconds since 1970.
fn run_name(began: f64) -> String {
    let since = std::time::Duration::try_from_secs_f64(began).unwrap_or_default();
    format!("{:x}", since.as_millis())
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
