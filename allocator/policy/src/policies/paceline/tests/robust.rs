//! The policy answers any frame, independent of the order of jobs.

use proptest::prelude::*;

use super::*;

fn number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        (0.0..2.0_f64).prop_map(Some),
        (-1e3..1e6_f64).prop_map(Some),
        prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300])
            .prop_map(Some),
    ]
}

fn any_job() -> impl Strategy<Value = Job> {
    let counts = (
        prop::option::of(prop_oneof![0..50_u64, any::<u64>()]),
        prop::option::of(prop_oneof![0..50_u64, any::<u64>()]),
        prop::option::of(0..50_u64),
    );
    let numbers = prop::collection::vec(number(), 16);
    ("[a-f]", counts, numbers, any::<[bool; 3]>()).prop_map(|(name, counts, numbers, flags)| {
        let mut job = Job::new(id(&name));
        (job.step, job.total_steps, job.expected_steps) = counts;
        let mut each = numbers.into_iter();
        let mut next = || each.next().flatten();
        (job.cpu_seconds, job.loss, job.loss_max, job.weight) = (next(), next(), next(), next());
        (job.usage.cpu, job.batch_latency, job.throttled) = (next(), next(), next());
        (job.limit.cpu, job.limit.applied, job.limit.min, job.limit.max) =
            (next(), next(), next(), next());
        (job.steps_to_acceptable, job.steps_to_objective) = (next(), next());
        (job.targets.acceptable, job.targets.objective, job.targets.batch_latency) =
            (next(), next(), next());
        let [acceptable, objective, may] = flags;
        (job.reached.acceptable, job.reached.objective) = (acceptable, objective);
        job.may_terminate = Some(may);
        job
    })
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let jobs = prop::collection::vec(any_job(), 0..6);
    let one = (0.0..30.0_f64, jobs, number(), number());
    prop::collection::vec(one, 1..12).prop_map(|steps| {
        let mut t = 0.0;
        let frame = |(dt, mut jobs, cpus, usage): (f64, Vec<Job>, Option<f64>, Option<f64>)| {
            t += dt;
            jobs.sort_by(|a, b| a.id.cmp(&b.id));
            jobs.dedup_by(|a, b| a.id == b.id);
            let mut frame = frame(t, jobs);
            frame.nodes[0].cpus = cpus.or(Some(CPUS));
            frame.nodes[0].usage.cpu = usage;
            frame
        };
        steps.into_iter().map(frame).collect()
    })
}

fn decisions(frames: &[Frame]) -> Vec<Decision> {
    let mut policy = policy(&[]);
    frames.iter().map(|frame| policy.decide(frame)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn orders_that_are_kept_do_not_change_a_decision(frames in frames()) {
        let mut fresh = policy(&[]);
        for (frame, kept) in frames.iter().zip(decisions(&frames)) {
            fresh.orders = Orders::default();
            prop_assert_eq!(format!("{:?}", fresh.decide(frame)), format!("{kept:?}"));
        }
    }

    #[test]
    fn frames_of_any_content_are_answered(frames in frames()) {
        for (frame, decision) in frames.iter().zip(decisions(&frames)) {
            prop_assert!(decision.interval.is_finite() && decision.interval >= 1.0);
            prop_assert_eq!(decision.jobs.len(), frame.jobs.len());
            for job in &frame.jobs {
                let ends = decision.terminate.contains(&job.id);
                prop_assert_eq!(decision.limits.get(&job.id).is_some(), !ends);
            }
            for answer in decision.jobs.values() {
                let text = answer.why.to_string();
                prop_assert!(!text.contains("NaN"), "{text}");
                prop_assert!(answer.score.is_none_or(f64::is_finite));
            }
        }
    }

    #[test]
    fn order_of_jobs_and_a_repeat_change_nothing(frames in frames()) {
        let first = decisions(&frames);
        prop_assert_eq!(&decisions(&frames), &first);
        let turned: Vec<Frame> = frames.into_iter().map(|mut frame| {
            frame.jobs.reverse();
            frame
        }).collect();
        prop_assert_eq!(decisions(&turned), first);
    }

    #[test]
    fn shift_of_time_changes_no_share(frames in frames(), quarters in 1..4000_u32) {
        // In quarters, which are exact in binary.
        let round = |frame: &Frame, shift: f64| {
            Frame { t: (frame.t * 4.0).round() / 4.0 + shift, ..frame.clone() }
        };
        let shift = f64::from(quarters) / 4.0;
        let plain: Vec<Frame> = frames.iter().map(|frame| round(frame, 0.0)).collect();
        let shifted: Vec<Frame> = frames.iter().map(|frame| round(frame, shift)).collect();
        for (a, b) in decisions(&plain).into_iter().zip(decisions(&shifted)) {
            prop_assert_eq!(a.limits, b.limits);
            prop_assert_eq!(a.terminate, b.terminate);
        }
    }

    #[test]
    fn larger_node_of_the_same_parts_changes_no_share(frames in frames()) {
        let scaled: Vec<Frame> = frames.iter().cloned().map(|mut frame| {
            for node in &mut frame.nodes {
                node.cpus = node.cpus.map(|cpus| cpus * 4.0);
            }
            for job in &mut frame.jobs {
                job.cpu_seconds = job.cpu_seconds.map(|seconds| seconds * 4.0);
            }
            frame
        }).collect();
        for (a, b) in decisions(&frames).into_iter().zip(decisions(&scaled)) {
            prop_assert_eq!(a.limits, b.limits);
        }
    }
}
