//! Properties that hold for all frames.

use proptest::prelude::*;

use super::tests::{chosen, decision, in_force, limiter, quota};
use super::*;
use crate::frame::{Job, Limit, Usage};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn figure() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        (0.0..=1.0).prop_map(Some),
        prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
            .prop_map(Some),
        any::<f64>().prop_map(Some),
    ]
}

fn share() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![Just(None), (0.001..=1.0).prop_map(Some), figure()]
}

fn job(name: &'static str) -> impl Strategy<Value = Job> {
    let limit = (share(), share(), share(), share(), figure(), any::<bool>());
    let figures = (figure(), figure(), figure(), figure(), figure());
    (limit, figures).prop_map(move |(limit, (cpu, throttled, latency, budget, weight))| {
        let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{name}"}}]}}"#));
        let mut job = frame.unwrap().jobs.remove(0);
        let (cpu_limit, applied, min, max, max_slowdown, held) = limit;
        job.limit = Limit { cpu: cpu_limit, applied, min, max, max_slowdown, held };
        job.usage = Usage { cpu, ..Usage::default() };
        (job.throttled, job.batch_latency, job.weight) = (throttled, latency, weight);
        job.targets.batch_latency = budget;
        job
    })
}

/// Any of the jobs, in any order.
fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let all: Vec<_> = NAMES.into_iter().map(job).collect();
    (all, prop::sample::subsequence(NAMES.to_vec(), 0..=NAMES.len()))
        .prop_map(|(jobs, names)| {
            jobs.into_iter().filter(|job| names.contains(&job.id.as_str())).collect::<Vec<_>>()
        })
        .prop_shuffle()
}

fn settings() -> impl Strategy<Value = LimiterSettings> {
    let ways = vec![Enforcement::Quota, Enforcement::Shares, Enforcement::QuotaLeftover];
    let slew = (0.01..=1.0, prop::option::of(0.01..10.0))
        .prop_map(|(max_decrease, max_increase)| Slew { max_decrease, max_increase });
    let fairness = (1.0..10.0).prop_map(|max_slowdown| Fairness { max_slowdown });
    let canary =
        (1..4_u32, 1.0..100.0).prop_map(|(reports, quarantine)| Canary { reports, quarantine });
    let guards = (prop::option::of(slew), prop::option::of(fairness), prop::option::of(canary));
    (prop::sample::select(ways), guards).prop_map(|(enforcement, (slew, fairness, canary))| {
        LimiterSettings { enforcement, slew, fairness, canary }
    })
}

/// Frames, the policy's choice for each name in each frame (`None`: no choice), and seconds.
type Run = Vec<(Vec<Job>, Vec<Option<f64>>, f64)>;

fn run() -> impl Strategy<Value = Run> {
    let shares = prop::collection::vec(prop::option::of(0.0..=1.0), NAMES.len());
    // Whole seconds: their sums are exact.
    prop::collection::vec((jobs(), shares, (1..100_u32).prop_map(f64::from)), 1..8)
}

/// Each frame of a run with its decision.
fn decided(run: Run) -> Vec<(Frame, Decision)> {
    let mut t = 0.0;
    let mut decided = Vec::new();
    for (jobs, shares, seconds) in run {
        t += seconds;
        let frame = Frame { t, jobs, ..Frame::default() };
        let named = NAMES.into_iter().zip(shares);
        let running = |name: &str| frame.jobs.iter().any(|job| job.id.as_str() == name);
        let named: Vec<_> = named
            .filter_map(|(name, share)| Some((name, share.filter(|_| running(name))?)))
            .collect();
        let decision = decision(&frame, chosen(&named));
        decided.push((frame, decision));
    }
    decided
}

proptest! {
    #[test]
    fn every_job_has_a_share_within_its_bounds_or_is_left_alone(
        settings in settings(),
        run in run(),
    ) {
        let mut limiter = limiter(settings);
        for (frame, decision) in decided(run) {
            let effective = limiter.effective(&frame, &decision);
            prop_assert_eq!(effective.len(), frame.jobs.len());
            for job in &frame.jobs {
                let Effective { share, why } = effective[&job.id];
                prop_assert!(share.get() > 0.0 && share.get() <= 1.0);
                prop_assert!(!why.to_string().is_empty());
                let view = View::from(job);
                let bounds = limiter.rules.bounds(&view, false);
                if !view.silent {
                    prop_assert!(share.get() >= bounds.floor && share.get() <= bounds.ceiling, "{why:?}");
                } else if settings.enforcement != Enforcement::Shares {
                    prop_assert!(share >= view.in_force);
                }
            }
        }
    }

    #[test]
    fn repeated_call_gives_the_same_answer_after_changes_apply(
        settings in settings(),
        run in run(),
    ) {
        let mut limiter = limiter(settings);
        for (frame, decision) in decided(run) {
            let mut views: Vec<View> = frame.jobs.iter().map(View::from).collect();
            limiter.decided(frame.t, &views, &decision.limits, &[]);
            let first = limiter.tick(frame.t, &views);
            let counters_before = limiter.counters();
            let changes = limiter.changes(&first, in_force(&views));
            for Change { job, to, .. } in &changes {
                let view = views.iter_mut().find(|view| view.job == *job).unwrap();
                if let Setting::Cap(share) = to {
                    view.in_force = *share;
                }
            }
            limiter.decided(frame.t, &views, &decision.limits, &[]);
            let again = limiter.tick(frame.t, &views);
            prop_assert_eq!(counters_before, limiter.counters());
            if settings.enforcement == Enforcement::Shares {
                prop_assert_eq!(limiter.changes(&again, in_force(&views)), changes);
            } else {
                prop_assert_eq!(limiter.changes(&again, in_force(&views)), []);
            }
        }
    }

    #[test]
    fn the_order_of_jobs_is_irrelevant(
        settings in settings(),
        run in run(),
    ) {
        let mut forward = limiter(settings);
        let mut backward = limiter(settings);
        for (frame, decision) in decided(run) {
            let mut turned = frame.clone();
            turned.jobs.reverse();
            let given = forward.effective(&frame, &decision);
            prop_assert_eq!(&backward.effective(&turned, &decision), &given);
        }
        prop_assert_eq!(forward.counters(), backward.counters());
    }

    #[test]
    fn when_the_run_began_is_irrelevant(settings in settings(), run in run()) {
        let (mut early, mut late) = (limiter(settings), limiter(settings));
        for (frame, decision) in decided(run) {
            let later = Frame { t: frame.t + 4096.0, ..frame.clone() };
            let given = early.effective(&frame, &decision);
            for (job, Effective { share, .. }) in late.effective(&later, &decision) {
                prop_assert_eq!(share, given[&job].share);
            }
        }
    }

    #[test]
    fn decreases_come_first_and_none_is_too_small(settings in settings(), run in run()) {
        let mut limiter = limiter(settings);
        for (frame, decision) in decided(run) {
            let views: Vec<View> = frame.jobs.iter().map(View::from).collect();
            let effective = limiter.effective(&frame, &decision);
            let changes = limiter.changes(&effective, in_force(&views));
            prop_assert!(changes.is_sorted_by_key(Change::grows));
            let total = DEFAULT_WEIGHT * u64::try_from(frame.jobs.len()).unwrap();
            let is_worth = |change: &&Change| change.from.is_worth_changing_to(change.to, total);
            let worth = changes.iter().filter(is_worth).count();
            // Small changes of weights accompany a large one.
            let together = settings.enforcement == Enforcement::Shares && worth > 0;
            prop_assert!(together || worth == changes.len(), "{changes:?}");
            prop_assert!(changes.iter().all(|change| change.from != change.to), "{changes:?}");
        }
    }

    #[test]
    fn lending_never_lowers_a_share_that_the_policy_chose(run in run()) {
        let mut hard = limiter(quota());
        let mut soft = limiter(LimiterSettings::default());
        for (frame, decision) in decided(run) {
            let own = hard.effective(&frame, &decision);
            for (job, given) in soft.effective(&frame, &decision) {
                prop_assert!(given.share >= own[&job].share, "{job}: {given:?}");
            }
        }
    }
}
