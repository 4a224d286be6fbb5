//! `paceline bench`: the same jobs on the real engine, under each arm of a schedule.
//!
//! A bench starts the containers of a schedule, and beside them an allocator as a process of its
//! own (`paceline run`), which is thus measured as it is in use. The bench itself only watches: it
//! never looks into a container and never touches a limit. What the jobs reported it reads from
//! the allocator's samples; when they ended, it asks the engine.
//!
//! Runs are kept one by one (`results`), so a bench that was interrupted goes on where it was.
//! Whatever it makes on the engine is removed again, whether it succeeds, fails or is interrupted.

mod allocator_process;
mod args;
mod calibrate;
mod checkpoints;
mod claims;
mod command;
mod containers;
mod execute;
pub mod experiments;
mod grid;
mod host;
mod log_tail;
mod machine;
mod moves;
mod outcome;
mod plan;
mod predict;
mod probe;
mod progress;
mod promise;
mod record;
mod remarks;
mod report;
mod results;
mod run;
pub mod schedule;
mod stop;
mod story;
mod table;
mod tail;
mod time_left;

pub use args::BenchArgs;
pub use command::{Outcome, run};
