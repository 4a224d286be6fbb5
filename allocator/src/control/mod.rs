//! The Unix socket by which a running allocator is asked and told: one line of JSON, one line back.
//!
//! `"status"` is answered with the snapshot, `{"audit":{"last":20}}` with entries of the audit log,
//! `{"order":{"command":"pin","name":"vae","share":0.5}}` with what came of it. Whoever may connect
//! may ask; orders are taken from root and from the user who runs the allocator, whom the kernel
//! names.

mod client;
mod server;
mod socket;

use serde::{Deserialize, Serialize};

use crate::audit::Record;
use crate::live::{Command, Refusal, Snapshot};

pub use client::{AskError, ask};
pub use server::{Control, serve};
pub use socket::SocketError;

/// Where root's allocator listens.
pub const DEFAULT_PATH: &str = "/run/paceline/control.sock";

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// To do something.
    Order(Command),
    /// What is known now.
    Status,
    /// What stands in the audit log.
    Audit(Tail),
}

/// The last entries of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// How many at most; of one job, how many decisions.
    pub last: u16,
    /// Only those about one job.
    #[serde(default)]
    pub job: Option<String>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The order was carried out: the driver's sentence.
    Done(String),
    /// It was not.
    Refused(Refusal),
    /// Who asks may not order anything.
    Denied(String),
    /// The request is not one, or cannot be answered.
    Failed(String),
    /// The snapshot.
    Status(Box<Snapshot>),
    /// Entries, oldest first.
    Audit(Vec<Record>),
}

#[cfg(test)]
mod tests;
