use proptest::prelude::*;

use super::*;

const NODES: [&str; 3] = ["w1", "w2", "w3"];

/// Times and amounts are multiples of a quarter, so that sums come out even.
fn quarters(least: u32, most: u32) -> impl Strategy<Value = f64> {
    (least..=most).prop_map(|n| f64::from(n) / 4.0)
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        4 => Just(State::Running),
        4 => Just(State::Waiting),
        1 => Just(State::Finished),
    ]
}

fn spread_out(most: u32) -> impl Strategy<Value = BTreeMap<String, u32>> {
    prop::collection::btree_map(prop::sample::select(&["w1", "w2", "w3", "w9"][..]), 0..=most, 0..3)
        .prop_map(|counts| counts.into_iter().map(|(at, n)| (at.to_owned(), n)).collect())
}

/// Jobs called a to h that may or may not fit.
pub(super) fn any_jobs() -> impl Strategy<Value = Vec<Gang>> {
    let job = (
        quarters(0, 60),
        state(),
        (0..3_u32, quarters(0, 8)),
        (0..4_u32, prop::option::of(0..6_u32), quarters(0, 8), quarters(0, 8)),
        (spread_out(1), spread_out(3)),
    );
    prop::collection::btree_map("[a-h]", job, 0..8).prop_map(|jobs| {
        let gang = |(id, (submitted, state, (count, server), worker, (ps, workers)))| {
            let (min, max, cpu, memory): (u32, Option<u32>, f64, f64) = worker;
            let id: String = id;
            Gang {
                id: JobId::new(id).unwrap(),
                submitted: Some(submitted),
                state,
                ps: Servers { count, cpu: Some(server), memory: Some(server / 2.0) },
                worker: Workers { min, max, cpu: Some(cpu), memory: Some(memory) },
                placement: Layout { ps, workers },
            }
        };
        jobs.into_iter().map(gang).collect()
    })
}

pub(super) fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(quarters(0, 40), 0..=NODES.len())
        .prop_map(|cpus| NODES.iter().zip(cpus).map(|(name, cpus)| node(name, cpus)).collect())
}

/// Frames that come at any time after each other, each with other jobs and sometimes other nodes.
fn any_run() -> impl Strategy<Value = Vec<GangFrame>> {
    prop::collection::vec((quarters(0, 100), any_nodes(), any_jobs()), 1..8).prop_map(|frames| {
        let mut now = 0.0;
        let mut last = Vec::new();
        let next = |(at, (after, nodes, jobs)): (usize, (f64, Vec<Node>, Vec<Gang>))| {
            now += after;
            if at % 3 == 0 {
                last = nodes;
            }
            frame(now, &last, &jobs)
        };
        frames.into_iter().enumerate().map(next).collect()
    })
}

/// Frames in which anything may be anything.
fn any_wild_run() -> impl Strategy<Value = Vec<GangFrame>> {
    let extreme = || {
        prop_oneof![
            Just(None),
            prop::sample::select(vec![
                0.0,
                -0.0,
                -1.0,
                1.0,
                2.5,
                1e-300,
                1e300,
                f64::MAX,
                f64::MIN,
                f64::EPSILON,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ])
            .prop_map(Some),
        ]
    };
    let counts = || prop::sample::select(vec![0, 1, 2, 5, MAX_TASKS]);
    let job = (
        (extreme(), state()),
        (counts(), extreme(), extreme()),
        (counts(), prop::option::of(counts()), extreme(), extreme()),
        (spread_out(3), spread_out(3)),
    );
    let gang = |(id, job)| {
        let ((submitted, state), (count, cpu, memory), worker, (ps, workers)) = job;
        let (min, max, worker_cpu, worker_memory) = worker;
        let id: String = id;
        Gang {
            id: JobId::new(id).unwrap(),
            submitted,
            state,
            ps: Servers { count, cpu, memory },
            worker: Workers { min, max, cpu: worker_cpu, memory: worker_memory },
            placement: Layout { ps, workers },
        }
    };
    let jobs = prop::collection::btree_map("[a-d]", job, 0..5)
        .prop_map(move |jobs| jobs.into_iter().map(gang).collect::<Vec<_>>());
    let node = ("w[1-3]", extreme(), extreme()).prop_map(|(name, cpus, memory)| Node {
        name: name.into(),
        cpus,
        memory,
        ..Node::default()
    });
    let nodes = prop::collection::vec(node, 0..4);
    let frame = (extreme(), nodes, jobs).prop_map(|(t, nodes, jobs)| GangFrame {
        t: t.unwrap_or(7.0),
        nodes,
        jobs,
    });
    prop::collection::vec(frame, 1..6)
}

/// All that must hold of an answer whatever the frame.
fn is_sound(frame: &GangFrame, scaling: &Scaling) -> Result<(), TestCaseError> {
    let in_state = |state| frame.jobs.iter().filter(move |job| job.state == state);
    let mut open: Vec<&JobId> = scaling.start.iter().map(|start| &start.job).collect();
    open.extend(scaling.waiting.iter().map(|waiting| &waiting.job));
    open.sort();
    let mut expected: Vec<&JobId> = in_state(State::Waiting).map(|job| &job.id).collect();
    expected.sort();
    expected.dedup();
    prop_assert_eq!(open, expected, "every waiting job either starts or waits");
    let weighed = in_state(State::Waiting).chain(in_state(State::Running)).map(|job| &job.id);
    let weighed: std::collections::BTreeSet<&JobId> = weighed.collect();
    prop_assert!(scaling.weights.keys().eq(weighed));
    for weight in scaling.weights.values() {
        prop_assert!(weight.raw.is_finite() && (0.5..=1.0).contains(&weight.weight));
    }
    let reasons = scaling.start.iter().map(|start| &start.why);
    let reasons = reasons.chain(scaling.waiting.iter().map(|waiting| &waiting.why));
    let changes = || scaling.scale_in.iter().chain(&scaling.scale_out);
    for why in reasons.chain(changes().map(|change| &change.why)) {
        let words = why.to_string();
        prop_assert!(
            !words.is_empty() && !words.contains("NaN") && !words.contains("inf"),
            "{words}"
        );
    }
    let adds = !scaling.scale_out.is_empty();
    prop_assert!(!(adds && !(scaling.scale_in.is_empty() && scaling.start.is_empty())));
    prop_assert!(changes().all(|change| change.count > 0));
    Ok(())
}

/// What runs after an answer, on a cluster that applies every answer at once.
fn after(frame: &GangFrame, scaling: &Scaling) -> Vec<Gang> {
    let mut jobs = frame.jobs.clone();
    for job in &mut jobs {
        if let Some(start) = scaling.start.iter().find(|start| start.job == job.id) {
            (job.state, job.placement) = (State::Running, start.layout.clone());
        }
        for change in scaling.scale_out.iter().filter(|change| change.job == job.id) {
            *job.placement.workers.entry(change.node.clone()).or_default() += change.count;
        }
        for change in scaling.scale_in.iter().filter(|change| change.job == job.id) {
            *job.placement.workers.get_mut(&change.node).unwrap() -= change.count;
        }
    }
    jobs.retain(|job| job.state == State::Running);
    jobs
}

/// What running jobs take of each node, in cores and bytes.
pub(super) fn taken(jobs: &[Gang]) -> BTreeMap<&str, (f64, f64)> {
    let mut taken: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.state == State::Running) {
        let servers = job.placement.ps.iter().map(|tasks| (tasks, job.ps.cpu, job.ps.memory));
        let workers = &job.placement.workers;
        let workers = workers.iter().map(|tasks| (tasks, job.worker.cpu, job.worker.memory));
        for ((node, count), cpu, memory) in servers.chain(workers) {
            let taken = taken.entry(node).or_default();
            taken.0 += f64::from(*count) * cpu.unwrap_or(0.0);
            taken.1 += f64::from(*count) * memory.unwrap_or(0.0);
        }
    }
    taken
}

fn shifted(frame: &GangFrame, by: f64) -> GangFrame {
    let mut frame = GangFrame { t: frame.t + by, ..frame.clone() };
    for job in &mut frame.jobs {
        job.submitted = job.submitted.map(|at| at + by);
    }
    frame
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop_oneof![Just(Variant::Resolved), Just(Variant::Published)]
}

proptest! {
    #[test]
    fn every_answer_is_complete_explained_and_can_be_done(
        frames in any_run(), variant in any_variant()
    ) {
        let mut policy = policy(variant);
        for frame in &frames {
            let scaling = policy.decide(frame);
            is_sound(frame, &scaling)?;
            for start in &scaling.start {
                let job = frame.jobs.iter().find(|job| job.id == start.job).unwrap();
                prop_assert_eq!(start.layout.ps.values().sum::<u32>(), job.ps.count);
                prop_assert_eq!(start.layout.workers.values().sum::<u32>(), job.worker.min);
            }
            let jobs = after(frame, &scaling);
            let workers = |job: &Gang| job.placement.workers.values().sum::<u32>();
            for job in &jobs {
                let before = frame.jobs.iter().find(|before| before.id == job.id).unwrap();
                if workers(job) < workers(before) && before.state == State::Running {
                    prop_assert!(workers(job) >= job.worker.min, "below min: {}", job.id);
                }
                prop_assert!(workers(job) <= workers(before).max(job.worker.min)
                    .max(job.worker.max.unwrap_or(0)));
            }
            // Added workers use only free capacity: workers to be removed still run.
            let still_there = Scaling { scale_in: Vec::new(), ..scaling.clone() };
            let (before, now) = (taken(&frame.jobs), after(frame, &still_there));
            for (name, now) in taken(&now) {
                if before.get(name) != Some(&now) {
                    let node = frame.nodes.iter().find(|node| node.name.as_str() == name).unwrap();
                    prop_assert!(now.0 <= node.cpus.unwrap() && now.1 <= node.memory.unwrap());
                }
            }
        }
    }

    #[test]
    fn no_frame_is_too_wild(frames in any_wild_run(), variant in any_variant()) {
        let mut policy = policy(variant);
        for frame in &frames {
            is_sound(frame, &policy.decide(frame))?;
        }
    }

    #[test]
    fn the_order_of_jobs_and_nodes_is_irrelevant(
        frames in any_run(), variant in any_variant()
    ) {
        let (mut one, mut other) = (policy(variant), policy(variant));
        for frame in &frames {
            let mut reversed = frame.clone();
            reversed.jobs.reverse();
            reversed.nodes.reverse();
            prop_assert_eq!(one.decide(frame), other.decide(&reversed));
        }
    }

    #[test]
    fn when_the_run_began_is_irrelevant(frames in any_run(), variant in any_variant()) {
        let (mut early, mut late) = (policy(variant), policy(variant));
        for frame in &frames {
            let scaling = Scaling { t: frame.t, ..late.decide(&shifted(frame, 4096.0)) };
            prop_assert_eq!(early.decide(frame), scaling);
        }
    }
}
