//! The parts of the training workloads that do not need libtorch: finding and reading the images, their
//! order in training, the command line, signals, the log, and the files of checkpoints.
//!
//! Nothing here links libtorch, so that `fetch-data` and the unit tests work without it.

mod args;
mod checkpoint;
mod cifar;
mod dataset;
mod debian;
pub mod environment;
mod files;
mod idx;
mod kind;
mod locate;
mod losses;
mod mirror;
mod note;
mod rates;
mod role;
mod schedule;
mod seed;
mod shuffle;
mod stop;
mod targets;
mod threads;
mod train_log;

pub use crate::args::{DataArgs, TrainingArgs, UsageError, parse};
pub use crate::checkpoint::{Checkpoint, CheckpointError, Checkpoints, Identity, Metadata};
pub use crate::cifar::{Cifar10, CifarError};
pub use crate::dataset::{Dataset, DatasetError, Split};
pub use crate::idx::{Idx, IdxError};
pub use crate::kind::Kind;
pub use crate::locate::{LocateError, Places};
pub use crate::losses::LossFile;
pub use crate::note::note;
pub use crate::rates::WarmUpCosine;
pub use crate::role::{Role, RoleArgs};
pub use crate::schedule::Schedule;
pub use crate::seed::seed_of_step;
pub use crate::shuffle::Shuffle;
pub use crate::stop::Stop;
pub use crate::targets::Targets;
pub use crate::threads::Threads;
pub use crate::train_log::TrainLog;
