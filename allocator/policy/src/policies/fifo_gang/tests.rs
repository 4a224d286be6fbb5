use proptest::prelude::*;

use super::*;

/// A cluster of two nodes of 4 cores, with jobs as (id, workers, cores of each worker) in submission
/// order.
fn frame(jobs: &[(&str, u32, u32)]) -> GangFrame {
    let job = |(at, (id, workers, cores)): (usize, &(&str, u32, u32))| {
        format!(
            r#"{{"id": "{id}", "submitted": {at},
                "worker": {{"min": {workers}, "cpu": {cores}, "memory": {cores}}}}}"#
        )
    };
    let jobs: Vec<String> = jobs.iter().enumerate().map(job).collect();
    GangFrame::parse(&format!(
        r#"{{"t": 99, "nodes": [{{"name": "w1", "cpus": 4, "memory": 4}},
            {{"name": "w2", "cpus": 4, "memory": 4}}], "jobs": [{}]}}"#,
        jobs.join(",")
    ))
    .unwrap()
}

fn decide(jobs: &[(&str, u32, u32)]) -> Scaling {
    FifoGang::new(&Params::default()).unwrap().decide(&frame(jobs))
}

fn started(scaling: &Scaling) -> Vec<String> {
    scaling.start.iter().map(|s| format!("{} {:?}", s.job, s.layout.workers)).collect()
}

fn waiting(scaling: &Scaling) -> Vec<String> {
    scaling.waiting.iter().map(|w| format!("{}: {}", w.job, w.why)).collect()
}

#[test]
fn jobs_start_complete_in_submission_order() {
    let scaling = decide(&[("b", 2, 2), ("a", 2, 1), ("c", 1, 2)]);
    assert_eq!(started(&scaling), [r#"b {"w1": 2}"#, r#"a {"w2": 2}"#, r#"c {"w2": 1}"#]);
    assert_eq!(
        scaling.start[0].why.to_string(),
        "first in line: 0 ps and 2 workers fit on one node, the one left least idle (0.000)"
    );
}

#[test]
fn the_head_of_the_line_blocks_the_rest() {
    let scaling = decide(&[("a", 1, 1), ("b", 2, 4), ("c", 1, 1)]);
    assert_eq!(started(&scaling), [r#"a {"w1": 1}"#]);
    assert_eq!(
        waiting(&scaling),
        ["b: first in line: 0 ps and 2 workers do not fit now", "c: behind b, which does not fit"]
    );
}

#[test]
fn head_that_never_fits_blocks_all_others() {
    assert!(decide(&[("a", 1, 5), ("b", 1, 1)]).start.is_empty());
}

#[test]
fn a_running_job_takes_its_room() {
    let mut frame = frame(&[("r", 1, 3), ("a", 2, 3)]);
    frame.jobs[0].state = crate::cluster::gangs::State::Running;
    frame.jobs[0].placement.workers = [("w2".to_owned(), 1)].into();
    let scaling = FifoGang::new(&Params::default()).unwrap().decide(&frame);
    assert!(scaling.start.is_empty());
    assert_eq!(scaling.weights.len(), 2);
}

proptest! {
    #[test]
    fn prefix_of_the_queue_starts_complete(
        jobs in prop::collection::vec((0..4_u32, 0..5_u32), 0..6)
    ) {
        let names = ["f", "b", "d", "a", "e", "c"];
        let jobs: Vec<(&str, u32, u32)> =
            names.into_iter().zip(jobs).map(|(id, (workers, cores))| (id, workers, cores)).collect();
        let scaling = decide(&jobs);
        let line: Vec<&str> = jobs.iter().map(|(id, ..)| *id).collect();
        let started = scaling.start.iter().map(|start| start.job.as_str());
        let answered: Vec<&str> =
            started.chain(scaling.waiting.iter().map(|waiting| waiting.job.as_str())).collect();
        prop_assert_eq!(answered, line);
        for (start, (_, workers, _)) in scaling.start.iter().zip(&jobs) {
            prop_assert_eq!(start.layout.workers.values().sum::<u32>(), *workers);
        }
        let mut reversed = frame(&jobs);
        reversed.jobs.reverse();
        prop_assert_eq!(scaling, FifoGang::default().decide(&reversed));
    }
}
