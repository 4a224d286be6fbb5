//! The audit log: what the allocator did and why, for people who ask afterwards.
//!
//! The log is a folder's `audit.jsonl`, one JSON object a line, and the older files that it
//! continues. Each line holds its own hash and that of the line before it. A line that is changed,
//! removed or inserted afterwards breaks the chain, and [`verify`] finds the place.
//!
//! A line's hash covers its own bytes without the member `hash`, which include the hash of the line
//! before. So `sed 's/"hash":"[0-9a-f]*",//' | tr -d '\n' | sha256sum` computes it.
//!
//! A writer locks the log for each entry and continues from its current end, so several processes
//! write one chain. A line that a crash cut short is removed and recorded. Readers take no lock: a
//! reader must not be able to delay a run. They open all files, then check that no file was added. A
//! thread syncs lines to the disk.
//!
//! Lines that are cut off at an end leave an intact chain. So the number and hash of the last entry
//! are kept in `audit.head`, with the number of the first one. A log of version 0.1.0 has no such
//! file. It is accepted as it is once; its entry `head-kept` shows that a head must be there later.
//! A user who can write the folder can rewrite the whole chain and its head; only a hash kept
//! elsewhere detects that (`paceline audit verify --anchor`).

mod chain_head;
pub mod entry;
mod files;
mod log;
pub mod read;
mod record;
mod sync;
pub mod verify;
mod words;

pub use entry::Entry;
pub use log::{Audit, AuditError, Rotation};
pub use record::{Link, LinkError, Record};
