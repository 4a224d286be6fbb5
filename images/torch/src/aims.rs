//! The reporter's targets from a job's command line.

use paceline_reporter::Builder;
use paceline_workload::Targets;

/// The description of a job with the given targets.
pub(crate) fn aiming(mut job: Builder, targets: Targets) -> Builder {
    if let Some(loss) = targets.acceptable {
        job = job.acceptable(loss);
    }
    if let Some(loss) = targets.objective {
        job = job.objective(loss);
    }
    job
}
