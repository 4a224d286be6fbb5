//! `bench.json`: what identifies a bench over several starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use paceline_api::nodes::Node;
use paceline_api::usage::BadUsage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::allocator_process::PROGRAM;
use super::super::machine::Machine;
use super::super::plan::{Planned, order};
use super::super::schedule::Schedule;
use super::difference::differences;

/// The version of the folder's layout.
const FORMAT: u32 = 1;

/// What was requested and where, and the progress so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bench {
    format: u32,
    pub(crate) name: String,
    /// Identifies the bench on its machine: its containers have it as a label.
    pub(crate) run: String,
    /// When it began, in Unix seconds.
    pub(crate) began: f64,
    /// The schedule's text, and its SHA-256.
    text: String,
    sha256: String,
    /// The part of the schedule that must not change between two starts.
    #[serde(rename = "asked")]
    request: Value,
    #[serde(flatten)]
    environment: Environment,
    /// Each job's steps per second when alone, once measured; `None` for a job whose command takes no
    /// steps.
    pub(crate) rates: Option<Vec<Option<f64>>>,
    /// All runs that were ever requested, in their order.
    pub(super) order: Vec<Planned>,
}

/// The program that measures and is measured: this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    version: String,
    /// The SHA-256 of its file.
    sha256: String,
}

impl Program {
    /// Reads this program's version and file.
    pub(crate) fn this() -> anyhow::Result<Self> {
        let bytes = fs::read(PROGRAM).context("cannot read this program")?;
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), sha256: sha256(&bytes) })
    }

    #[cfg(test)]
    pub(super) fn called(sha256: &str) -> Self {
        Self { version: "1".to_owned(), sha256: sha256.to_owned() }
    }
}

/// The machine, engine, program, data and images of a bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) machine: Machine,
    /// The engine's own id.
    pub(crate) engine: String,
    pub(crate) program: Program,
    /// The folder that jobs see as `/data`.
    pub(crate) data: Option<String>,
    /// The id of each of the jobs' images; `None` if the engine lacks it.
    #[serde(default)]
    pub(crate) images: BTreeMap<String, Option<String>>,
}

impl Bench {
    pub(super) fn new(schedule: &Schedule, environment: Environment, now: f64) -> Self {
        Self {
            format: FORMAT,
            name: schedule.name.clone(),
            run: run_name(now),
            began: now,
            text: schedule.text.clone(),
            sha256: sha256(schedule.text.as_bytes()),
            request: request(schedule),
            environment,
            rates: None,
            order: order(schedule),
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.environment.machine
    }

    /// The name of the folder that jobs see as `/data`.
    pub(crate) fn data(&self) -> Option<String> {
        let folder = Path::new(self.environment.data.as_ref()?);
        folder.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Fails unless the engine has all images.
    pub(super) fn check_images(&self) -> Result<(), BadUsage> {
        let lacking = self.environment.images.iter().filter(|(_, id)| id.is_none());
        let lacking: Vec<&str> = lacking.map(|(image, _)| image.as_str()).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let lacking = lacking.join(", ");
        Err(BadUsage(format!("the engine lacks the image {lacking}; build or pull it first")))
    }

    /// How the request of `new` differs. Added and removed arms do not count: added ones add runs, and the
    /// runs of removed ones stay.
    pub(super) fn request_differences(&self, new: &Self) -> Vec<String> {
        let (before, arms) = split_arms(self.request.clone());
        let (after, new_arms) = split_arms(new.request.clone());
        let in_both = new_arms.iter().filter_map(|arm| {
            let name = arm.get("name")?;
            let before = arms.iter().find(|before| before.get("name") == Some(name))?;
            Some(differences(&format!("arm {name}"), before, arm))
        });
        differences("", &before, &after).into_iter().chain(in_both.flatten()).collect()
    }

    /// How the environment of `new` differs.
    pub(super) fn environment_differences(&self, new: &Self) -> Vec<String> {
        differences("", &json!(self.environment), &json!(new.environment))
    }

    /// This bench continued with the compatible request of `new`: with the arms of both, and all runs in
    /// `order`.
    pub(super) fn continued_as(self, new: Self, order: Vec<Planned>) -> Self {
        let (mut request, mut arms) = split_arms(self.request);
        let (_, new_arms) = split_arms(new.request);
        let added: Vec<Value> = new_arms.into_iter().filter(|arm| !arms.contains(arm)).collect();
        arms.extend(added);
        if let Some(request) = request.as_object_mut() {
            request.insert("arm".to_owned(), arms.into());
        }
        Self { text: new.text, sha256: new.sha256, request, order, ..self }
    }
}

/// The part of a schedule that changes its runs. Descriptions do not, and more repeats only add runs.
fn request(schedule: &Schedule) -> Value {
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

/// Splits a request into all but the arms, and the arms.
fn split_arms(mut request: Value) -> (Value, Vec<Value>) {
    let arms = request.as_object_mut().and_then(|request| request.remove("arm"));
    let Some(Value::Array(arms)) = arms else { return (request, Vec::new()) };
    (request, arms)
}

/// The bench's name: the milliseconds since 1970, in hexadecimal.
fn run_name(began: f64) -> String {
    let since = std::time::Duration::try_from_secs_f64(began).unwrap_or_default();
    format!("{:x}", since.as_millis())
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
