use proptest::prelude::*;

use super::*;
use crate::curve::Curve;
use crate::scenario::{Scenario, Start, Tasks, scenario};

fn task(release: f64, work: f64, cap: f64) -> Task {
    Task { release, work, cap }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

/// The mean completion time of the best priority order, by trying all orders. The first job has as
/// much as it can use, and the next ones what is left.
fn best_order(tasks: &[Task], machines: f64) -> f64 {
    let mut best = f64::INFINITY;
    permute(&mut (0..tasks.len()).collect::<Vec<_>>(), 0, &mut |order| {
        best = best.min(list_schedule(tasks, order, machines).0);
    });
    best
}

fn permute(order: &mut [usize], from: usize, then: &mut impl FnMut(&[usize])) {
    if from == order.len() {
        return then(order);
    }
    for at in from..order.len() {
        order.swap(from, at);
        permute(order, from + 1, then);
        order.swap(from, at);
    }
}

/// Mean completion time and makespan of a schedule by fixed priorities.
fn list_schedule(tasks: &[Task], order: &[usize], machines: f64) -> (f64, f64) {
    let mut left: Vec<f64> = tasks.iter().map(|task| task.work).collect();
    let (mut now, mut total, mut end) = (0.0, 0.0, 0.0_f64);
    while left.iter().any(|left| *left > 0.0) {
        let mut room = machines;
        let mut rates = vec![0.0; tasks.len()];
        for &job in order {
            if left[job] > 0.0 && tasks[job].release <= now {
                rates[job] = tasks[job].cap.min(room);
                room -= rates[job];
            }
        }
        let coming = tasks.iter().map(|task| task.release).filter(|at| *at > now);
        let next = coming.fold(f64::INFINITY, f64::min) - now;
        let ends = left.iter().zip(&rates).filter(|(_, rate)| **rate > 0.0);
        let step = ends.map(|(left, rate)| left / rate).fold(next, f64::min);
        now += step;
        for (job, rate) in rates.into_iter().enumerate() {
            if rate > 0.0 {
                left[job] -= rate * step;
                if left[job] <= 1e-9 {
                    left[job] = 0.0;
                    total += now - tasks[job].release;
                    end = end.max(now);
                }
            }
        }
    }
    let first = tasks.iter().map(|task| task.release).fold(f64::INFINITY, f64::min);
    (total / count(tasks.len()), end - first)
}

/// The exact makespan. An end is late enough if for every set of jobs there is room for their work
/// until then. (That is the minimum cut of the flow from jobs through the times between arrivals.)
fn exact_makespan(tasks: &[Task], machines: f64) -> f64 {
    let first = tasks.iter().map(|task| task.release).fold(f64::INFINITY, f64::min);
    let fits = |end: f64| {
        (1..1_usize << tasks.len()).all(|set| {
            let chosen: Vec<&Task> = tasks
                .iter()
                .enumerate()
                .filter(|(at, _)| (set >> at) & 1 == 1)
                .map(|(_, t)| t)
                .collect();
            let mut times: Vec<f64> = chosen.iter().map(|task| task.release).collect();
            times.push(end);
            times.sort_by(f64::total_cmp);
            let room: f64 = times
                .windows(2)
                .map(|span| {
                    let caps: f64 =
                        chosen.iter().filter(|t| t.release <= span[0]).map(|t| t.cap).sum();
                    (span[1] - span[0]).max(0.0) * caps.min(machines)
                })
                .sum();
            let late = chosen.iter().any(|task| task.release >= end);
            !late && chosen.iter().map(|task| task.work).sum::<f64>() <= room + 1e-9
        })
    };
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high - first
}

fn of(name: &str) -> Bounds {
    let scenario = scenario(name);
    let jobs = scenario.draw(1);
    let equal = equal_shares(&jobs, &scenario.nodes);
    Bounds::for_jobs(&jobs, &equal, &scenario.nodes, scenario.until)
}

#[test]
fn bounds_of_known_scenarios_have_known_values() {
    let limit = |bounds: &Bounds, name: &str| bounds.get(name).unwrap().limit;
    let fc = of("FC-3");
    for (metric, known, within) in
        [("completion_mean", 199.8, 0.5), ("makespan", 394.0, 1e-9), ("loss_area", 31.9, 0.1)]
    {
        let Bound { limit, reached } = fc.get(metric).unwrap();
        assert!((limit - known).abs() < within, "{metric}: {limit}");
        assert!(close(reached.unwrap(), limit), "{metric}: {limit} {reached:?}");
    }
    assert_eq!(fc.get("met"), None);
    for (name, met) in [("DQ-var", 9.0), ("DQ-20", 6.0), ("DQ-40", 10.0)] {
        let bounds = of(name);
        assert_eq!((limit(&bounds, "met"), limit(&bounds, "satisfied")), (met, met), "{name}");
        assert_eq!(bounds.get("completion_mean"), None, "{name}");
    }
    // All jobs but the one whose target is unreachable share 0.72 of the machine; that one has the
    // rest.
    let rest = limit(&of("DQ-var"), "distance");
    assert!((rest - 0.85).abs() < 0.05, "{rest}");
    assert!(limit(&of("DQ-40"), "distance") <= 0.0);
    // Equal jobs on four nodes: the order of arrival, 245 s, is the best.
    let sp = of("SP-fix").get("completion_mean").unwrap();
    assert!((242.0..=245.0 + 1e-9).contains(&sp.limit), "{sp:?}");
    assert!(close(sp.reached.unwrap(), 245.0), "{sp:?}");
}

#[test]
fn narrow_jobs_take_at_least_their_time_alone() {
    // Two jobs of 10 that can use half a node each run side by side: 20 each, whatever the order.
    let tasks = [task(0.0, 10.0, 0.5), task(0.0, 10.0, 0.5)];
    assert!(close(mean_completion(&tasks, 1.0), 20.0));
    assert!(close(makespan(&tasks, 1.0), 20.0));
    // Four on one node: by the sum of busy times, not all of them can be first.
    let tasks = [task(0.0, 10.0, 0.5); 4];
    let bound = busy_time(&tasks, 1.0);
    assert!(bound > 20.0 * 1.2 && bound <= 30.0 + 1e-9, "{bound}");
}

fn tasks(caps: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Vec<Task>> {
    let one = (0..40_u32, 1..40_u32, caps)
        .prop_map(|(r, p, s)| task(f64::from(r), f64::from(p), f64::from(s) / 4.0));
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn on_a_node_that_all_can_fill_the_bounds_are_reached(tasks in tasks(4..=4)) {
        let best = best_order(&tasks, 1.0);
        prop_assert!(close(mean_completion(&tasks, 1.0), best), "{best}");
        prop_assert!((makespan(&tasks, 1.0) - exact_makespan(&tasks, 1.0)).abs() < 1e-6);
    }

    #[test]
    fn no_schedule_beats_a_bound(tasks in tasks(1..=4), machines in 1..3_u32) {
        let machines = f64::from(machines);
        let best = best_order(&tasks, machines);
        let bound = mean_completion(&tasks, machines);
        prop_assert!(bound <= best + 1e-6, "{bound} {best}");
        prop_assert!((makespan(&tasks, machines) - exact_makespan(&tasks, machines)).abs() < 1e-6);
    }
}

/// Whether one node that all jobs can fill keeps the deadlines by earliest deadline first. If any
/// schedule keeps them, that one does (Jackson's rule, with arrivals).
fn earliest_first(tasks: &[Task], deadlines: &[f64]) -> bool {
    let mut left: Vec<f64> = tasks.iter().map(|task| task.work).collect();
    let mut now = 0.0;
    loop {
        let open = (0..tasks.len()).filter(|job| left[*job] > 1e-9);
        let here = open.clone().filter(|job| tasks[*job].release <= now);
        let first = here.min_by(|a, b| deadlines[*a].total_cmp(&deadlines[*b]));
        let releases = open.map(|job| tasks[job].release).filter(|at| *at > now);
        let next = releases.fold(f64::INFINITY, f64::min);
        match first {
            Some(job) => {
                let step = left[job].min(next - now);
                left[job] -= step;
                now += step;
                if left[job] <= 1e-9 && now > deadlines[job] + 1e-6 {
                    return false;
                }
            }
            None if next.is_finite() => now = next,
            None => return true,
        }
    }
}

/// The least area of two jobs that arrive together, by trying both jobs in each second.
fn least_area(curves: [&Curve; 2], works: [usize; 2]) -> f64 {
    let to_come = |job: usize, done: usize| {
        let u = count(done) / count(works[job]);
        curves[job].to_come(u, u)
    };
    // The area from each state on. A second counts by the mean of the remaining fall before and
    // after it.
    let mut best = vec![vec![0.0; works[1] + 1]; works[0] + 1];
    for a in (0..=works[0]).rev() {
        for b in (0..=works[1]).rev() {
            let here = to_come(0, a) + to_come(1, b);
            let step = |a: usize, b: usize| {
                let after = to_come(0, a) + to_come(1, b);
                f64::midpoint(here, after) + best[a][b]
            };
            let mut least = f64::INFINITY;
            if a < works[0] {
                least = least.min(step(a + 1, b));
            }
            if b < works[1] {
                least = least.min(step(a, b + 1));
            }
            best[a][b] = if least.is_finite() { least } else { 0.0 };
        }
    }
    best[0][0]
}

fn learner(work: f64, curve: &Curve) -> Job {
    let text = "name = \"one\"\ndescription = \"One job.\"\npolicies = [\"none\"]\n\
                [[node]]\nname = \"n\"\ncpus = 1\n[[job]]\nname = \"a\"\nwork = 1";
    let job = Scenario::parse(text).unwrap().draw(1).remove(0);
    Job { work, loss: Some(std::sync::Arc::new(curve.clone())), ..job }
}

fn node(background: f64) -> Node {
    Node {
        name: "n".to_owned(),
        cpus: 1.0,
        memory: None,
        contention: 0.0,
        background,
        failures: None,
    }
}

#[test]
fn background_lowers_bounds_and_contention_makes_none_exact() {
    let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
    let jobs = [36.0, 18.0].map(|work| Job { room: 0.9, ..learner(work, &curve) });
    assert!(close(jobs[0].alone(), 40.0), "{}", jobs[0].alone());
    let mut nodes = [node(0.1)];
    let equal = equal_shares(&jobs, &nodes);
    assert!(close(equal[0], 60.0) && close(equal[1], 40.0), "{equal:?}");
    let bounds = Bounds::for_jobs(&jobs, &equal, &nodes, f64::INFINITY);
    // The smaller job first: 20 and 60 s, which are a ρ of one half and of 1.
    let known = [("completion_mean", 40.0), ("makespan", 60.0), ("fairness_worst", 1.0)];
    for (metric, best) in known {
        let Bound { limit, reached } = bounds.get(metric).unwrap();
        assert!(
            close(limit, best) && close(reached.unwrap(), best),
            "{metric}: {limit} {reached:?}"
        );
    }
    nodes[0].contention = 0.01;
    let slower = Bounds::for_jobs(&jobs, &equal, &nodes, f64::INFINITY);
    for (metric, best) in known {
        let Bound { limit, reached } = slower.get(metric).unwrap();
        assert!(close(limit, best) && reached.is_none(), "{metric}: {limit} {reached:?}");
    }
}

#[test]
fn start_delays_the_release_of_work() {
    let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
    let start = Some(Start { work: 2.0, seconds: 4.0 });
    let late = Job { arrive: 4.0, ..learner(10.0, &curve) };
    let started = Job { start, ..learner(10.0, &curve) };
    assert!(close(started.alone(), 14.0), "{}", started.alone());
    let of = |job: &Job| {
        let jobs = std::slice::from_ref(job);
        Bounds::for_jobs(jobs, &equal_shares(jobs, &[node(0.0)]), &[node(0.0)], f64::INFINITY)
    };
    let (early, started_at) = (of(&late), of(&started));
    for (metric, more) in [("completion_mean", 4.0), ("loss_area", 4.0), ("makespan", 0.0)] {
        let [bound, with] = [&early, &started_at].map(|bounds| bounds.get(metric).unwrap());
        assert!(close(with.limit, bound.limit + more), "{metric}: {with:?} {bound:?}");
        assert_eq!(with.reached, None, "what it takes from others is left out");
    }
    let jobs = std::slice::from_ref(&started);
    let cut = Bounds::for_jobs(jobs, &[14.0], &[node(0.0)], 3.0).get("loss_area").unwrap();
    assert!(close(cut.limit, 3.0), "it still starts when the run ends: {cut:?}");
    // Until the second job has started, each has its full demand.
    let jobs = [learner(10.0, &curve), started];
    let equal = equal_shares(&jobs, &[node(0.0)]);
    assert!(close(equal[0], 4.0 + 16.0) && close(equal[1], 22.0), "{equal:?}");
}

#[test]
fn a_job_that_noise_may_end_has_no_bound() {
    let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
    let mut job = Job { noise: 0.1, ..learner(10.0, &curve) };
    let bound = |job: &Job| {
        let jobs = [job.clone(), learner(10.0, &curve)];
        let bounds = Bounds::for_jobs(&jobs, &[20.0, 20.0], &[node(0.0)], f64::INFINITY);
        ["completion_mean", "makespan", "fairness_worst", "loss_area"]
            .map(|metric| bounds.get(metric).is_some())
    };
    assert_eq!(bound(&job), [true; 4]);
    job.targets.objective = Some(0.5);
    assert_eq!(bound(&job), [false; 4]);
    job.may_terminate = false;
    assert_eq!(bound(&job), [true; 4]);
}

#[test]
fn work_below_clock_resolution_is_done_at_once() {
    let late = [task(1e9, 1e-9, 1.0), task(1e9, 1e-8, 0.5), task(2e9, 1.0, 1.0)];
    let Bound { limit, reached } = completion(&late, &[1.0]);
    assert!((reached.unwrap() - 1.0 / 3.0).abs() < 1e-6 && limit <= 0.34, "{limit} {reached:?}");
}

#[test]
fn least_area_is_that_of_the_best_sequence() {
    let slow = Curve::Exponential { start: 2.0, end: 1.0, tau: 0.5 };
    let quick = Curve::Exponential { start: 2.0, end: 1.0, tau: 0.1 };
    let bent = Curve::Recorded { points: vec![(0.0, 5.0), (0.5, 4.0), (0.6, 1.0), (1.0, 0.0)] };
    for (curves, works) in
        [([&slow, &quick], [200, 100]), ([&quick, &quick], [120, 60]), ([&slow, &bent], [90, 150])]
    {
        let jobs: Vec<Job> =
            curves.iter().zip(works).map(|(curve, work)| learner(count(work), curve)).collect();
        let found = least_area(curves, works) / 2.0;
        let Bound { limit, reached } = area_under_loss(&jobs, &[1.0], f64::INFINITY).unwrap();
        assert!(limit <= found * (1.0 + 1e-9), "{curves:?}: {limit} {found}");
        assert!(close(limit, reached.unwrap()), "{limit} {reached:?}");
        if curves.iter().all(|curve| !matches!(curve, Curve::Recorded { .. })) {
            assert!(limit >= 0.99 * found, "{curves:?}: {limit} {found}");
        }
    }
}

#[test]
fn a_job_that_may_be_ended_has_no_area_from_then_on() {
    let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
    let mut job = learner(100.0, &curve);
    let whole = area_under_loss(&[job.clone()], &[1.0], f64::INFINITY).unwrap();
    job.targets.objective = Some(0.5);
    let ended = area_under_loss(&[job.clone()], &[1.0], f64::INFINITY).unwrap();
    // From 1 to a half along the curve, then to 0 at once.
    let end = 20.0 * 2.0_f64.ln();
    let last = curve.at(1.0);
    let area = (20.0 * 0.5 - last * end) / (1.0 - last);
    assert!(ended.limit < area && area < whole.limit, "{ended:?} {area} {whole:?}");
    // The chord to the end lies below the curve, and is the bound of the area.
    assert!(ended.limit >= end / 2.0 - 1e-9, "{ended:?}");
    assert_eq!(ended.reached, None);
    job.may_terminate = false;
    assert_eq!(area_under_loss(&[job], &[1.0], f64::INFINITY).unwrap(), whole);
}

#[test]
fn equal_shares_match_none_on_one_node() {
    let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
    let mut jobs = [learner(30.0, &curve), learner(10.0, &curve), learner(100.0, &curve)];
    jobs[1].arrive = 10.0;
    jobs[2].parallel = 0.25;
    // Until 10 s the first job has three quarters; then the first and the second have 3/8 each.
    let equal = equal_shares(&jobs, &[node(0.0)]);
    let second = 10.0 / 0.375;
    let first = 10.0 + second + (30.0 - 7.5 - 10.0) / 0.75;
    for (got, want) in equal.iter().zip([first, second, 400.0]) {
        assert!(close(*got, want), "{equal:?}");
    }
    jobs[0].work = f64::INFINITY;
    assert!(equal_shares(&jobs, &[node(0.0)])[0].is_infinite());
}

/// The least sum of distances over a grid of shares.
fn grid_distance(jobs: &[Job], left: u32, steps: u32) -> f64 {
    let Some((job, rest)) = jobs.split_first() else { return 0.0 };
    let target = job.targets.batch_latency.unwrap();
    let at = |units: u32| {
        let share = f64::from(units) / f64::from(steps);
        let apart = job.batch_seconds(share.min(job.parallel)) - target;
        let apart = if apart <= 0.1 * target { 0.0 } else { apart };
        apart + grid_distance(rest, left - units, steps)
    };
    (1..=left - u32::try_from(rest.len()).unwrap()).map(at).fold(f64::INFINITY, f64::min)
}

#[test]
fn servers_are_counted_where_most_workers_are() {
    let scenario = scenario("DL-3");
    let (gang, nodes) = (&scenario.gangs[0], &scenario.nodes);
    assert_eq!(fewest_crossing(gang, nodes), Some(2));
    // With no room beside the two workers both servers go to the third's node.
    let mut tight = nodes.clone();
    tight[0].cpus = 2.0;
    assert_eq!(fewest_crossing(gang, &tight), Some(4));
    let free =
        Gang { workers: Tasks { nodes: Vec::new(), ..gang.workers.clone() }, ..gang.clone() };
    assert_eq!(fewest_crossing(&free, nodes), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn worst_fairness_is_where_earliest_deadline_first_fails(
        tasks in tasks(4..=4),
        paces in prop::collection::vec(1..50_u32, 5),
    ) {
        let equal: Vec<f64> = tasks.iter().zip(paces).map(|(_, pace)| f64::from(pace)).collect();
        let keeps = |rho: f64| {
            let due = tasks.iter().zip(&equal).map(|(task, equal)| task.release + rho * equal);
            earliest_first(&tasks, &due.collect::<Vec<f64>>())
        };
        let (mut low, mut high) = (0.0, 1e3);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if keeps(middle) { high = middle } else { low = middle }
        }
        let bound = worst_fairness(&tasks, &equal, 1.0);
        prop_assert!((bound - high).abs() < 1e-5 * high, "{bound} {high}");
    }

    #[test]
    fn least_distance_is_beaten_by_no_shares(
        targets in prop::collection::vec((1..30_u32, 0..3_u32, 1..10_u32), 1..4),
    ) {
        let curve = Curve::Exponential { start: 1.0, end: 0.0, tau: 0.2 };
        let jobs = targets.iter().map(|(target, fixed, batch)| {
            let mut job = Job {
                batch: f64::from(*batch) / 4.0,
                fixed: f64::from(*fixed) / 10.0,
                loss: None,
                ..learner(f64::INFINITY, &curve)
            };
            job.targets.batch_latency = Some(f64::from(*target) / 2.0);
            job
        });
        let jobs: Vec<Job> = jobs.collect();
        let bound = least_distance(&jobs, 1.0, f64::INFINITY).unwrap();
        let found = grid_distance(&jobs, 60, 60);
        prop_assert!(bound <= found + 1e-9, "{bound} {found}");
        // At most one job's jump away. Shares that are rounded up to the grid need so much more room.
        let most = grid_distance(&jobs, 60 + u32::try_from(jobs.len()).unwrap(), 60);
        let jump = jobs.iter().filter_map(|job| job.targets.batch_latency).fold(0.0, f64::max) * 0.1;
        prop_assert!(bound >= 0.8 * most - jump, "{bound} {most}");
    }
}
