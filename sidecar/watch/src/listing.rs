//! All jobs as one JSON object, for scripts and for the page.

use std::time::Instant;

use paceline_wire::Progress;
use serde::Serialize;

use crate::jobs::{Job, Jobs, Standing};
use crate::{clock, facts};

/// The version of this JSON. Fields are only ever added within one version.
const SCHEMA: u32 = 1;
/// The most losses of a curve.
const CURVE: usize = 60;

/// All jobs.
#[derive(Debug, Serialize)]
pub(crate) struct Listing<'j> {
    schema: u32,
    /// Unix seconds.
    now: f64,
    jobs: Vec<Entry<'j>>,
    /// Jobs beyond the most that are kept.
    left_out: usize,
}

/// A job, by its lowest rank.
#[derive(Debug, Serialize)]
struct Entry<'j> {
    #[serde(flatten)]
    member: Member<'j>,
    /// Smoothed losses from the start on, oldest first.
    curve: Vec<f64>,
    /// All ranks that have an endpoint, if there are several.
    ranks: Vec<Member<'j>>,
}

/// A process with an endpoint.
#[derive(Debug, Serialize)]
struct Member<'j> {
    /// The name of the address in paths.
    key: String,
    address: String,
    /// Where a browser finds its own page; `null` for a Unix socket.
    page: Option<String>,
    /// `answers`, `silent` or `gone`.
    standing: &'static str,
    /// The state in words.
    state: &'static str,
    /// The health of the loss in words.
    health: &'static str,
    /// What needs attention.
    trouble: Vec<String>,
    /// Seconds since the progress arrived.
    age: f64,
    progress: &'j Progress,
}

impl<'j> Member<'j> {
    fn new(job: &'j Job, now: Instant) -> Self {
        Self {
            key: job.address.key(),
            address: job.address.to_string(),
            page: job.address.page(),
            standing: match job.standing {
                Standing::Answers => "answers",
                Standing::Silent => "silent",
                Standing::Gone => "gone",
            },
            state: facts::state(job),
            health: facts::health(&job.progress),
            trouble: facts::trouble(job),
            age: now.saturating_duration_since(job.seen).as_secs_f64(),
            progress: &job.progress,
        }
    }
}

/// The jobs as one line of JSON.
pub(crate) fn json(jobs: &Jobs) -> serde_json::Result<String> {
    let now = clock::now();
    let entries = jobs.groups().into_iter().map(|group| {
        let several = Some(&group.ranks).filter(|ranks| ranks.len() > 1);
        Entry {
            member: Member::new(group.head, now),
            curve: group.head.past.curve(CURVE),
            ranks: several.into_iter().flatten().map(|job| Member::new(job, now)).collect(),
        }
    });
    let listing = Listing {
        schema: SCHEMA,
        now: clock::unix(),
        jobs: entries.collect(),
        left_out: jobs.left_out,
    };
    serde_json::to_string(&listing)
}
