mod caps;
mod node;
mod promise;
mod robust;

use super::*;
use crate::frame::{Limit, Node, Usage};

const CPUS: f64 = 4.0;

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn policy(params: &[(&str, f64)]) -> Paceline {
    let mut given = Params::default();
    for (name, value) in params {
        given.set(*name, *value);
    }
    Paceline::new(&given).unwrap()
}

/// A job after `step` steps and `used` node-seconds of CPU time.
fn job(name: &str, used: f64, step: u64, total: Option<u64>) -> Job {
    Job {
        cpu_seconds: Some(used * CPUS),
        step: Some(step),
        total_steps: total,
        usage: Usage { cpu: Some(0.5), ..Usage::default() },
        limit: Limit { cpu: Some(1.0), applied: Some(1.0), ..Limit::default() },
        ..Job::new(id(name))
    }
}

fn frame(t: f64, jobs: Vec<Job>) -> Frame {
    let node = Node { name: "n".into(), cpus: Some(CPUS), ..Node::default() };
    Frame { t, nodes: vec![node], jobs }
}

/// Three jobs with steps of 0.1 node-seconds that have shared a node equally for 90 s. `left` gives the
/// steps that each has left.
fn settled(policy: &mut Paceline, left: [(&str, u64); 3]) -> Decision {
    let at = |t: u32| {
        let jobs = left.map(|(name, left)| {
            let used = f64::from(t) / 3.0;
            let mut job = job(name, used, u64::from(t) * 10 / 3, Some(300 + left));
            job.usage.cpu = Some(1.0 / 3.0);
            job
        });
        frame(f64::from(t), jobs.to_vec())
    };
    for t in (0..90).step_by(3) {
        policy.decide(&at(t));
    }
    policy.decide(&at(90))
}

fn shares(decision: &Decision) -> Vec<f64> {
    decision.limits.values().map(|share| share.get()).collect()
}

fn classes(decision: &Decision) -> Vec<&'static str> {
    decision.jobs.values().map(|job| job.class).collect()
}

#[test]
fn job_with_least_work_left_gets_the_node() {
    let decision = settled(&mut policy(&[]), [("a", 900), ("b", 50), ("c", 400)]);
    assert_eq!(classes(&decision), ["waits", "runs", "waits"]);
    assert_eq!(shares(&decision), [0.01, 1.0, 0.01]);
    assert_eq!(decision.waiting, [id("a"), id("c")]);
    let why = |name: &str| decision.jobs[&id(name)].why.to_string();
    assert!(why("b").starts_with("5.0 s of work left, the least of 3; slack of the others"));
    assert!(why("a").starts_with("waits: b has 5.0 s of work left"), "{}", why("a"));
}

#[test]
fn job_that_reports_its_end_is_believed_for_a_tenth_of_its_use() {
    let mut policy = policy(&[]);
    settled(&mut policy, [("a", 900), ("b", 50), ("c", 400)]);
    let mut left = |t: f64, used: f64| {
        let mut says = job("a", used, 300, Some(1200));
        (says.loss, says.targets.objective, says.reached.objective) = (Some(5.0), Some(1.0), true);
        let others = [job("b", 30.0, 300, Some(350)), job("c", 30.0, 300, Some(700))];
        let decision = policy.decide(&frame(t, [vec![says], others.to_vec()].concat()));
        decision.jobs[&id("a")].score.unwrap()
    };
    assert!((left(91.0, 30.0) - 3.0).abs() < 1e-9);
    assert!((left(92.0, 32.0) - 1.0).abs() < 1e-9);
    assert!(left(94.0, 33.5) > 80.0, "no loss has borne it out");
}

#[test]
fn outlook_gives_ends_by_work_order_and_under_equal_sharing() {
    let decision = settled(&mut policy(&[]), [("a", 900), ("b", 50), ("c", 400)]);
    for (name, left, ends, fair) in
        [("a", 90.0, 135.0, 135.0), ("b", 5.0, 5.0, 15.0), ("c", 40.0, 45.0, 85.0)]
    {
        let outlook = decision.jobs[&id(name)].outlook.as_deref().unwrap();
        let is = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 0.02 * b);
        assert!(is(outlook.work_left, left), "{name}: {outlook:?}");
        assert!(is(outlook.ends_in, ends) && is(outlook.fair_ends_in, fair), "{name}: {outlook:?}");
        assert_eq!(outlook.waits_for, (name != "b").then(|| id("b")));
    }
    let mut silent = policy(&[]);
    let jobs = || ["a", "b"].map(|name| job(name, 1.0, 1, None)).to_vec();
    silent.decide(&frame(0.0, jobs()));
    let decisions = silent.decide(&frame(1.0, jobs())).jobs;
    assert!(decisions.values().all(|job| job.outlook.is_none()));
}

#[test]
fn jobs_that_state_nothing_are_left_alone() {
    let mut policy = policy(&[]);
    for t in 0..30_u32 {
        let jobs = ["a", "b"].map(|name| job(name, 0.5 * f64::from(t), u64::from(t), None));
        let decision = policy.decide(&frame(f64::from(t), jobs.to_vec()));
        assert_eq!(shares(&decision), [1.0, 1.0]);
        assert_eq!(classes(&decision), ["shares", "shares"]);
    }
}

#[test]
fn newcomer_is_served_first_and_others_get_the_rest() {
    let mut policy = policy(&[]);
    let using = |job: Job, cpu: f64| Job { usage: Usage { cpu: Some(cpu), ..job.usage }, ..job };
    let alone = policy.decide(&frame(0.0, vec![job("a", 0.0, 0, Some(900))]));
    assert_eq!(shares(&alone), [1.0], "the only job has no limit");
    for t in 1..=60_u32 {
        let used = f64::from(t) * 0.9;
        let alone = using(job("a", used, 9 * u64::from(t), Some(900)), 0.9);
        policy.decide(&frame(f64::from(t), vec![alone]));
    }
    let mut has = 1.0;
    for (t, used, uses, class, share) in [
        (61.0, 0.0, 0.0, "runs", 0.6),
        (61.5, 0.25, 0.5, "runs", 0.35),
        (62.0, 0.48, 0.6, "waits", 0.02),
    ] {
        let newcomer = using(job("b", used, 0, Some(10)), uses);
        let mut other = using(job("a", 54.0, 540, Some(900)), 0.9 * has);
        (other.limit.cpu, other.limit.applied) = (Some(has), Some(has));
        let decision = policy.decide(&frame(t, vec![other, newcomer]));
        assert_eq!(classes(&decision), [class, "new"], "{uses}");
        let [of_other, of_newcomer] = shares(&decision)[..] else { panic!("{decision:?}") };
        assert!((of_other - share).abs() < 1e-12, "{uses}: {of_other}");
        assert!((of_newcomer - 1.0).abs() < 1e-12 && (decision.interval - 1.0).abs() < 1e-12);
        has = of_other;
    }
}

#[test]
fn job_at_its_objective_is_ended_and_has_no_limit() {
    let mut policy = policy(&[]);
    let at = |t: u32, loss: f64| {
        let mut one = job("a", f64::from(t), u64::from(t), Some(100));
        (one.loss, one.targets.objective) = (Some(loss), Some(1.0));
        one.reached.objective = loss <= 1.0;
        frame(f64::from(t), vec![one, job("b", f64::from(t), u64::from(t), Some(100))])
    };
    assert!(policy.decide(&at(1, 1.5)).terminate.is_empty());
    for t in 2..5 {
        let decision = policy.decide(&at(t, 0.9));
        assert_eq!(decision.terminate, [id("a")]);
        assert!(decision.limits.get(&id("a")).is_none() && decision.limits.get(&id("b")).is_some());
    }
}

#[test]
fn service_gets_its_need_and_training_the_rest() {
    let mut policy = policy(&[]);
    let at = |t: u32, share: f64| {
        let mut serving = job("s", 0.1 * f64::from(t), 0, None);
        serving.targets.batch_latency = Some(1.0);
        serving.usage.cpu = Some(share);
        serving.batch_latency = Some(0.2 + 0.16 / share);
        let step = u64::from(t) * 10;
        let mut a = job("a", 0.5 * f64::from(t), step, Some(9000));
        a.usage.cpu = Some(1.0 - share);
        frame(f64::from(t), vec![serving, a])
    };
    let mut share = 0.4;
    for t in 0..40 {
        let decision = policy.decide(&at(t, share));
        share = decision.limits[&id("s")].get();
    }
    assert!((share - 1.02 * 0.2).abs() < 0.01, "{share}");
    let decision = policy.decide(&at(40, share));
    assert_eq!(decision.jobs[&id("s")].class, "service");
    let train = decision.limits[&id("a")].get();
    assert!((train + share - 1.0).abs() < 1e-6, "{train} beside {share}");
}

#[test]
fn job_that_stated_far_too_little_is_doubted() {
    let mut policy = policy(&[]);
    let mut last = None;
    for t in 0..60_u32 {
        let step = 2 * u64::from(t);
        let liar = job("liar", 0.2 * f64::from(t), step, Some(step + 1));
        let honest = job("other", 0.2 * f64::from(t), step, Some(900));
        last = Some(policy.decide(&frame(f64::from(t), vec![liar, honest])));
    }
    let decision = last.unwrap();
    assert_eq!(decision.jobs[&id("liar")].class, "shares");
    let why = decision.jobs[&id("liar")].why.to_string();
    assert!(why.starts_with("used far more than it stated"), "{why}");
}

#[test]
fn job_with_a_small_cap_lends_the_rest() {
    let mut policy = policy(&[]);
    let mut beside = false;
    let (mut used, mut limits) = ([0.0, 0.0], [1.0, 1.0]);
    for t in 0..60 {
        let mut jobs = Vec::new();
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            let use_now = if at == 0 { 0.2_f64.min(limits[at]) } else { 0.8_f64.min(limits[at]) };
            used[at] += use_now;
            let mut one =
                job(name, used[at], crate::unit::whole(10.0 * used[at]), Some([400, 800][at]));
            one.usage.cpu = Some(use_now);
            (one.limit.cpu, one.limit.applied) = (Some(limits[at]), Some(limits[at]));
            jobs.push(one);
        }
        let decision = policy.decide(&frame(f64::from(t), jobs));
        limits = [shares(&decision)[0], shares(&decision)[1]];
        beside |= classes(&decision) == ["runs", "runs"] && limits[1] > 0.75;
    }
    assert!(beside, "{limits:?}");
}
