//! `fifo`'s reasons.

use std::fmt;

use super::kod2::TaskCounts;

/// How many of a job's tasks are bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The tasks that are bound.
    pub done: TaskCounts,
    /// The tasks that it needs.
    pub needs: TaskCounts,
    /// Whether that is all of its tasks.
    pub complete: bool,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, needs, complete } = self;
        write!(
            f,
            "{} of {} ps and {} of {} workers bound",
            done.servers, needs.servers, done.workers, needs.workers
        )?;
        f.write_str(if *complete {
            ": complete"
        } else {
            ": the others fit on no node, the bound ones keep their capacity"
        })
    }
}
