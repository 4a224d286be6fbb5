//! The allocator: it watches the opted-in containers of a machine, reads what their jobs report,
//! runs a policy, and adjusts the containers' CPU limits.
//!
//! The flow is observe → decide → actuate. [`observe`] reads and has no opinion, the policies are
//! pure and live in `paceline-policy`, [`actuate`] writes and puts back. [`driver`] joins them.
//!
//! What holds everywhere:
//! - a container without the label `paceline.enable=true` is never touched;
//! - a container's original limits are on disk before the first write to it;
//! - an endpoint is never trusted to be there, to be quick, or to make sense;
//! - nothing that one container does stops the others from being managed.

pub mod actuate;
pub mod audit;
pub mod bench;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod control;
mod crash;
pub mod driver;
pub mod exit;
mod figure;
pub mod json_lines;
pub mod labels;
pub mod live;
pub mod log;
pub mod migrate;
pub mod nodes;
pub mod observe;
pub mod samples;
pub mod signals;
mod stamp;
mod text;
mod token;
mod toml_error;
pub mod web;
