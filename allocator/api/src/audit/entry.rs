//! The entries of the audit log: one for each action, decision or observation.

use paceline_policy::decision::Decision;
use serde::{Deserialize, Serialize};

use crate::live::{Command, Who};

/// One action, decision or observation. Shares are fractions of the node; `container` is the
/// container engine's full id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Entry {
    /// A run of the allocator began.
    Began {
        /// The program's version.
        version: String,
        /// The allocator's process id.
        pid: u32,
        /// The policy.
        policy: String,
        /// `engine` or `cgroup`.
        actuator: String,
        /// Nothing is written.
        dry_run: bool,
    },
    /// A run of the allocator ended.
    Ended {
        /// How many limits could not be restored: 0 is a clean end.
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
    /// The policy's decision about one job.
    Decided {
        /// The decision's number, from 1.
        number: u64,
        /// The job.
        job: String,
        /// The class that the policy gave it.
        class: String,
        /// The figure that the policy classed it by.
        score: Option<f64>,
        /// The share that the policy chose.
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
    /// A task of a gang was placed on a machine.
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
    /// A task of a gang was withdrawn from its machine.
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
    /// A gang waits.
    Waits {
        /// The job.
        job: String,
        /// What it waits for.
        why: String,
    },
    /// A limit was written, and read back.
    Limited {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// The limit before, in the limiter's words.
        from: String,
        /// The limit now.
        to: String,
        /// Why.
        why: String,
        /// How long the write took, in seconds.
        seconds: f64,
    },
    /// A limit could not be written.
    Failed {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// The limit that was to be written.
        to: String,
        /// Why it was not written.
        error: String,
    },
    /// A container has its original limits again, those from before the first write.
    Restored {
        /// Its container.
        container: String,
        /// What was restored, or what could not be.
        how: String,
    },
    /// A limit was changed outside of Paceline, or lost by a restart of the container.
    Drifted {
        /// The job.
        job: String,
        /// Its container.
        container: String,
        /// The limit that was written.
        written: String,
        /// The limit that was found.
        found: String,
        /// `reasserted` or `yielded`.
        response: String,
    },
    /// An order was given.
    Ordered {
        /// Who gave it.
        who: Who,
        /// What was ordered.
        command: Command,
        /// The answer's sentence.
        outcome: String,
        /// Whether it was carried out.
        done: bool,
    },
    /// The configuration was read again and applied.
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
        /// The container in which it continues, where that is another one.
        successor: Option<String>,
        /// The node that it left.
        from: String,
        /// The node that it is on.
        to: String,
        /// Why it was moved.
        reason: String,
        /// How long it took to save a checkpoint, in seconds.
        saving: Option<f64>,
        /// For how long it made no progress, in seconds.
        seconds: Option<f64>,
    },
    /// A move to another node was not carried out: the job stays where it is.
    Stayed {
        /// The job.
        job: String,
        /// Its container, where the move was begun.
        container: Option<String>,
        /// The node that it is on.
        from: String,
        /// The node that it was to be on.
        to: String,
        /// Why it was to be moved.
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
    /// A job caused too many entries: some were left out before this one.
    LeftOut {
        /// The job.
        job: String,
        /// How many.
        count: u64,
    },
    /// Entries could not be written here: the disk was full, or failed.
    Missed {
        /// How many.
        count: u64,
    },
    /// The number and hash of the last entry are kept in `audit.head`, here and from here on.
    HeadKept {
        /// Why this is said here.
        since: Since,
    },
    /// The last line was incomplete, because its writer was interrupted. It was removed.
    Torn {
        /// The length of the incomplete line.
        bytes: u64,
    },
}

/// Why an entry says that the log's head is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// The log begins here, or was written by a version that kept no head.
    Began,
    /// A new file of the log begins here.
    NextFile,
    /// The head was missing or unreadable, although it had been kept.
    Lost,
}

impl Entry {
    /// A decision's entries, one for each job. A job without a limit is given the whole node.
    pub fn from_decision(number: u64, decision: &Decision) -> impl Iterator<Item = Self> {
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
