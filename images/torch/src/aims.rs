//! Tells a reporter what a job is to reach.

use paceline_reporter::Builder;
use paceline_workload::Targets;

/// The description of a job with the targets that there are.
pub(crate) fn aiming(mut job: Builder, targets: Targets) -> Builder {
    if let Some(loss) = targets.acceptable {
        job = job.acceptable(loss);
    }
    if let Some(loss) = targets.objective {
        job = job.objective(loss);
    }
    job
}
