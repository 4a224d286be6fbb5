use proptest::prelude::*;

use super::*;
use crate::per_job::PerJob;
use crate::unit::count;

const NODES: [(&str, f64); 3] = [("n0", 0.25), ("n1", 0.5), ("n2", 0.5)];

fn any_loss() -> impl Strategy<Value = Option<f64>> {
    let odd = vec![0.0, 1e-300, f64::MAX, f64::MIN, f64::NAN, f64::INFINITY];
    prop_oneof![
        Just(None),
        Just(Some(1.0)),
        (-2.0..2.0).prop_map(Some),
        prop::sample::select(odd).prop_map(Some)
    ]
}

fn any_jobs() -> impl Strategy<Value = Vec<Job>> {
    let node = prop::sample::select(vec![None, Some("n0"), Some("n1"), Some("n3")]);
    let fields = ("[a-h]", node, any_loss(), any_loss(), any_loss());
    prop::collection::vec(fields, 0..12).prop_map(|jobs| {
        let mut jobs: Vec<Job> = jobs
            .into_iter()
            .map(|(id, node, loss, loss_max, cpu)| {
                let limit = Limit { cpu, ..Limit::default() };
                Job { loss, loss_max, limit, ..job(&id, node) }
            })
            .collect();
        jobs.sort_by(|a, b| a.id.cmp(&b.id));
        jobs.dedup_by(|a, b| a.id == b.id);
        jobs
    })
}

fn any_run() -> impl Strategy<Value = Vec<Vec<Job>>> {
    prop::collection::vec(any_jobs(), 1..14)
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop::sample::select(VARIANTS.to_vec())
}

proptest! {
    #[test]
    fn every_decision_is_finite_complete_and_explained(
        frames in any_run(), variant in any_variant()
    ) {
        let mut policy = specon(variant, &[]);
        let mut moved = std::collections::BTreeSet::new();
        for (at, jobs) in frames.into_iter().enumerate() {
            let frame = frame(count(at) * 20.0, &NODES, jobs);
            let decision = policy.decide(&frame);
            prop_assert_eq!(decision.limits.len(), frame.jobs.len());
            prop_assert_eq!(decision.jobs.len(), frame.jobs.len());
            for job in &frame.jobs {
                let share = decision.limits[&job.id].get();
                prop_assert!(share > 0.0 && share <= 1.0);
                let JobDecision { class, score, why, .. } = &decision.jobs[&job.id];
                prop_assert!(["PC", "WC", "CC"].contains(class));
                prop_assert!(score.is_none_or(|score| score >= 0.0 && score.is_finite()));
                prop_assert!(!why.to_string().contains("NaN") && !why.to_string().is_empty());
            }
            // A job that is gone is forgotten, and may move again when it returns.
            moved.retain(|(id, _): &(JobId, String)| decision.jobs.contains_key(id));
            for m in decision.migrate {
                prop_assert_eq!(&decision.jobs[&m.job].class, &"CC");
                prop_assert!(m.from != m.to && NODES.iter().any(|(name, _)| *name == m.to));
                let reason = format!("{:?}", m.reason);
                prop_assert!(moved.insert((m.job, reason)), "moved twice for one reason");
            }
        }
    }

    #[test]
    fn the_order_of_jobs_and_nodes_is_irrelevant(frames in any_run(), variant in any_variant()) {
        let (mut one, mut other) = (specon(variant, &[]), specon(variant, &[]));
        for (at, jobs) in frames.into_iter().enumerate() {
            let t = count(at) * 20.0;
            let forward = frame(t, &NODES, jobs);
            let mut backward = forward.clone();
            backward.jobs.reverse();
            backward.nodes.reverse();
            let (one, other) = (one.decide(&forward), other.decide(&backward));
            // In JSON, since a NaN would equal nothing.
            let json = |decision| serde_json::to_string(decision).unwrap();
            prop_assert_eq!(json(&one), json(&other));
        }
    }

    #[test]
    fn only_the_time_between_frames_matters(frames in any_run(), variant in any_variant()) {
        let (mut one, mut other) = (specon(variant, &[]), specon(variant, &[]));
        for (at, jobs) in frames.into_iter().enumerate() {
            let t = count(at) * 20.0;
            let one = one.decide(&frame(t, &NODES, jobs.clone()));
            let other = other.decide(&frame(t + 4096.0, &NODES, jobs));
            prop_assert_eq!(one.migrate, other.migrate);
            let classes = |jobs: &PerJob<JobDecision>| {
                jobs.values().map(|job| job.class).collect::<Vec<_>>()
            };
            prop_assert_eq!(classes(&one.jobs), classes(&other.jobs));
        }
    }

    #[test]
    fn moves_settle(frames in any_run(), variant in any_variant()) {
        // Once every job has used its moves, repeating the frame moves no job.
        let mut policy = specon(variant, &[]);
        let jobs = frames.into_iter().max_by_key(Vec::len).unwrap_or_default();
        let migrations = (0..40).map(|at| {
            policy.decide(&frame(count(at) * 90.0, &NODES, jobs.clone())).migrate.len()
        });
        let migrations: Vec<usize> = migrations.collect();
        prop_assert!(migrations.iter().sum::<usize>() <= 2 * jobs.len());
        prop_assert!(migrations[30..].iter().all(|moves| *moves == 0));
    }
}
