//! The workloads' use of libtorch apart from their models: images as tensors, layers with PyTorch's
//! initial weights, optimizers, and the loop that trains, reports and keeps checkpoints.
//!
//! `Setup` prepares threads, seed and signals. `Trainer::run` gets the loss of a step and the test
//! after an epoch, and does the rest: it reports, logs, saves, stops and resumes. Randomness in a
//! step depends only on the seed and the step's number. Optimizers are our own, so their state is
//! part of a checkpoint. A resumed run therefore equals one that was never interrupted. A workload
//! is a model and a few lines of `main`.
//!
//! `gru` computes its own gradients, and passes them to libtorch as the gradients of a term that is
//! zero. So its loss is an ordinary tensor. A worker of the parameter server (`images/ps`) is one
//! more `Optimizer` to the loop. `images/harness` holds the tests that every workload must pass.
//! `images/compare` gives a model and its PyTorch twin the same weights, and compares outputs,
//! losses and gradients.

mod aims;
mod classify;
mod gru;
mod images;
mod layers;
mod loss;
mod optimizer;
mod parameters;
mod program;
mod recent;
mod replicas;
mod saver;
mod serve;
mod setup;
mod state;
mod trainer;
mod weights;

pub use crate::classify::classify;
pub use crate::gru::{Gru, States};
pub use crate::images::{ImageData, Images};
pub use crate::layers::{conv2d, linear};
pub use crate::loss::Loss;
pub use crate::optimizer::{Adam, Clipped, Optimizer, Remote, Scheduled, Sgd};
pub use crate::parameters::Parameters;
pub use crate::program::{BadInput, exit_code, run};
pub use crate::replicas::Replicas;
pub use crate::serve::serve;
pub use crate::setup::Setup;
pub use crate::trainer::{Job, Test, Trainer};
pub use crate::weights::load_weights;
