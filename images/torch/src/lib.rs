//! What the workloads need of libtorch beside their models: images as tensors, layers that start as
//! PyTorch's do, optimizers, and the loop that trains, reports, and keeps checkpoints.

mod exit;
mod images;
mod layers;
mod optimizer;
mod parameters;
mod recent;
mod saver;
mod serve;
mod setup;
mod state;
mod trainer;

pub use crate::exit::{BadInput, exit_code};
pub use crate::images::{ImageData, Images};
pub use crate::layers::{conv2d, linear};
pub use crate::optimizer::{Adam, Optimizer, Remote, Sgd};
pub use crate::parameters::Parameters;
pub use crate::serve::serve;
pub use crate::setup::Setup;
pub use crate::trainer::{Job, Loss, Test, Trainer};
