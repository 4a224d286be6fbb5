//! Explains what is read of a log, and suggests patterns for what is not. Pure.

mod collector;
mod line;
mod numbers;
mod sample;
mod suggest;

pub use collector::Collector;
pub use line::{Explained, Explainer};
pub use sample::Sample;
pub use suggest::{Suggestion, suggest};
