//! The laboratory: `paceline bench` runs the same jobs in real containers under each arm of a schedule;
//! `simulate`, `scenarios` and `fit` do the same with the simulator.
//!
//! A bench starts the containers of a schedule and, as a separate process, an allocator
//! (`paceline run`). So it measures the allocator as it is in production. The bench only observes: it
//! never enters a container and never changes a limit. It reads the jobs' reports from the allocator's
//! samples, and the times of their ends from the container engine.
//!
//! Each completed run is saved (`results`), so an interrupted bench continues where it stopped. The
//! bench removes all that it creates on the engine, whether it succeeds, fails or is interrupted.
//!
//! A bench continues where it was interrupted, and refuses to mix runs of two benches. A job is
//! known by its labels, because a moved job continues in another container. During a bench the lock
//! of the usual state folder is held. Each run's allocator has its own state folder, and its audit
//! log stays with the run.
//!
//! The arm `oracle` is the policy `srpt`: it orders jobs by the work that their owner declares
//! (`paceline.work`), less the steps reported. A frame carries that as `remaining`, which no other
//! policy reads. It is a yardstick, and part of comparisons only on request.
//!
//! `probe` measures the machine's speed, because a shared machine's speed varies and the kernel does
//! not count that. `host` measures what other work took. Both differ from run to run, and
//! predictions use the values of each run. `figure` and `text` serve the simulator's reports as
//! well.

mod allocator_process;
mod analysis;
mod args;
mod calibrate;
mod checkpoints;
mod claims;
pub mod command;
mod containers;
mod context;
mod execute;
mod experiments;
mod figure;
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
mod regression;
mod remarks;
mod report;
mod results;
mod run;
pub mod schedule;
mod stop;
mod table;
mod tail;
mod text;
mod time_left;

pub use args::BenchArgs;
