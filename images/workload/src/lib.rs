//! What the training workloads share beside libtorch: finding and reading the images, the order in
//! which they are trained on, the command line, signals, and the log.
//!
//! Nothing here links libtorch, so that `fetch-data` and the unit tests do without it.

mod args;
mod dataset;
mod debian;
mod files;
mod idx;
mod kind;
mod locate;
mod mirror;
mod note;
pub mod openmp;
mod schedule;
mod stop;
mod targets;
mod train_log;

pub use crate::args::TrainingArgs;
pub use crate::dataset::{Dataset, DatasetError, Split};
pub use crate::idx::{Idx, IdxError};
pub use crate::kind::Kind;
pub use crate::locate::{LocateError, Places};
pub use crate::note::note;
pub use crate::schedule::Schedule;
pub use crate::stop::Stop;
pub use crate::targets::Targets;
pub use crate::train_log::TrainLog;
