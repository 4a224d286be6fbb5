//! One machine: what runs on it, what a policy decides about it, and the limits that follow.
//!
//! The flow is observe → decide → write. [`observe`] and [`endpoint`] only read. The policies are pure
//! and live in `paceline-policy`. [`limits`] writes and restores limits, and [`migration`] moves jobs.
//! `paceline-runtime` hides the container engine. [`controller`] joins them. A manager of many machines
//! acts here through [`migration::agent_actions`].
//!
//! Invariants:
//! - a container that has not opted in, by its label or by an order, is never changed;
//! - a container's original limits are recorded before the first write to it;
//! - an endpoint is never trusted to exist, to be quick, or to make sense;
//! - no container can stop the others from being managed.

pub mod controller;
pub mod crash;
pub mod endpoint;
pub mod limits;
pub mod migration;
pub mod observe;
