//! Reads the machine and its containers: what they use and who owns a socket. Nothing here decides or
//! writes.
//!
//! An engine's event only says which container to look at. A survey lists all containers, and reads
//! all of them again every 10 seconds, because an event can be lost.
//!
//! CPU, memory and block I/O are read from the control group's files, and traffic from the network
//! namespace. Where the control group cannot be read, the engine's statistics are used.
//!
//! On the machine's own network, and on one that several opted-in containers share, who listens must
//! belong to the container or to its sidecar (`owner`). Otherwise the answer is ignored.
//!
//! Whatever a container could block runs on a thread that may be lost (`calls`).

pub mod calls;
mod listeners;
pub mod meters;
pub(crate) mod namespace;
pub mod networks;
pub mod node;
pub(crate) mod owner;
