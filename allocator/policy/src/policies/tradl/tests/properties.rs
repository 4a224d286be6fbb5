use super::*;
use crate::unit::count;

fn any_number() -> impl Strategy<Value = Option<f64>> {
    let near = || prop::sample::select(vec![0.0, 0.2, 0.25, 0.3, 0.9, 1.0]);
    prop::option::of(prop_oneof![near(), 0.0..1.0, any::<f64>()])
}

fn any_job() -> impl Strategy<Value = Job> {
    let flags = (any::<bool>(), any::<bool>(), prop::option::of(any::<bool>()));
    let numbers = prop::collection::vec(any_number(), 6);
    ("[a-e]", flags, numbers).prop_map(|(id, (up, acceptable, may_terminate), numbers)| Job {
        loss: numbers[0],
        usage: Usage { cpu: numbers[1], ..Usage::default() },
        limit: Limit { cpu: numbers[2], applied: numbers[3], ..Limit::default() },
        targets: aims(numbers[4], numbers[5]),
        direction: if up { Direction::Maximize } else { Direction::Minimize },
        reached: Reached { acceptable, objective: false },
        may_terminate,
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
        frames in any_run(), variant in any_variant()
    ) {
        let mut policy = policy(variant, &[("confirm", 2.0)]);
        for jobs in frames {
            let decision = decide(&mut policy, &jobs);
            prop_assert!((decision.interval - 5.0).abs() < 1e-12);
            prop_assert_eq!(decision.jobs.len(), jobs.len());
            prop_assert_eq!(decision.limits.len() + decision.terminate.len(), jobs.len());
            for job in &jobs {
                let JobDecision { class, score, why, .. } = &decision.jobs[&job.id];
                prop_assert!(score.is_none_or(f64::is_finite) && !why.to_string().is_empty());
                let named = decision.terminate.contains(&job.id);
                prop_assert!(decision.limits.contains_key(&job.id) != named);
                prop_assert!(*class == "-" || (*class == "AS" && !named));
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
    fn only_acceptable_jobs_are_capped_to_at_least_half_a_share(
        frames in any_run(), variant in any_variant()
    ) {
        let mut policy = policy(variant, &[]);
        for jobs in frames {
            let decision = decide(&mut policy, &jobs);
            let least = 1.0 / (2.0 * count(decision.limits.len()));
            for (id, share) in &decision.limits {
                prop_assert!(share.get() >= least);
                prop_assert!(share.is_all() || decision.jobs[id].class == "AS");
            }
        }
    }

    #[test]
    fn a_system_that_does_not_change_settles(
        demands in prop::collection::vec((0.0..1.0, any::<bool>()), 1..8)
    ) {
        // T5, T15: in print, limits may be lifted and set again without end.
        let mut policy = policy(Variant::Resolved, &[]);
        let mut given = vec![1.0; demands.len()];
        let mut seen = Vec::new();
        for _ in 0..20 {
            let jobs: Vec<Job> = demands.iter().zip(&given).enumerate().map(|(at, (demand, given))| {
                let (wanted, acceptable) = *demand;
                let loss = if acceptable { 0.29 } else { 0.5 };
                limited(job(&at.to_string(), loss, f64::min(wanted, *given)), *given)
            }).collect();
            let decision = decide(&mut policy, &jobs);
            given = jobs.iter().map(|job| decision.limits[&job.id].get()).collect();
            seen.push(given.clone());
        }
        prop_assert!(seen[4..].iter().all(|limits| *limits == given));
    }
}
