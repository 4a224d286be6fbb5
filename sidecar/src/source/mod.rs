//! Where observations come from: each source reads on a thread of its own.

pub mod child;
pub mod datagram;
pub mod docker;
pub mod files;
pub mod text;
