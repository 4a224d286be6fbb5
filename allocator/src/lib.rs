//! The `paceline` command: its command line, configuration, log and exit codes.
//!
//! Other crates do the work. `paceline-runtime` hides the container engine, `paceline-node` manages one machine,
//! `paceline-cluster` many, and `paceline-server` shows them. `paceline-bench` compares policies; a daemon is built without it.
//!
//! Text from jobs and containers (names, reasons, errors) passes through `paceline_api::plain`
//! before it reaches a terminal. It shows control characters, marks of direction and invisible
//! characters as text. Tables and screens are pure functions of a snapshot (`cli::status`,
//! `cli::top`). `paceline-watch` has the whole terminal, and restores it when dropped.
//!
//! A build without the feature `watch` has no screens: `top` prints lines. One without the feature
//! `bench` answers the commands of `paceline-bench` with exit code 2, and says how to get them.

pub mod cli;
pub mod config;
pub mod exit;
pub mod log;
