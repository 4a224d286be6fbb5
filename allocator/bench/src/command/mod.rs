//! The commands of the laboratory: `simulate`, `scenarios`, `fit`, `bench` and `experiments`.

pub mod bench;
mod compared;
pub mod experiments;
pub mod fit;
pub mod scenarios;
pub mod simulate;
