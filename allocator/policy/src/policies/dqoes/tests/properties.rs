use super::*;

fn any_number() -> impl Strategy<Value = Option<f64>> {
    let near = prop::sample::select(vec![0.0, 0.5, 1.0, 9.0, 10.0, 11.0]);
    prop::option::of(prop_oneof![near, 0.0..1.0, 5.0..15.0, any::<f64>()])
}

fn any_job() -> impl Strategy<Value = Job> {
    ("[a-e]", prop::collection::vec(any_number(), 4)).prop_map(|(id, numbers)| Job {
        batch_latency: numbers[0],
        usage: Usage { cpu: numbers[1], ..Usage::default() },
        limit: Limit { cpu: numbers[2], ..Limit::default() },
        targets: asks(numbers[3]),
        ..bare(&id)
    })
}

/// Frames in which ids come, go and come back.
fn any_run() -> impl Strategy<Value = Vec<Vec<Job>>> {
    let jobs = prop::collection::vec(any_job(), 0..6).prop_map(|mut jobs| {
        jobs.sort_by(|a, b| a.id.cmp(&b.id));
        jobs.dedup_by(|a, b| a.id == b.id);
        jobs
    });
    prop::collection::vec(jobs, 1..12)
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop::sample::select(VARIANTS.to_vec())
}

proptest! {
    #[test]
    fn every_decision_is_finite_complete_and_explained(
        frames in any_run(),
        variant in any_variant(),
        beta in prop::sample::select(vec![0.0, 0.1, f64::MAX]),
    ) {
        let mut policy = policy(variant, &[("beta", beta)]);
        for jobs in frames {
            let decision = decide(&mut policy, &jobs);
            prop_assert!((3.75..=240.0).contains(&decision.interval));
            prop_assert_eq!(decision.limits.len(), jobs.len());
            for job in &jobs {
                let given = decision.limits[&job.id].get();
                prop_assert!(given > 0.0 && given <= 1.0);
                let JobDecision { class, score, why, .. } = &decision.jobs[&job.id];
                prop_assert!(score.is_none_or(f64::is_finite) && !why.to_string().is_empty());
                prop_assert_eq!(score.is_none(), *class == "-");
            }
        }
    }

    #[test]
    fn neither_the_order_of_jobs_nor_the_time_matters(
        frames in any_run(), variant in any_variant()
    ) {
        let (mut one, mut other) = (policy(variant, &[]), policy(variant, &[]));
        for jobs in frames {
            let reversed = jobs.iter().rev().cloned().collect();
            let shifted = other.decide(&Frame { t: 1e6, jobs: reversed, ..Frame::default() });
            prop_assert_eq!(decide(&mut one, &jobs), Decision { t: 0.0, ..shifted });
        }
    }

    #[test]
    fn fast_jobs_never_gain_slow_ones_never_lose_others_stay(
        frames in prop::collection::vec(
            prop::collection::vec((prop::option::of(-9.0..9.0), 0.0..1.0, 0.001..1.0), 0..6), 1..8
        ),
        variant in any_variant(),
    ) {
        let mut policy = policy(variant, &[]);
        for jobs in frames {
            let jobs: Vec<Job> = jobs.into_iter().enumerate().map(|(at, (q, cpu, limit))| {
                job(&at.to_string(), q, cpu, limit)
            }).collect();
            let decision = decide(&mut policy, &jobs);
            for job in &jobs {
                let (before, after) = (job.limit.cpu.unwrap(), decision.limits[&job.id].get());
                match decision.jobs[&job.id].class {
                    "G" if job.batch_latency.is_some() => prop_assert!(after <= before),
                    "B" if job.batch_latency.is_some() => prop_assert!(after >= before),
                    _ => prop_assert!(after.to_bits() == before.to_bits()),
                }
            }
        }
    }

    #[test]
    fn satisfied_jobs_are_left_alone_whatever_they_use(
        jobs in prop::collection::vec((-1.0..1.0, 0.0..1.0), 1..6), variant in any_variant()
    ) {
        let mut policy = policy(variant, &[]);
        let mut given = vec![0.3; jobs.len()];
        for _ in 0..5 {
            let frame: Vec<Job> = jobs.iter().zip(&given).enumerate().map(|(at, (shape, limit))| {
                job(&at.to_string(), shape.0, shape.1, *limit)
            }).collect();
            let decision = decide(&mut policy, &frame);
            given = frame.iter().map(|job| decision.limits[&job.id].get()).collect();
        }
        prop_assert!(given.iter().all(|limit| limit.to_bits() == 0.3_f64.to_bits()));
    }
}
