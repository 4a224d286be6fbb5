use proptest::prelude::*;

use super::*;
use crate::scenario::{LIBRARY, Scenario};

fn task(release: f64, work: f64, cap: f64) -> Task {
    Task { release, work, cap }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

/// The mean completion time of the best order of priorities, by trying all, where the job in front
/// has as much as it can use, and the next one what is left.
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

/// The makespan, exactly: some end is late enough if for every set of jobs there is room for their
/// work until then (the least cut of the flow from jobs through the times between arrivals).
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

#[test]
fn the_best_of_fc_3_and_of_dq_var_are_those_that_are_known() {
    let of = |name: &str| {
        let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
        let scenario = Scenario::parse(listed.text).unwrap();
        Bounds::of(&scenario.draw(1), &scenario.nodes)
    };
    let fc = of("FC-3");
    assert!((fc.completion_mean.unwrap() - 199.8).abs() < 0.5, "{fc:?}");
    assert!((fc.makespan.unwrap() - 394.0).abs() < 1e-9, "{fc:?}");
    assert_eq!(fc.met, None);
    assert_eq!(of("DQ-var"), Bounds { met: Some(9.0), ..Bounds::default() });
    assert_eq!(of("DQ-20").met, Some(6.0));
    assert_eq!(of("DQ-40").met, Some(10.0));
    // Equal jobs on four nodes: in order of arrival, 245 s, is the best that can be.
    let sp = of("SP-fix").completion_mean.unwrap();
    assert!((215.0..=245.0 + 1e-9).contains(&sp), "{sp}");
}

#[test]
fn jobs_that_cannot_fill_the_nodes_take_at_least_their_time_alone() {
    // Two jobs of 10 that can use half a node each run side by side: 20 each, whatever the order.
    let tasks = [task(0.0, 10.0, 0.5), task(0.0, 10.0, 0.5)];
    assert!(close(mean_completion(&tasks, 1.0), 20.0));
    assert!(close(makespan(&tasks, 1.0), 20.0));
    // Four on one node: the sum of busy times knows that they cannot all be first.
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
        let exact = exact_makespan(&tasks, machines);
        let bound = makespan(&tasks, machines);
        prop_assert!(bound <= exact + 1e-6, "{bound} {exact}");
    }
}
