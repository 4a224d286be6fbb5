//! Caps of a job whose owner sets a maximum, beside another job on a node that follows the policy.

use super::*;

const NAMES: [&str; 2] = ["a", "b"];

/// A job of the tests.
struct Task {
    /// Its work in node-seconds.
    work: f64,
    arrives: f64,
    /// Its owner's maximum, and the share that it tries to use, at a time.
    at: Box<dyn Fn(f64) -> (f64, f64)>,
}

/// The result of a run: the decision and the limits in force of each second, and the ends.
struct Done {
    decisions: Vec<Decision>,
    limits: Vec<[f64; 2]>,
    ends: [f64; 2],
}

impl Done {
    /// The limits of a job in these seconds.
    fn limits_of(&self, at: usize, seconds: std::ops::Range<usize>) -> Vec<f64> {
        self.limits[seconds].iter().map(|limits| limits[at]).collect()
    }
}

/// A job that can use the whole node.
fn whole(work: f64, arrives: f64) -> Task {
    Task { work, arrives, at: Box::new(|_| (1.0, 1.0)) }
}

/// Runs two jobs under the policy, which decides every second.
fn run(tasks: &[Task; 2], seconds: u32) -> Done {
    let mut policy = policy(&[]);
    let (mut used, mut uses, mut limits) = ([0.0_f64; 2], [0.0_f64; 2], [1.0_f64; 2]);
    let mut done = Done { decisions: Vec::new(), limits: Vec::new(), ends: [f64::INFINITY; 2] };
    for second in 0..seconds {
        let t = f64::from(second);
        let mut here: Vec<usize> = vec![0, 1];
        here.retain(|at| tasks[*at].arrives <= t && used[*at] < tasks[*at].work);
        let steps = |work: f64| crate::unit::whole(10.0 * work);
        let reported = |at: &usize| {
            let total = Some(steps(tasks[*at].work));
            let mut job = job(NAMES[*at], used[*at], steps(used[*at]), total);
            job.usage.cpu = Some(uses[*at]);
            (job.limit.cpu, job.limit.applied) = (Some(limits[*at]), Some(limits[*at]));
            job.limit.max = Some((tasks[*at].at)(t).0);
            job
        };
        let decision = policy.decide(&frame(t, here.iter().map(reported).collect()));
        for at in &here {
            limits[*at] = decision.limits[&id(NAMES[*at])].get().min((tasks[*at].at)(t).0);
        }
        // The kernel shares equally, up to limits and uses.
        let most = |at: &usize| limits[*at].min((tasks[*at].at)(t).1);
        let participant = |at: &usize| Participant { weight: 1.0, cap: most(at), left: 1.0 };
        let level = sharing::level(here.iter().map(participant), 1.0);
        for at in &here {
            uses[*at] = most(at).min(level);
            let left = tasks[*at].work - used[*at];
            if left <= uses[*at] {
                done.ends[*at] = t + left / uses[*at];
            }
            used[*at] += uses[*at];
        }
        done.decisions.push(decision);
        done.limits.push(limits);
    }
    done
}

#[test]
fn job_held_by_its_owners_maximum_lends_the_rest() {
    // The owner's maximum, and the use in a phase of low use and outside of it. "a" has about 80 s of work
    // left when "b" comes, and ends then under equal sharing.
    for (most, low, high, work, fair) in
        [(0.58, 0.40, 0.55, 112.0, 218.9), (0.5, 0.3, 0.48, 108.0, 226.1)]
    {
        let uses = move |t: f64| if (10.0..13.0).contains(&t) { low } else { high };
        let held = Task { work, arrives: 0.0, at: Box::new(move |t| (most, uses(t))) };
        let done = run(&[held, whole(100.0, 60.0)], 260);
        let rests = done.decisions[45..60].iter().all(|decision| decision.interval > 1.0);
        assert!(rests, "{most}: its measurement has ended");
        let lent = done.limits_of(1, 61..200);
        assert!(lent.iter().all(|limit| *limit > 0.4), "{most}: {lent:?}");
        // Both jobs use the whole node from 60 s on, for 180 s.
        let [a, b] = done.ends;
        assert!(a <= 1.02 * fair && b <= 60.0 + 1.02 * 180.0, "{most}: {a} {b}");
    }
}

#[test]
fn job_below_its_owners_maximum_is_measured_again() {
    // A job of one thread.
    let small = Task { work: 40.0, arrives: 0.0, at: Box::new(|_| (0.5, 0.2)) };
    let done = run(&[small, whole(300.0, 5.0)], 190);
    let lent = done.limits_of(1, 20..190);
    let measured = lent.iter().filter(|limit| **limit < 0.7).count();
    assert!((1..=8).contains(&measured), "{lent:?}");
    let own = done.limits_of(0, 150..151);
    assert!((own[0] - 0.27).abs() < 0.01, "{own:?}");
}

#[test]
fn job_whose_owner_lifts_its_maximum_is_measured_again() {
    // It can use half of the node in any case.
    let lifted = |t: f64| if t < 100.0 { (0.5, 0.48) } else { (1.0, 0.5) };
    let lifted = Task { work: 112.0, arrives: 0.0, at: Box::new(lifted) };
    let done = run(&[lifted, whole(100.0, 60.0)], 130);
    assert!(done.limits_of(0, 100..101)[0] > 0.99, "what it can use is unknown");
    let (own, lent) = (done.limits_of(0, 104..130), done.limits_of(1, 104..130));
    assert!(own.iter().all(|limit| *limit < 0.7), "{own:?}");
    assert!(lent.iter().all(|limit| *limit > 0.3), "{lent:?}");
}
