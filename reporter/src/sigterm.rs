//! Ending at SIGTERM when the loop is ready to, and not in the middle of a step.

use std::io;
use std::sync::Arc;

use signal_hook::consts::SIGTERM;
use signal_hook::{flag, low_level};

use crate::job::Job;

/// From now on, SIGTERM tells the loop to stop, if that is how the job is set.
pub(crate) fn watch(job: &Job) -> io::Result<()> {
    if job.settings().stop_on_sigterm {
        flag::register(SIGTERM, Arc::clone(job.stop()))?;
        low_level::pipe::register(SIGTERM, job.bell()?)?;
    }
    Ok(())
}
