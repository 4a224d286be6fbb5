//! Inference in batches, and the latency of each, from its arrival to its answer.
//!
//! In a closed loop the next batch arrives when the previous one is done: its latency is the time of
//! the service. In an open loop batches arrive independently of the service, and those that arrive
//! too early wait. With the load, the latency grows without the service becoming slower.

mod arrivals;
mod clock;
mod queue;
mod summary;

use std::io::{Write, stdout};
use std::time::Duration;

use paceline_reporter::Reporter;
use paceline_workload::Stop;

pub use self::arrivals::Arrivals;
use self::clock::Clock;
pub use self::queue::{MAX_WAITING, Queue};
pub use self::summary::Summary;

/// The settings of a run of inference.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of batches, including refused ones.
    pub batches: u64,
    /// The mean number of arrivals per second; without it, the loop is closed.
    pub arrivals: Option<f64>,
    /// The seed of the times of arrival.
    pub seed: u64,
    /// The target latency.
    pub target: Option<Duration>,
    /// The number of batches per line of the log.
    pub log_interval: u64,
}

/// A batch that has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The time from its arrival to its answer.
    pub latency: Duration,
    /// The time from its start to its answer.
    pub service: Duration,
    /// The number of batches waiting now.
    pub waiting: usize,
}

/// Serves all batches, or as many as there is time for before it must stop. `serve` is called with
/// the number of each batch, counted from 0.
pub fn run(
    plan: &Plan,
    reporter: &Reporter,
    stop: &Stop,
    mut serve: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<Summary> {
    let mut summary = Summary::new(target(plan, reporter));
    let mut queue = plan.arrivals.map(|rate| Queue::new(Arrivals::new(rate, plan.seed)));
    let clock = Clock::start();
    while !stop.requested() && summary.served() + refused(queue.as_ref()) < plan.batches {
        let arrival = match &mut queue {
            None => clock.now(),
            Some(queue) => match queue.take(clock.now()) {
                Ok(arrival) => arrival,
                Err(next) => {
                    clock.wait_until(next);
                    continue;
                }
            },
        };
        let begin = clock.now();
        serve(summary.served())?;
        let end = clock.now();
        let waiting = queue.as_mut().map_or(0, |queue| queue.waiting(end));
        let latency = end.saturating_sub(arrival);
        let service = end.saturating_sub(begin);
        reporter.record(None, Some(latency));
        summary.add(Served { latency, service, waiting });
        reporter.step(summary.served());
        if (summary.served() - 1).is_multiple_of(plan.log_interval) {
            writeln!(stdout(), "{}", summary.line(plan.batches))?;
        }
    }
    summary.refused(refused(queue.as_ref()));
    Ok(summary)
}

/// The target latency: that of the environment, which the reporter knows, or that of the plan.
fn target(plan: &Plan, reporter: &Reporter) -> Option<Duration> {
    let seconds = reporter.progress().and_then(|progress| progress.targets.batch_latency);
    seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()).or(plan.target)
}

fn refused(queue: Option<&Queue>) -> u64 {
    queue.map_or(0, Queue::refused)
}
