use super::Switches;
use crate::frame;
use crate::unit::{JobId, Share};

/// A job that uses this much of its cap presses on it.
const PRESSED: f64 = 0.95;
/// So does one that stood at its cap for more than this share of the time: a single burst does not
/// count.
const STOOD: f64 = 0.1;

/// One job as the limiter sees it at one moment. What is not known is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The job.
    pub job: JobId,
    /// The cap in force.
    pub in_force: Share,
    /// The job's own least share.
    pub min: Option<Share>,
    /// The job's own largest share.
    pub max: Option<Share>,
    /// Its weight beside other jobs.
    pub weight: f64,
    /// The cap under which what follows was measured.
    pub measured_under: Share,
    /// What it used of the node of late.
    pub usage: Option<f64>,
    /// Whether it could have used more at that time than its cap let it.
    pub pressed: bool,
    /// The mean duration in seconds of the batches that it began and ended of late.
    pub batch_latency: Option<f64>,
    /// The batch duration that it is to keep.
    pub budget: Option<f64>,
    /// By how much it may be slowed down beside an equal share, where its owner says so.
    pub max_slowdown: Option<f64>,
    /// The guards that somebody has switched for it.
    pub switches: Switches,
    /// Whether it has gone silent.
    pub silent: bool,
}

/// Whether a job presses on its cap: that takes one.
pub(crate) fn presses(cap: Share, usage: Option<f64>, throttled: Option<f64>) -> bool {
    let used = usage.is_some_and(|usage| usage >= PRESSED * cap.get());
    let stood = throttled.is_some_and(|stood| stood > STOOD);
    !cap.is_all() && (used || stood)
}

/// What a recorded frame tells of a job.
impl From<&frame::Job> for View {
    fn from(job: &frame::Job) -> Self {
        let share = |x: Option<f64>| x.filter(|x| *x > 0.0).map(Share::nearest);
        let known = |x: Option<f64>| x.filter(|x| x.is_finite());
        let limit = &job.limit;
        let in_force = share(limit.applied).or(limit.chosen()).unwrap_or(Share::ALL);
        let usage = known(job.usage.cpu).map(|usage| usage.clamp(0.0, 1.0));
        Self {
            job: job.id.clone(),
            in_force,
            measured_under: in_force,
            min: share(limit.min),
            max: share(limit.max),
            weight: known(job.weight).filter(|weight| *weight > 0.0).unwrap_or(1.0),
            usage,
            pressed: presses(in_force, usage, known(job.throttled)),
            batch_latency: known(job.batch_latency),
            budget: known(job.targets.batch_latency).filter(|budget| *budget > 0.0),
            max_slowdown: known(limit.max_slowdown).filter(|slowdown| *slowdown >= 1.0),
            switches: Switches::default(),
            silent: limit.held,
        }
    }
}
