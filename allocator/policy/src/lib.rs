//! The allocation policies, as pure code.
//!
//! A policy turns a [`Frame`] of observations into a [`Decision`]. The [`Engine`] around it turns
//! events into frames and decisions into effects. Nothing here does I/O, reads a clock, or waits: time
//! is an argument. So the same code runs live, over recorded frames and in a simulator, and the same
//! input gives the same output.
//!
//! Conventions of this crate:
//! - a share is a fraction of one node's CPU, above 0 and at most 1 ([`Share`]);
//! - a value that is not known is `None`, never 0;
//! - no policy fails, and none emits NaN or infinity: arithmetic saturates;
//! - the order of jobs in a frame is irrelevant: they are matched by id;
//! - every decision for a job gives its reason.

pub mod cluster;
pub mod decision;
pub mod engine;
pub mod frame;
pub mod limiter;
pub mod names;
pub mod params;
pub mod per_job;
pub mod policies;
pub mod policy;
pub mod reason;
pub mod replay;
#[cfg(feature = "schema")]
pub mod schema;
pub mod signal;
pub mod unit;
pub mod variant;

pub use cluster::{GangFrame, GangPolicy, Scaling, TaskFrame, TaskPolicy};
pub use decision::{Decision, JobDecision, Outlook};
pub use engine::{AnyEngine, Cluster, Effect, Engine, Event, JobSpec, NodeSpec};
pub use frame::Frame;
pub use params::{ParamError, Params};
pub use per_job::PerJob;
pub use policy::Policy;
pub use unit::{JobId, Moment, NodeName, Share};
pub use variant::Variant;

/// The code of the page is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
