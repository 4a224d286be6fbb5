//! A fluid model of a node that follows the policy, and the same jobs under equal sharing.

use super::*;

/// The work of a step, in node-seconds. It is small, so that sizes are soon known almost exactly.
const STEP: f64 = 0.0002;
/// The longest run of a test, in seconds.
const MAX_SECONDS: f64 = 5000.0;

/// A job of the tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) arrive: f64,
    /// Its steps, and the number that it reports: `None` if it reports none.
    pub(super) steps: u32,
    pub(super) stated: Option<u32>,
    pub(super) weight: f64,
    pub(super) cap: f64,
    /// Whether its owner sets the cap, so that the policy knows it.
    pub(super) owners: bool,
}

impl Task {
    pub(super) fn work(&self) -> f64 {
        STEP * f64::from(self.steps)
    }
}

/// One task while it runs.
struct Live {
    task: Task,
    name: JobId,
    used: f64,
    /// Its usage as of the last frame.
    reported: f64,
    limit: f64,
    rate: f64,
}

/// The result of a run: the end of each task, and all decisions.
pub(super) struct Done {
    pub(super) ends: Vec<f64>,
    pub(super) decisions: Vec<Decision>,
}

/// When each task ends if all share equally by weight, up to their caps.
pub(super) fn fair_ends(tasks: &[Task]) -> Vec<f64> {
    let mut ends = vec![f64::INFINITY; tasks.len()];
    let mut left: Vec<f64> = tasks.iter().map(Task::work).collect();
    let mut now = 0.0;
    loop {
        let here: Vec<usize> =
            (0..tasks.len()).filter(|at| tasks[*at].arrive <= now && left[*at] > 0.0).collect();
        let participant =
            |at: &usize| Participant { weight: tasks[*at].weight, cap: tasks[*at].cap, left: 1.0 };
        let level = sharing::level(here.iter().map(participant), 1.0);
        let rate = |at: usize| tasks[at].cap.min(tasks[at].weight * level);
        let arrivals = tasks.iter().map(|task| task.arrive).filter(|at| *at > now);
        let done = here.iter().map(|at| now + left[*at] / rate(*at));
        let next = arrivals.chain(done).fold(f64::INFINITY, f64::min);
        if next.is_infinite() {
            return ends;
        }
        for at in here {
            let work = rate(at) * (next - now);
            left[at] = if left[at] - work < 1e-9 { 0.0 } else { left[at] - work };
            if left[at] <= 0.0 {
                ends[at] = next;
            }
        }
        now = next;
    }
}

/// Runs tasks under the policy. The policy decides at every arrival and end, and after its interval.
pub(super) fn run(policy: &mut Paceline, tasks: &[Task]) -> Done {
    let mut done = Done { ends: vec![f64::INFINITY; tasks.len()], decisions: Vec::new() };
    let mut waiting: Vec<usize> = (0..tasks.len()).collect();
    let mut here: Vec<(usize, Live)> = Vec::new();
    let (mut now, mut last) = (0.0_f64, 0.0_f64);
    let mut wake = tasks.iter().map(|task| task.arrive).fold(f64::INFINITY, f64::min);
    while now < MAX_SECONDS && !(waiting.is_empty() && here.is_empty()) {
        let arrivals = waiting.iter().map(|at| tasks[*at].arrive);
        let ends = here.iter().map(|(_, live)| now + (live.task.work() - live.used) / live.rate);
        let next = arrivals.chain(ends).fold(wake, f64::min).max(now);
        for (_, live) in &mut here {
            live.used += live.rate * (next - now);
        }
        now = next;
        here.retain(|(at, live)| {
            let over = live.used >= live.task.work() - 1e-7;
            if over {
                done.ends[*at] = now;
            }
            !over
        });
        waiting.retain(|at| {
            let comes = tasks[*at].arrive <= now;
            if comes {
                let name = id(&format!("job-{at:02}"));
                let task = tasks[*at];
                here.push((
                    *at,
                    Live { task, name, used: 0.0, reported: 0.0, limit: 1.0, rate: 0.0 },
                ));
            }
            !comes
        });
        let decision = policy.decide(&frame(now, reported(&mut here, now - last)));
        last = now;
        wake = now + decision.interval;
        for (_, live) in &mut here {
            live.limit = decision.limits[&live.name].get();
        }
        flow(&mut here);
        done.decisions.push(decision);
    }
    done
}

/// The jobs of a frame.
fn reported(here: &mut [(usize, Live)], seconds: f64) -> Vec<Job> {
    let job = |(_, live): &mut (usize, Live)| {
        let usage = if seconds > 0.0 { Some((live.used - live.reported) / seconds) } else { None };
        live.reported = live.used;
        Job {
            cpu_seconds: Some(live.used * CPUS),
            step: Some(crate::unit::whole(live.used / STEP + 1e-4)),
            total_steps: live.task.stated.map(u64::from),
            weight: Some(live.task.weight),
            usage: Usage { cpu: usage, ..Usage::default() },
            limit: Limit {
                cpu: Some(live.limit),
                applied: Some(live.limit),
                max: live.task.owners.then_some(live.task.cap),
                ..Limit::default()
            },
            ..Job::new(live.name.clone())
        }
    };
    here.iter_mut().map(job).collect()
}

/// The kernel shares equally, up to limits and caps.
fn flow(here: &mut [(usize, Live)]) {
    let most = |live: &Live| live.limit.min(live.task.cap);
    let participant =
        |(_, live): &(usize, Live)| Participant { weight: 1.0, cap: most(live), left: 1.0 };
    let level = sharing::level(here.iter().map(participant), 1.0);
    for (_, live) in here {
        live.rate = level.min(most(live));
    }
}

#[test]
fn fair_ends_are_those_of_weighted_sharing() {
    let task = |arrive, steps, weight| Task {
        arrive,
        steps,
        stated: None,
        weight,
        cap: 1.0,
        owners: false,
    };
    let ends = fair_ends(&[task(0.0, 10_000, 1.0), task(0.0, 10_000, 3.0), task(1.0, 5_000, 1.0)]);
    for (end, expected) in ends.into_iter().zip([5.0, 19.0 / 6.0, 4.0 + 1.0 / 6.0]) {
        assert!((end - expected).abs() < 0.5, "{end} {expected}");
    }
}
