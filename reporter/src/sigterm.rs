//! Makes SIGTERM stop the loop after a step, and not in the middle of one.

use std::io;
use std::sync::Arc;

use signal_hook::consts::SIGTERM;
use signal_hook::flag;
#[cfg(unix)]
use signal_hook::low_level;

use crate::job::Job;

/// From now on SIGTERM sets the stop flag of the loop, if the job is set so.
pub(crate) fn watch(job: &Job) -> io::Result<()> {
    if job.settings().stop_on_sigterm {
        flag::register(SIGTERM, Arc::clone(job.stop()))?;
        // Elsewhere the loop sees the flag alone.
        #[cfg(unix)]
        low_level::pipe::register(SIGTERM, job.bell()?)?;
    }
    Ok(())
}
