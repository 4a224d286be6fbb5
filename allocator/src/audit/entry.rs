//! What stands in the audit log: one entry for each thing that was done, decided or noticed.

use paceline_policy::decision::Decision;
use serde::{Deserialize, Serialize};

use crate::live::{Command, Who};

/// One thing. Shares are fractions of the node; `container` is the engine's full id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Entry {
    /// A run began.
    Began {
        /// Of the program.
        version: String,
        /// The allocator's process.
        pid: u32,
        /// The policy.
        policy: String,
        /// `engine` or `cgroup`.
        actuator: String,
        /// Nothing is written.
        dry_run: bool,
    },
    /// A run ended with every limit back, or with so many that are not.
    Ended {
        /// Limits that could not be put back.
        left: u64,
    },
    /// A container became a managed job.
    Appeared {
        /// The job.
        job: String,
        /// Its container.
        container: String,
    },
    /// A job's container ended.
    Gone {
        /// The job.
        job: String,
        /// Its container.
        container: String,
    },
    /// What the policy said of one job.
    Decided {
        /// The decision's number, from 1.
        number: u64,
        /// The job.
        job: String,
        /// The class that it was given.
        class: String,
        /// The figure that it was classed by.
        score: Option<f64>,
        /// The share that it chose.
        chosen: f64,
        /// The node that it is to be moved to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moves_to: Option<String>,
        /// Seconds until its end, by a policy that plans ahead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ends_in: Option<f64>,
        /// Seconds until its end if all jobs shared the node equally.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fair_ends_in: Option<f64>,
        /// Why.
        why: String,
    },
    /// A task of a distributed job was given a place.
    Placed {
        /// The job.
        job: String,
        /// The task.
        task: String,
        /// The machine.
        node: String,
        /// Why there.
        why: String,
    },
    /// A task of a distributed job was taken back.
    Withdrawn {
        /// The job.
        job: String,
        /// The task.
        task: String,
        /// The machine that it leaves.
        node: String,
        /// Why.
        why: String,
    },
    /// A distributed job waits.
    Waits {
        /// The job.
        job: String,
        /// For what.
        why: String,
    },
    /// A limit was written, and read back.
    Limited {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// What was in force, as the limiter puts it.
        from: String,
        /// What is in force now.
        to: String,
        /// Why.
        why: String,
        /// How long the write took, in seconds.
        seconds: f64,
    },
    /// A limit was not written.
    Failed {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// What was to be written.
        to: String,
        /// What came in the way.
        error: String,
    },
    /// A container has back what it had before the first write to it.
    Restored {
        /// Its container.
        container: String,
        /// How well.
        how: String,
    },
    /// Somebody else changed a limit, or a restart lost it.
    Drifted {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// What was written.
        written: String,
        /// What is there.
        found: String,
        /// `reasserted` or `yielded`.
        response: String,
    },
    /// An order was given.
    Ordered {
        /// By whom.
        who: Who,
        /// To do what.
        command: Command,
        /// What came of it: the answer's sentence.
        outcome: String,
        /// Whether it was carried out.
        done: bool,
    },
    /// The configuration was read again, and taken up.
    Reloaded {
        /// What has changed: `key: before -> after`.
        changes: Vec<String>,
    },
    /// A job at its objective is ended.
    Terminated {
        /// The job.
        job: String,
        /// Its container.
        container: String,
    },
    /// A job was moved to another node.
    Moved {
        /// The job.
        job: String,
        /// The container that it left.
        container: String,
        /// The one that it goes on in, where that is another one.
        successor: Option<String>,
        /// The node that it left.
        from: String,
        /// The node that it is on.
        to: String,
        /// What for.
        reason: String,
        /// How long it took to save a checkpoint, in seconds.
        saving: Option<f64>,
        /// For how long it made no progress, in seconds.
        seconds: Option<f64>,
    },
    /// A job was to be moved to another node, and stays where it is.
    Stayed {
        /// The job.
        job: String,
        /// Its container, where the move was begun.
        container: Option<String>,
        /// The node that it is on.
        from: String,
        /// The node that it was to be on.
        to: String,
        /// What for.
        reason: String,
        /// Why it stays.
        why: String,
        /// For how long it made no progress, in seconds.
        seconds: Option<f64>,
    },
    /// A job that ended with its machine is started again, from its checkpoint.
    Revived {
        /// The job.
        job: String,
        /// The task that ended.
        task: String,
        /// How it ended.
        why: String,
    },
    /// Entries could not be written here: the disk was full, or failed.
    Missed {
        /// How many.
        count: u64,
    },
    /// The last line was not whole: whoever wrote it was cut short. It was taken off.
    Torn {
        /// How long it was.
        bytes: u64,
    },
}

impl Entry {
    /// What a decision said of each job. A job without a limit is given the whole node.
    pub fn of_decision(number: u64, decision: &Decision) -> impl Iterator<Item = Self> {
        decision.jobs.iter().map(move |(job, of)| Self::Decided {
            number,
            job: job.to_string(),
            class: of.class.to_owned(),
            score: of.score,
            chosen: decision.limits.get(job).map_or(1.0, |share| share.get()),
            moves_to: decision.migrate.iter().find(|one| one.job == *job).map(|one| one.to.clone()),
            ends_in: of.outlook.as_ref().and_then(|outlook| outlook.ends_in),
            fair_ends_in: of.outlook.as_ref().and_then(|outlook| outlook.fair_ends_in),
            why: of.why.to_string(),
        })
    }
}
