//! Training jobs that share CPU, as a discrete-event simulation.
//!
//! A [`Scenario`] says which jobs arrive when, on which nodes, and how they learn; a [`Run`] lets a
//! policy decide over them through the very [`paceline_policy::Engine`] that runs live, fed with
//! the same events. Nothing here does I/O, reads a clock or waits, and whatever is random follows
//! from a seed: the same scenario, policy and seed give the same bytes.

pub mod bounds;
pub mod claims;
pub mod compare;
pub mod curve;
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
pub mod sweep;
mod tempo;
pub mod trace;
mod world;

pub use outcome::Outcome;
pub use scenario::{Scenario, ScenarioError};
pub use tempo::Tempo;
pub use trace::Trace;
pub use world::{Done, Run};
