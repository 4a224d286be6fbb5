//! Properties that hold for every scenario and policy.

use std::fmt::Write as _;

use paceline_policy::policies;
use proptest::prelude::*;

use super::*;
use crate::scenario::LIBRARY;

/// The names of all policies that decide about jobs, in both variants.
fn arms() -> Vec<Arm> {
    let none = Params::default();
    let names = policies::ALL
        .iter()
        .flat_map(|entry| [entry.name.to_owned(), format!("{}:published", entry.name)]);
    let arms = names.map(|name| name.parse::<Arm>().unwrap());
    let decides = |arm: &Arm| {
        matches!(policies::build(&arm.policy, arm.variant, &none), Ok(AnyPolicy::Jobs(_)))
    };
    arms.filter(decides).collect()
}

/// One group of jobs, as TOML.
fn group() -> impl Strategy<Value = String> {
    let failures = prop_oneof![
        Just(""),
        Just("failures = { every = 40, down = 1 }\ncheckpoint = { every = 2, mean = 1 }"),
        Just("failures = { at = [3, 9] }"),
    ];
    let shape = prop_oneof![
        Just("batch = { work = 0.1, fixed = 0.2 }\nbatch_latency = 0.7"),
        Just("loss = { curve = \"exponential\", start = 3, end = 1, tau = 0.2 }\nacceptable = 1.5"),
        Just(
            "loss = { curve = \"power\", start = 3, end = 1, scale = 0.1, exponent = 0.8 }\nnoise = 0.1"
        ),
    ];
    let owner = prop_oneof![
        Just(""),
        Just("max = 0.4"),
        Just("min = 0.2\nmax_slowdown = 2"),
        Just("weight = 3\ncpu_shares = 2048"),
        Just("node = \"n\""),
    ];
    ((1_u32..4, 0_u32..20, 1_u32..30, 1_u32..=4), failures, shape, owner).prop_map(
        |((count, uniform, work, quarters), failures, shape, owner)| {
            let parallel = f64::from(quarters) / 4.0;
            format!(
                "count = {count}\narrive = {{ uniform = [0, {uniform}] }}\nwork = {work}\n\
                 parallel = {parallel}\nthreads = 4\nthrottle_cost = 0.2\n{failures}\n{shape}\n{owner}\n"
            )
        },
    )
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let groups = prop::collection::vec(group(), 1..4);
    let failing = prop::option::of(5_u32..40);
    let enforcement = prop::sample::select(vec!["quota", "shares", "quota+leftover"]);
    let placement = prop::sample::select(vec!["fewest", "round-robin"]);
    (groups, failing, enforcement, placement).prop_map(
        |(groups, failing, enforcement, placement)| {
            let failing = failing.map(|mean| format!("failures = {{ every = {mean}, down = 4 }}"));
            let mut text = format!(
                "name = \"any\"\ndescription = \"Drawn.\"\npolicies = [\"none\"]\nuntil = 400\n\
                 placement = \"{placement}\"\n[limiter]\nenforcement = \"{enforcement}\"\n\
                 [[node]]\nname = \"n\"\ncpus = 2\n[[node]]\nname = \"m\"\ncpus = 4\n\
                 contention = 0.05\n{}\n",
                failing.unwrap_or_default()
            );
            for (number, group) in groups.iter().enumerate() {
                writeln!(text, "[[job]]\nname = \"j{number}\"\n{group}").unwrap();
            }
            Scenario::parse(&text).unwrap()
        },
    )
}

/// What must hold for every node at every moment.
fn check(world: &World<'_>) {
    let at = world.now;
    for state in &world.nodes {
        let fluid = &state.fluid;
        let jobs: Vec<Index> = fluid.jobs().collect();
        let shares: Vec<f64> = jobs.iter().map(|job| fluid.share_of(*job)).collect();
        let in_use: f64 = shares.iter().sum();
        let asked = |job: &Index| fluid.demand(*job).unwrap().cap;
        let most = |job: &Index| {
            let live = world.jobs.get(*job).unwrap();
            live.cap.get().min(live.job.parallel)
        };
        let caps = jobs.iter().map(asked);
        assert!(jobs.iter().all(|job| asked(job) <= most(job)), "{at}");
        let wide = jobs.iter().filter(|job| world.jobs.get(**job).unwrap().job.parallel >= 1.0);
        assert!(wide.into_iter().all(|job| asked(job) >= most(job)), "{at}");
        let demand = caps.clone().sum::<f64>().min(1.0);
        assert!((in_use - fluid.in_use()).abs() < 1e-9 && (in_use - demand).abs() < 1e-9, "{at}");
        assert!(shares.iter().zip(caps).all(|(share, cap)| *share > 0.0 && *share <= cap + 1e-12));
        assert!(state.is_up() || jobs.is_empty(), "nothing runs on a node that is down");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cpu_is_conserved_at_every_event_under_every_policy(scenario in scenarios()) {
        for arm in arms() {
            let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
            let mut world = World::new(&run, scenario.draw(1)).unwrap();
            while world.step().unwrap() {
                check(&world);
            }
            let Done { outcome, .. } = world.finish();
            prop_assert_eq!(run.simulate().unwrap().outcome, outcome, "{} differs by itself", arm);
        }
    }
}

#[test]
fn every_scenario_of_the_library_gives_the_same_bytes_twice() {
    for listed in LIBRARY {
        let mut scenario = Scenario::parse(listed.text).unwrap();
        scenario.until = scenario.until.min(200.0);
        for arm in &scenario.arms {
            let bytes = || {
                let done = match scenario.policy(arm).unwrap() {
                    AnyPolicy::Jobs(_) => {
                        Run { scenario: &scenario, arm, seed: 3, record: true }.simulate()
                    }
                    AnyPolicy::Gangs(_) => crate::gangs::simulate(&scenario, arm, true),
                    // Policies that place tasks have no run of their own.
                    AnyPolicy::Tasks(_) => return None,
                };
                let done = done.unwrap();
                Some((serde_json::to_string(&done.outcome).unwrap(), done.lines))
            };
            assert_eq!(bytes(), bytes(), "{} {arm}", listed.name);
        }
    }
}
