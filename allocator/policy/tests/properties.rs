//! Properties of all job policies, over random runs, tested from outside like a replay.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use paceline_policy::frame::{Job, Limit, Node, Usage};
use paceline_policy::policies::{self, AnyPolicy};
use paceline_policy::{Decision, Frame, JobId, Params, Variant};
use paceline_wire::{Direction, Targets};
use proptest::prelude::*;

const POLICIES: [&str; 7] = ["none", "flowcon", "tradl", "dqoes", "paceline", "specon", "spread"];

fn decide(name: &str, variant: Variant, frames: &[Frame]) -> Vec<Decision> {
    let AnyPolicy::Jobs(mut policy) = policies::build(name, variant, &Params::default()).unwrap()
    else {
        panic!("{name} is a policy of jobs");
    };
    frames.iter().map(|frame| policy.decide(frame)).collect()
}

fn as_lines(decisions: &[Decision]) -> Vec<String> {
    decisions.iter().map(|decision| serde_json::to_string(decision).unwrap()).collect()
}

/// The parts of a decision that contain no loss.
fn verdicts(decisions: &[Decision]) -> Vec<String> {
    let verdict = |decision: &Decision| {
        let Decision { limits, terminate, migrate, place, interval, jobs, .. } = decision;
        let classes: Vec<_> = jobs.iter().map(|(id, job)| (id, job.class)).collect();
        format!("{limits:?} {terminate:?} {migrate:?} {place:?} {interval} {classes:?}")
    };
    decisions.iter().map(verdict).collect()
}

fn any_job() -> impl Strategy<Value = Job> {
    let loss = || prop::option::of(prop_oneof![-10.0..10.0, Just(0.0), Just(1.0)]);
    let share = || prop::option::of(0.0..1.0);
    let target = prop::option::of(0.5..4.0);
    let numbers = (loss(), loss(), share(), share(), share());
    ("[a-e]", 0..3_u8, any::<bool>(), numbers, target).prop_map(
        |(id, node, up, (loss, loss_max, cpu, limit, latency), acceptable)| Job {
            node: Some(format!("n{node}").into()),
            loss,
            loss_max,
            direction: if up { Direction::Maximize } else { Direction::Minimize },
            batch_latency: latency,
            usage: Usage { cpu, ..Usage::default() },
            limit: Limit { cpu: limit, ..Limit::default() },
            targets: Targets { acceptable, objective: Some(0.25), batch_latency: Some(0.5) },
            ..Job::new(JobId::new(id).unwrap())
        },
    )
}

fn any_frames() -> impl Strategy<Value = Vec<Frame>> {
    let jobs = prop::collection::vec(any_job(), 0..6).prop_map(|mut jobs| {
        jobs.sort_by(|a, b| a.id.cmp(&b.id));
        jobs.dedup_by(|a, b| a.id == b.id);
        jobs
    });
    prop::collection::vec((1..40_u16, jobs), 1..10).prop_map(|frames| {
        let mut t = 0.0;
        let node =
            |n: u8| Node { name: format!("n{n}").into(), cpus: Some(4.0), ..Node::default() };
        let frame = |(passed, jobs)| {
            t += f64::from(passed);
            Frame { t, nodes: (0..3).map(node).collect(), jobs }
        };
        frames.into_iter().map(frame).collect()
    })
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop_oneof![Just(Variant::Resolved), Just(Variant::Published)]
}

proptest! {
    #[test]
    fn the_same_frames_give_the_same_decisions_byte_for_byte(
        frames in any_frames(), variant in any_variant()
    ) {
        for name in POLICIES {
            let (one, other) = (decide(name, variant, &frames), decide(name, variant, &frames));
            prop_assert_eq!(as_lines(&one), as_lines(&other), "{}", name);
        }
    }

    #[test]
    fn when_the_run_began_is_irrelevant(frames in any_frames(), variant in any_variant()) {
        let later: Vec<Frame> =
            frames.iter().map(|frame| Frame { t: frame.t + 4096.0, ..frame.clone() }).collect();
        for name in POLICIES {
            let (now, then) = (decide(name, variant, &frames), decide(name, variant, &later));
            prop_assert_eq!(verdicts(&now), verdicts(&then), "{}", name);
        }
    }

    #[test]
    fn a_jobs_losses_and_targets_may_be_in_any_unit(
        frames in any_frames(), variant in any_variant(), exponent in -20..20_i32
    ) {
        // A power of two scales without rounding.
        let by = |x: Option<f64>| x.map(|x| x * f64::from(exponent).exp2());
        let mut scaled = frames.clone();
        for job in scaled.iter_mut().flat_map(|frame| &mut frame.jobs) {
            (job.loss, job.loss_max) = (by(job.loss), by(job.loss_max));
            let Targets { acceptable, objective, .. } = job.targets;
            (job.targets.acceptable, job.targets.objective) = (by(acceptable), by(objective));
        }
        for name in POLICIES {
            let (one, other) = (decide(name, variant, &frames), decide(name, variant, &scaled));
            prop_assert_eq!(verdicts(&one), verdicts(&other), "{}", name);
        }
    }

    #[test]
    fn a_settled_system_is_left_alone(frames in any_frames()) {
        // The last frame is repeated, each time with the previous choices: in the end, nothing changes.
        let Some(last) = frames.last().cloned() else { return Ok(()) };
        for name in ["flowcon", "tradl", "specon"] {
            let AnyPolicy::Jobs(mut policy) =
                policies::build(name, Variant::Resolved, &Params::default()).unwrap()
            else {
                panic!("{name} is a policy of jobs");
            };
            let mut frame = last.clone();
            let mut limits = Vec::new();
            for _ in 0..24 {
                let decision = policy.decide(&frame);
                for job in &mut frame.jobs {
                    job.limit.cpu = decision.limits.get(&job.id).map(|share| share.get());
                }
                frame.jobs.retain(|job| !decision.terminate.contains(&job.id));
                limits.push(decision.limits);
                frame.t += 400.0;
            }
            let tail: Vec<_> = limits.iter().rev().take(3).collect();
            prop_assert!(tail.windows(2).all(|pair| pair.first() == pair.last()), "{}: {:?}", name, tail);
        }
    }
}
