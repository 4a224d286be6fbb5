#![doc = include_str!("../README.md")]

mod narrator;
mod renderer;
mod story;

pub use crate::renderer::PacelineRenderer;
