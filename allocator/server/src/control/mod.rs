//! The Unix socket for requests to a running allocator. A connection carries one request: HTTP/1.1
//! if its first byte is an upper-case letter, else one line of JSON.
//!
//! As JSON, the answer to `"status"` is the snapshot, and that to `{"audit":{"last":20}}` is entries
//! of the audit log. The answer to `{"order":{"command":"pin","name":"vae","share":0.5}}` is the
//! result of the order. Each answer is a [`Reply`] in one line.
//!
//! As HTTP, the socket has all routes of the [page](crate::web), and two more. Their answers are the
//! same lines:
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/audit?last=20&job=NAME` | entries of the audit log; the job is optional |
//! | `POST /v1/orders`, with a [`Command`] as the body | the result of the order |
//!
//! A reply has the status 200, or 409 if the order was refused. It has 403 if the client may not
//! give orders, and 503 if the allocator is busy. An invalid request has 400, 405, 408 or 413. An
//! unreadable audit log has 500.
//!
//! Every process that can connect may read. Only root and the user who runs the allocator may give
//! orders; the kernel identifies the user (`SO_PEERCRED`). The owner of a job outside containers may
//! give some orders about that job (`owners`).
//!
//! The socket's file is created under another name, closed to others, and then renamed: it is never
//! open and never incomplete. A lock beside it refuses a second allocator, and lets a successor
//! replace a dead run's file. A request line, head or body has at most 16 KiB, and each must
//! arrive within 2 s. Root and the user who runs the allocator have 16 connections, and all other users
//! together have 16 others. Of each kind, 112 more clients wait, and any beyond that are disconnected
//! (`places`). At most 8 connections have events.

mod client;
mod owners;
mod places;
mod requests;
mod server;
mod socket;

use paceline_api::audit::Record;
use paceline_api::live::{Command, Refusal, Snapshot};
use serde::{Deserialize, Serialize};

pub use client::{AskError, ask};
pub use requests::routes;
pub use server::{Control, serve};
pub use socket::SocketError;

/// The default path of the socket.
pub const DEFAULT_PATH: &str = "/run/paceline/control.sock";

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// An order.
    Order(Command),
    /// The current snapshot.
    Status,
    /// Entries of the audit log.
    Audit(Tail),
}

/// The last entries of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// The largest number of entries or, with a job, of decisions.
    pub last: u16,
    /// Only entries about this job.
    #[serde(default)]
    pub job: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The order was carried out; the controller's sentence.
    Done(String),
    /// The order was refused.
    Refused(Refusal),
    /// The client may not give orders.
    Denied(String),
    /// The request is invalid or cannot be answered.
    Failed(String),
    /// The snapshot.
    Status(Box<Snapshot>),
    /// Entries, oldest first.
    Audit(Vec<Record>),
}

#[cfg(test)]
mod tests;
