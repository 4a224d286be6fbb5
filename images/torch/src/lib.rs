//! What the workloads need of libtorch beside their models: images as tensors, layers that start as
//! PyTorch's do, optimizers, and the loop that trains, reports, and keeps checkpoints.

mod aims;
mod exit;
mod gru;
mod images;
mod layers;
mod loss;
mod optimizer;
mod parameters;
mod recent;
mod replicas;
mod saver;
mod serve;
mod setup;
mod state;
mod trainer;
mod weights;

pub use crate::exit::{BadInput, exit_code};
pub use crate::gru::{Gru, States};
pub use crate::images::{ImageData, Images};
pub use crate::layers::{conv2d, linear};
pub use crate::loss::Loss;
pub use crate::optimizer::{Adam, Clipped, Optimizer, Remote, Scheduled, Sgd};
pub use crate::parameters::Parameters;
pub use crate::replicas::Replicas;
pub use crate::serve::serve;
pub use crate::setup::Setup;
pub use crate::trainer::{Job, Test, Trainer};
pub use crate::weights::load_weights;
