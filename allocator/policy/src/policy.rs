//! The interface of a policy of jobs.

use std::collections::BTreeMap;
use std::fmt;

use crate::decision::Decision;
use crate::frame::Frame;

/// A policy of a single node: a frame and its own state in, a decision out.
///
/// It never fails, never panics and never depends on the order of jobs in the frame.
pub trait Policy: fmt::Debug + Send {
    /// Its name in commands, settings and decisions.
    fn name(&self) -> &'static str;

    /// Its parameters in force. Defaults may depend on the variant and on other parameters. Empty for a
    /// policy without parameters.
    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::new()
    }

    /// Whether it uses the targets that jobs reach, so that it must run at once when one is reached. Other
    /// policies would see two frames close together and mistake noise for progress.
    fn reacts_to_targets(&self) -> bool {
        true
    }

    /// Answers one frame. Frames come in the order of their time.
    fn decide(&mut self, frame: &Frame) -> Decision;
}
