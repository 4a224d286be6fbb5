//! A discrete-event simulation of training jobs that share CPU.
//!
//! A [`Scenario`] defines which jobs arrive when, on which nodes, and how they learn. A [`Run`]
//! lets a policy decide over them through the same [`paceline_policy::Engine`] that runs live, with
//! the same events. This crate does no I/O, reads no clock and never waits. All randomness follows
//! from a seed: the same scenario, policy and seed give the same bytes.
//!
//! Each job draws from its own random streams. A job's state exists from its arrival to its end;
//! after that only its results remain. Nodes fail and jobs crash by events as well: what ran there
//! is gone, and appears again with the work of its last checkpoint. A job may have a start, which
//! uses CPU and is in no frame. A process that reads data and builds a model has no endpoint yet.
//!
//! [`claims`] compares what papers print with our results and with the bound. Where a paper prints a
//! figure for several intervals, the one of the same interval counts. `scenarios run --markdown`
//! prints both, `make results` writes them to `allocator/sim/RESULTS.md`, and a test compares them. A run can be watched
//! ([`trace`]): at most as many moments as a picture can show are kept, and a run that is not
//! watched pays nothing. [`sweep`] varies one or two parameters of a policy.

pub mod bounds;
pub mod claims;
pub mod compare;
pub mod curve;
mod effort;
pub mod fit;
pub mod fluid;
pub mod gangs;
mod interval;
pub mod metrics;
mod number;
pub mod outcome;
mod random;
pub mod residuals;
pub mod satisfaction;
pub mod scenario;
mod speed_profile;
mod stats;
pub mod sweep;
pub mod trace;
mod world;

pub use outcome::Outcome;
pub use scenario::{Scenario, ScenarioError};
pub use speed_profile::SpeedProfile;
pub use trace::Trace;
pub use world::{Done, Run};
