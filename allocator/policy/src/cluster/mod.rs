//! Placement in a cluster: frames and decisions of policies that place whole distributed jobs.

pub mod gangs;
mod tasks;

pub use gangs::{GangFrame, Scaling};
pub use tasks::{Bound, Pending, Placement, Role, Task, TaskFrame};

use std::fmt;

/// A policy that places the tasks of distributed jobs: a frame in, a placement out.
///
/// It never fails, never panics and never depends on the order of nodes or tasks in the frame.
pub trait TaskPolicy: fmt::Debug + Send {
    /// Its name, as a user gives it and as its placements carry it.
    fn name(&self) -> &'static str;

    /// Answers one frame. Frames come in the order of their time.
    fn decide(&mut self, frame: &TaskFrame) -> Placement;
}

/// A policy that admits and scales distributed jobs: a frame and its own state in, a scaling out.
///
/// It never fails, never panics and never depends on the order of nodes or jobs in the frame.
pub trait GangPolicy: fmt::Debug + Send {
    /// Its name, as a user gives it and as its scalings carry it.
    fn name(&self) -> &'static str;

    /// Answers one frame. Frames come in the order of their time.
    fn decide(&mut self, frame: &GangFrame) -> Scaling;
}
