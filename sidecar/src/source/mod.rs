//! The sources of observations. Each reads in a thread of its own.

pub mod child;
pub mod datagram;
pub mod docker;
pub mod files;
pub mod text;
mod unread;
