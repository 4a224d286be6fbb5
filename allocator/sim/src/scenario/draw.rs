//! Expands groups of jobs to jobs, and draws all random values.

use std::sync::Arc;

use paceline_policy::limiter::DEFAULT_WEIGHT;
use paceline_policy::unit::count;
use paceline_policy::{JobId, Share};
use paceline_wire::Targets;

use super::file::{ArriveFile, JobFile};
use super::rules::numbered;
use super::{Job, Node, ReachedAt, Scenario};
use crate::random::{Purpose, Stream};
use crate::residuals::Residuals;

/// The number of a job's batches by default.
pub(crate) const DEFAULT_BATCHES: f64 = 1000.0;

/// The jobs of all groups, in the order of the file.
pub(super) fn draw(scenario: &Scenario, groups: &[JobFile], seed: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let arrivals = arrivals(group, Stream::new(seed, Purpose::Arrival, number));
        let loss = group.loss.clone().map(Arc::new);
        let residuals = Arc::new(Residuals::new(&group.residuals));
        let node = group.node.as_ref();
        let node = node.and_then(|name| scenario.nodes.iter().position(|n| n.name == *name));
        let own = node.and_then(|node| scenario.nodes.get(node));
        let rooms = own.map_or(&*scenario.nodes, std::slice::from_ref).iter().map(Node::room);
        let room = rooms.fold(0.0, f64::max);
        for (member, (name, arrive)) in
            numbered(&group.name, group.count).into_iter().zip(arrivals).enumerate()
        {
            let index = jobs.len();
            let mut random = Stream::new(seed, Purpose::Work, index);
            let work = match (group.work, group.heavy_tail) {
                (Some(work), _) => work,
                (None, Some(tail)) => random.pareto(tail.least, tail.shape).min(tail.most),
                (None, None) => f64::INFINITY,
            };
            let batch = group.batch.map_or(work / DEFAULT_BATCHES, |batch| batch.work);
            let fall = loss.as_ref().map_or(0.0, |curve| (curve.at(0.0) - curve.at(1.0)).abs());
            let shares = |x: Option<f64>| x.map(Share::nearest);
            let targets = Targets {
                acceptable: group.acceptable,
                objective: group.objective,
                batch_latency: batch_latency(
                    group,
                    member,
                    Stream::new(seed, Purpose::Target, index),
                ),
            };
            jobs.push(Job {
                id: JobId::new(name).expect("a checked name is not empty"),
                arrive,
                start: group.start,
                node,
                room,
                work,
                declared: group.declared.or(Some(work).filter(|work| work.is_finite())),
                total: group.stated_total.total(work / batch, random),
                parallel: group.parallel.unwrap_or(1.0),
                threads: group.threads,
                crowded: group.crowded.unwrap_or(1.0),
                contention: group.contention,
                throttle_cost: group.throttle_cost,
                batch,
                fixed: group.batch.map_or(0.0, |batch| batch.fixed),
                batch_noise: group.batch.map_or(0.0, |batch| batch.noise),
                loss: loss.clone(),
                residuals: Arc::clone(&residuals),
                noise: group.noise * fall,
                early_reports: group.early_reports,
                targets,
                reached_at: ReachedAt {
                    acceptable: group.acceptable_at,
                    objective: group.objective_at,
                },
                may_terminate: group.may_terminate,
                min: shares(group.min),
                max: shares(group.max),
                weight: group.weight.unwrap_or(1.0),
                cpu_shares: group.cpu_shares.unwrap_or(DEFAULT_WEIGHT),
                max_slowdown: group.max_slowdown,
                checkpoint: group.checkpoint.unwrap_or_default(),
                failures: group.failures.clone(),
            });
        }
    }
    jobs
}

fn batch_latency(group: &JobFile, member: usize, mut random: Stream) -> Option<f64> {
    let each = group.batch_latency_each.as_ref().and_then(|each| each.get(member).copied());
    let drawn = group.batch_latency_between.map(|(low, high)| random.between(low, high));
    group.batch_latency.or(each).or(drawn)
}

/// When the members of a group arrive, in the order of time.
fn arrivals(group: &JobFile, mut random: Stream) -> Vec<f64> {
    let members = 0..group.count;
    if let Some((low, high)) = group.arrive.uniform {
        let mut times: Vec<f64> = members.map(|_| random.between(low, high)).collect();
        times.sort_by(f64::total_cmp);
        return times;
    }
    if let Some(gap) = group.arrive.poisson {
        let next = |at: &mut f64, _| {
            *at += random.exponential(gap);
            Some(*at)
        };
        return members.scan(group.arrive.from.unwrap_or(0.0), next).collect();
    }
    fixed_arrivals(&group.arrive, group.count)
}

/// The same for a group whose arrivals are not drawn.
pub(super) fn fixed_arrivals(arrive: &ArriveFile, members: u32) -> Vec<f64> {
    if let Some(each) = &arrive.each {
        return each.clone();
    }
    let (from, every) = (arrive.from.or(arrive.at).unwrap_or(0.0), arrive.every.unwrap_or(0.0));
    let members = usize::try_from(members).unwrap_or(usize::MAX);
    (0..members).map(|number| from + every * count(number)).collect()
}
