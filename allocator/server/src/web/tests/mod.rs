//! The server as a client sees it.

mod client;
pub(super) mod example;
mod files;
mod guests;
mod pages;
mod refusals;
mod tls;
