use super::Switches;
use crate::frame;
use crate::unit::{JobId, Share};

/// A job that uses this part of its cap presses on it.
const PRESSED_USAGE: f64 = 0.95;
/// So does a job that was throttled for more than this part of the time. A single burst does not count.
const MAX_THROTTLED: f64 = 0.1;

/// One job as the limiter sees it at one moment. `None` means not known.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The job.
    pub job: JobId,
    /// The cap in force.
    pub in_force: Share,
    /// The minimum that its owner sets.
    pub min: Option<Share>,
    /// The maximum that its owner sets.
    pub max: Option<Share>,
    /// Its weight relative to other jobs.
    pub weight: f64,
    /// The cap under which the following values were measured.
    pub measured_under: Share,
    /// Its recent usage, as a fraction of the node.
    pub usage: Option<f64>,
    /// Whether it would have used more without its cap.
    pub pressed: bool,
    /// The mean duration of its recent batches, in seconds.
    pub batch_latency: Option<f64>,
    /// Its target batch duration, in seconds.
    pub budget: Option<f64>,
    /// The allowed slowdown compared with an equal share, if its owner sets one.
    pub max_slowdown: Option<f64>,
    /// The guards that commands have switched for it.
    pub switches: Switches,
    /// Whether it no longer reports.
    pub silent: bool,
}

/// Whether a job presses on its cap. A job without a cap does not.
pub(crate) fn is_pressed(cap: Share, usage: Option<f64>, throttled: Option<f64>) -> bool {
    let used = usage.is_some_and(|usage| usage >= PRESSED_USAGE * cap.get());
    let throttled_part = throttled.is_some_and(|throttled_part| throttled_part > MAX_THROTTLED);
    !cap.is_all() && (used || throttled_part)
}

/// The view of a job in a recorded frame.
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
            pressed: is_pressed(in_force, usage, known(job.throttled)),
            batch_latency: known(job.batch_latency),
            budget: known(job.targets.batch_latency).filter(|budget| *budget > 0.0),
            max_slowdown: known(limit.max_slowdown).filter(|slowdown| *slowdown >= 1.0),
            switches: Switches::default(),
            silent: limit.held,
        }
    }
}
