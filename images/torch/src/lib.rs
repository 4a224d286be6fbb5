//! What the workloads need of libtorch beside their models: images as tensors, layers that start as
//! PyTorch's do, and the setting up of a run.

mod images;
mod layers;
mod run;

pub use crate::images::Images;
pub use crate::layers::{conv2d, linear};
pub use crate::run::Run;
