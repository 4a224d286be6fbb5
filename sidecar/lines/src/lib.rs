//! What a line of a training log is made of, for all parsers.
//!
//! [`terminal`] splits bytes into lines as a terminal shows them, without the prefixes of launchers and
//! loggers. [`translate`] turns labels in other languages into English ones, [`scan`] parses numbers as
//! programs print them, and [`names`] tells which names are losses, counters and times. Every parser
//! turns its input into [`observation::Observation`]s. Pure.

pub mod bytes;
pub mod names;
pub mod number;
pub mod observation;
pub mod scan;
pub mod terminal;
pub mod translate;
