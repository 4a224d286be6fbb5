//! Inference in batches, and how long each takes, from its arrival to its answer.
//!
//! In a closed loop the next batch arrives when the one before is done: its latency is the time that
//! the service takes. In an open loop batches arrive whatever the service does, and those that come
//! too soon wait: with the load, the latency grows without the service becoming slower.

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
pub use self::queue::{MOST_WAITING, Queue};
pub use self::summary::Summary;

/// How batches are served.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many batches there are, those that are turned away included.
    pub batches: u64,
    /// How many arrive in a second, on the average; without it, the loop is closed.
    pub arrivals: Option<f64>,
    /// What the times of arrival follow from.
    pub seed: u64,
    /// The latency that is asked for.
    pub target: Option<Duration>,
    /// Every so many batches have a line.
    pub log_interval: u64,
}

/// A batch that has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// From its arrival to its answer.
    pub latency: Duration,
    /// From its beginning to its answer.
    pub service: Duration,
    /// How many batches wait now.
    pub waiting: usize,
}

/// Serves all batches, or those that there is time for until it is to stop. `serve` is called with the
/// number of each batch, counted from 0.
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

/// The latency that is asked for: the environment's, which the reporter knows, or the plan's.
fn target(plan: &Plan, reporter: &Reporter) -> Option<Duration> {
    let seconds = reporter.progress().and_then(|progress| progress.targets.batch_latency);
    seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()).or(plan.target)
}

fn refused(queue: Option<&Queue>) -> u64 {
    queue.map_or(0, Queue::refused)
}
