use proptest::prelude::*;

use super::*;
use crate::frame::Node;
use crate::unit::saturate;

fn node(name: &str, cpus: f64, memory: f64) -> Node {
    Node { name: name.into(), cpus: Some(cpus), memory: Some(memory), ..Node::default() }
}

/// A task of job `j` that needs some cores and no memory.
fn task(id: &str, role: Role, cpu: f64, node: Option<&str>) -> Task {
    Task {
        id: JobId::new(id).unwrap(),
        job: JobId::new("j").unwrap(),
        role,
        cpu: Some(cpu),
        memory: None,
        node: node.map(str::to_owned),
    }
}

fn in_job(job: &str, task: Task) -> Task {
    Task { job: JobId::new(job).unwrap(), ..task }
}

fn decide(nodes: &[Node], tasks: &[Task]) -> Placement {
    let mut policy = Dltap::new(&Params::default()).unwrap();
    policy.decide(&TaskFrame { t: 1.0, nodes: nodes.to_vec(), tasks: tasks.to_vec() })
}

/// What was placed where, as `task:node`, in the order of placing.
fn placed(answer: &Placement) -> Vec<String> {
    answer.place.iter().map(|bound| format!("{}:{}", bound.task, bound.node)).collect()
}

fn pending(answer: &Placement) -> Vec<String> {
    answer.pending.iter().map(|pending| format!("{}: {}", pending.task, pending.why)).collect()
}

/// Three equal nodes, and workers on them as in Section 3: two, none and one.
fn section_3() -> ([Node; 3], Vec<Task>) {
    let workers = [("wk1", "s1"), ("wk2", "s3"), ("wk3", "s1")];
    let workers = workers.map(|(id, at)| task(id, Role::Worker, 0.0, Some(at)));
    (["s1", "s2", "s3"].map(|name| node(name, 4.0, 4.0)), workers.to_vec())
}

#[test]
fn a_node_scores_by_the_share_of_the_jobs_workers_on_it() {
    // Workers (2, 0, 1) of 3: 2/3, 0 and 1/3 of the weight. A worker on a node that is not listed
    // is one of all.
    let (nodes, mut tasks) = section_3();
    tasks.push(task("ps1", Role::Ps, 0.0, None));
    let near = |node: &Node| decide(std::slice::from_ref(node), &tasks).place[0].score - 100.0;
    let scores = nodes.each_ref().map(|node| format!("{:.1}", near(node)));
    assert_eq!(scores, ["666.7", "0.0", "333.3"]);
}

#[test]
fn parameter_servers_go_where_most_gradients_stay_on_the_node() {
    // Both beside the two workers: 2 transmissions across nodes, against 4 and 6 in the paper's
    // scenarios (A8). Where only one fits, the other goes to the third worker: 3.
    let across = |room: f64| {
        let (mut nodes, mut tasks) = section_3();
        nodes[0].cpus = Some(room);
        tasks.extend(["ps1", "ps2"].map(|id| task(id, Role::Ps, 1.0, None)));
        let answer = decide(&nodes, &tasks);
        let far = |bound: &Bound| {
            let elsewhere = |task: &&Task| task.node.as_ref().is_some_and(|at| *at != bound.node);
            tasks.iter().filter(elsewhere).count()
        };
        (placed(&answer).join(" "), answer.place.iter().map(far).sum())
    };
    assert_eq!(across(4.0), ("ps1:s1 ps2:s1".to_owned(), 2_usize));
    assert_eq!(across(1.0), ("ps1:s1 ps2:s3".to_owned(), 3_usize));
}

#[test]
fn a_job_without_workers_is_placed_by_what_is_free() {
    let nodes = [node("a", 4.0, 4.0), node("b", 8.0, 4.0)];
    let answer = decide(&nodes, &[task("ps", Role::Ps, 2.0, None)]);
    // (0.75 + 1)/2 beats (0.5 + 1)/2.
    assert_eq!(placed(&answer), ["ps:b"]);
    assert!((answer.place[0].score - 87.5).abs() < 1e-9);
}

#[test]
fn workers_go_where_most_stays_free_in_the_order_of_their_ids() {
    let nodes = [node("a", 4.0, 100.0), node("b", 4.0, 100.0)];
    let mut tasks = ["w3", "w1", "w2"].map(|id| task(id, Role::Worker, 1.0, None)).to_vec();
    tasks[1].memory = Some(50.0);
    let answer = decide(&nodes, &tasks);
    // w1 leaves 0.75 and 0.5 on a; then b is the emptier one: 0.75 and 1, then 0.5 and 1.
    assert_eq!(placed(&answer), ["w1:a", "w2:b", "w3:b"]);
    let scores: Vec<String> = answer.place.iter().map(|b| format!("{}", b.score)).collect();
    assert_eq!(scores, ["62.5", "87.5", "75"]);
    let why = &answer.place[0].why;
    assert_eq!(why.to_string(), "100 x mean of the free fractions, cpu 0.7500 and memory 0.5000");
}

#[test]
fn workers_of_this_frame_draw_their_parameter_server() {
    let tasks = [task("a-ps", Role::Ps, 1.0, None), task("b-worker", Role::Worker, 1.0, None)];
    let answer = decide(&[node("n1", 4.0, 1.0), node("n2", 8.0, 1.0)], &tasks);
    assert_eq!(placed(&answer), ["b-worker:n2", "a-ps:n2"]);
    assert!(answer.place[1].why.to_string().ends_with(", + 10 x 100 x 1 of 1 workers"));
}

#[test]
fn job_whose_workers_do_not_all_fit_binds_no_task() {
    // A4: w1 would fit, w2 does not; the next job gets the room.
    let tasks = [
        task("w1", Role::Worker, 2.0, None),
        task("w2", Role::Worker, 3.0, None),
        task("ps", Role::Ps, 0.1, None),
        in_job("k", task("x1", Role::Worker, 3.0, None)),
    ];
    let answer = decide(&[node("n", 4.0, 0.0)], &tasks);
    assert_eq!(placed(&answer), ["x1:n"]);
    assert_eq!(
        pending(&answer),
        [
            "w1: worker w2 of its job fits on no node: the whole job waits",
            "w2: needs 3 cores and 0 bytes, and no node has both free: \
             at most 2 cores and 0 bytes",
            "ps: worker w2 of its job fits on no node: the whole job waits",
        ]
    );
}

#[test]
fn bound_workers_stay_bound_when_another_does_not_fit() {
    let tasks = [
        task("w1", Role::Worker, 2.0, Some("n")),
        task("w2", Role::Worker, 3.0, None),
        task("ps", Role::Ps, 0.1, None),
    ];
    let answer = decide(&[node("n", 4.0, 0.0)], &tasks);
    assert!(placed(&answer).is_empty());
    assert_eq!(answer.pending.len(), 2);
}

#[test]
fn parameter_server_without_a_node_does_not_block_others() {
    let tasks = [
        task("w", Role::Worker, 1.0, None),
        task("p1", Role::Ps, 4.0, None),
        task("p2", Role::Ps, 3.0, None),
    ];
    let answer = decide(&[node("n", 4.0, 0.0)], &tasks);
    assert_eq!(placed(&answer), ["w:n", "p2:n"]);
    assert_eq!(answer.pending.len(), 1);
    assert!(matches!(answer.pending[0].why, Obstacle::NoRoom { .. }));
}

#[test]
fn ties_go_to_fewer_parameter_servers_then_to_the_lower_name() {
    // A7: one worker on each node, and a ps that takes no room on the first.
    let nodes = ["n3", "n2", "n1"].map(|name| node(name, 4.0, 4.0));
    let mut tasks: Vec<Task> =
        ["1", "2", "3"].map(|n| task(n, Role::Worker, 0.0, Some(&format!("n{n}")))).to_vec();
    tasks.push(task("p0", Role::Ps, 0.0, Some("n1")));
    tasks.extend(["p1", "p2", "p3"].map(|id| task(id, Role::Ps, 0.0, None)));
    assert_eq!(placed(&decide(&nodes, &tasks)), ["p1:n2", "p2:n3", "p3:n1"]);
}

#[test]
fn scores_that_differ_by_rounding_alone_are_equal() {
    // 0.2 + 0.4 is not 0.6: the first node is the fuller one, by the last bit.
    let nodes = [node("n1", 1.0, 1.0), node("n2", 1.0, 1.0)];
    let tasks = [
        task("a", Role::Worker, 0.2, Some("n1")),
        task("b", Role::Worker, 0.4, Some("n1")),
        task("c", Role::Worker, 0.6, Some("n2")),
        task("d", Role::Worker, 0.1, None),
    ];
    assert_eq!(placed(&decide(&nodes, &tasks)), ["d:n1"]);
}

#[test]
fn a_need_that_is_exceeded_by_rounding_alone_fits() {
    let bound = |cpu| task("a", Role::Worker, cpu, Some("n"));
    let fits = |cpu: f64| {
        let new = task("b", Role::Worker, 1.0 - cpu, None);
        placed(&decide(&[node("n", 1.0, 0.0)], &[bound(cpu + 1e-10), new])).len()
    };
    assert_eq!(fits(0.3), 1);
    let new = task("b", Role::Worker, 0.7, None);
    assert!(placed(&decide(&[node("n", 1.0, 0.0)], &[bound(0.3 + 1e-8), new])).is_empty());
}

#[test]
fn a_task_on_a_node_that_is_not_listed_takes_no_room() {
    let tasks = [task("a", Role::Worker, 4.0, Some("gone")), task("b", Role::Worker, 4.0, None)];
    assert_eq!(placed(&decide(&[node("n", 4.0, 0.0)], &tasks)), ["b:n"]);
}

#[test]
fn missing_resource_of_a_node_counts_as_free_fraction_0() {
    let unknown = Node { name: "n".into(), cpus: Some(2.0), ..Node::default() };
    let answer = decide(&[unknown], &[task("a", Role::Worker, 0.0, None)]);
    assert!((answer.place[0].score - 50.0).abs() < 1e-9);
}

#[test]
fn an_answer_is_written_as_documented() {
    let tasks = [task("a", Role::Worker, 1.0, None), task("b", Role::Ps, 2.0, None)];
    let json = serde_json::to_value(decide(&[node("n", 2.0, 8.0)], &tasks)).unwrap();
    let expected = serde_json::json!({
        "t": 1.0,
        "policy": "dltap",
        "place": [{
            "task": "a", "node": "n", "score": 75.0,
            "why": "100 x mean of the free fractions, cpu 0.5000 and memory 1.0000"
        }],
        "pending": [{
            "task": "b",
            "why": "needs 2 cores and 0 bytes, and no node has both free: \
                    at most 1 cores and 8 bytes"
        }]
    });
    assert_eq!(json, expected);
}

#[test]
fn bad_parameters_are_named() {
    let mut params = Params::default();
    params.set("weight", -1.0);
    let error = Dltap::new(&params).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"invalid parameter weight "-1" of dltap: expected a number, at least 0"#
    );
}

fn any_amount() -> impl Strategy<Value = Option<f64>> {
    let odd = vec![0.0, -1.0, 1e-300, f64::MAX, f64::MIN, f64::INFINITY, f64::NAN];
    prop_oneof![Just(None), (0.0..4.0).prop_map(Some), prop::sample::select(odd).prop_map(Some)]
}

fn any_frame() -> impl Strategy<Value = TaskFrame> {
    let task = (any::<bool>(), "[jk]", any_amount(), any_amount(), prop::option::of("n[0-4]"));
    let node = (any_amount(), any_amount());
    let tasks = prop::collection::vec(task, 0..14);
    (prop::collection::vec(node, 0..4), tasks, -1e3..1e3).prop_map(|(nodes, tasks, t)| {
        let nodes = nodes.into_iter().enumerate().map(|(n, (cpus, memory))| Node {
            name: format!("n{n}").into(),
            cpus,
            memory,
            ..Node::default()
        });
        let tasks = tasks.into_iter().enumerate().map(|(n, (ps, job, cpu, memory, node))| Task {
            id: JobId::new(format!("t{n}")).unwrap(),
            job: JobId::new(job).unwrap(),
            role: if ps { Role::Ps } else { Role::Worker },
            cpu,
            memory,
            node,
        });
        TaskFrame { t, nodes: nodes.collect(), tasks: tasks.collect() }
    })
}

proptest! {
    #[test]
    fn every_unbound_task_is_placed_or_pending_with_a_finite_score(
        frame in any_frame(), weight in prop_oneof![0.0..100.0, Just(f64::MAX)]
    ) {
        let mut params = Params::default();
        params.set("weight", weight);
        let answer = Dltap::new(&params).unwrap().decide(&frame);
        let mut answered: Vec<&JobId> = answer.place.iter().map(|bound| &bound.task)
            .chain(answer.pending.iter().map(|pending| &pending.task))
            .collect();
        answered.sort();
        let unbound = frame.tasks.iter().filter(|task| task.node.is_none());
        let mut expected: Vec<&JobId> = unbound.map(|task| &task.id).collect();
        expected.sort();
        prop_assert_eq!(answered, expected);
        prop_assert!(answer.place.iter().all(|bound| bound.score.is_finite()));
    }

    #[test]
    fn workers_are_bound_all_or_none_and_nodes_are_never_overfull(
        frame in any_frame()
    ) {
        let answer = Dltap::new(&Params::default()).unwrap().decide(&frame);
        let task = |id: &JobId| frame.tasks.iter().find(|task| task.id == *id).unwrap();
        for pending in &answer.pending {
            let waits = task(&pending.task);
            let stuck = |bound: &Bound| task(&bound.task).job == waits.job;
            prop_assert!(waits.role == Role::Ps || !answer.place.iter().any(stuck));
        }
        for node in &frame.nodes {
            let new = answer.place.iter().filter(|b| b.node == node.name.as_str()).map(|b| task(&b.task));
            let there = frame.tasks.iter().filter(|task| task.node.as_deref() == Some(&*node.name));
            let (mut new, all) = (new.clone().peekable(), there.chain(new));
            // The sum saturates, as it does in the policy.
            let used = saturate(all.map(|task| Amount::for_task(task).cpu).sum());
            let has = node.cpus.filter(|cpus| cpus.is_finite()).unwrap_or(0.0).max(0.0);
            prop_assert!(new.peek().is_none() || used <= has + 1e-6);
        }
    }

    #[test]
    fn the_order_of_nodes_and_tasks_and_the_time_are_irrelevant(frame in any_frame()) {
        let mut policy = Dltap::new(&Params::default()).unwrap();
        let one = policy.decide(&frame);
        let mut other = frame.clone();
        other.nodes.reverse();
        other.tasks.reverse();
        other.t += 64.0;
        let other = policy.decide(&other);
        prop_assert_eq!((one.place, one.pending), (other.place, other.pending));
    }
}
