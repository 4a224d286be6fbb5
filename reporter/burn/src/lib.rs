#![doc = include_str!("../README.md")]

mod phases;
mod renderer;
mod training_state;

pub use crate::renderer::PacelineRenderer;
