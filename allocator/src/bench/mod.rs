//! `paceline bench`: the same jobs on the real engine, once under each policy.
//!
//! A bench starts the containers of a schedule, and beside them an allocator as a process of its
//! own (`paceline run`), which is thus measured as it is in use. The bench itself only watches: it
//! never looks into a container and never touches a limit. What the jobs reported it reads from
//! the allocator's samples; when they ended, it asks the engine.
//!
//! Whatever it makes on the engine is removed again, whether it succeeds, fails or is interrupted.

mod allocator_process;
mod args;
mod arm;
mod calibrate;
mod claims;
mod containers;
pub mod experiments;
mod grid;
mod log_tail;
mod machine;
mod outcome;
mod predict;
mod progress;
mod record;
mod remarks;
mod report;
mod run;
pub mod schedule;
mod stamp;
mod stop;
mod story;
mod table;
mod tail;

pub use args::BenchArgs;
pub use run::{Outcome, run};
