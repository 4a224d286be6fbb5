//! Reads what a training job prints and writes, and publishes its loss and batch latency.
//!
//! Bytes become [`observation::Observation`]s by pure code: [`terminal`] turns a stream of bytes
//! into lines as a terminal would show them, [`grammar`] reads lines; [`tfevents`] and [`csv`]
//! read files of other forms, [`names`] knows what the names in them mean, and [`follow`] brings the
//! bytes of a log that is being written.

pub mod cli;
pub mod clock;
pub mod csv;
pub mod desk;
pub mod follow;
pub mod grammar;
pub mod job;
pub mod names;
mod number;
pub mod observation;
pub mod push;
pub mod source;
pub mod state;
pub mod terminal;
pub mod tfevents;
