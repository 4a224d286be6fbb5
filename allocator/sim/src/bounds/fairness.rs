//! Finish-time fairness: how long each job takes compared with an equal share.

use std::collections::BTreeSet;

use super::Task;
use super::deadlines::{Due, least_postponement};
use crate::fluid::{Demand, Fluid};
use crate::scenario::{Competition, Job, Node};

/// How long each job takes from its arrival to its end if all jobs present share the nodes equally,
/// in seconds. Shares are equal by limiter weights, up to the jobs' caps. The time is infinite for
/// a job that never ends.
///
/// Finish-time fairness compares with this time: ρ is a job's completion time over that with an
/// equal part of the cluster, 1/N of it among N jobs of one weight. Source: Mahajan et al.,
/// "Themis: fair and efficient GPU cluster scheduling", NSDI 2020. N changes as jobs come and go.
/// The time is that of the run in which all share equally, as if each job owned its part. So every
/// policy is compared with the same figure. Under `none`, on one node without contention, every ρ
/// is 1.
pub fn equal_shares(jobs: &[Job], nodes: &[Node]) -> Vec<f64> {
    let machines = nodes.iter().map(Node::room).sum();
    let mut arrivals: Vec<usize> = (0..jobs.len()).collect();
    let release = |job: &usize| jobs.get(*job).map_or(f64::INFINITY, |job| job.arrive);
    arrivals.sort_by(|a, b| release(a).total_cmp(&release(b)));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut times = vec![f64::INFINITY; jobs.len()];
    let mut starting: BTreeSet<usize> = BTreeSet::new();
    let mut fluid = Fluid::new(0.0);
    loop {
        let arrival = arrivals.peek().map(release);
        match (fluid.next(), arrival) {
            (Some((at, index)), _) if arrival.is_none_or(|arrival| at <= arrival) => {
                fluid.advance(at);
                fluid.remove(index);
                let Some((time, job)) = times.get_mut(index).zip(jobs.get(index)) else { continue };
                if starting.remove(&index) {
                    fluid.insert(index, demand(job, machines), job.work);
                } else {
                    *time = at - job.arrive;
                }
            }
            (_, Some(at)) => {
                fluid.advance(at);
                let next = arrivals.next().and_then(|index| Some((index, jobs.get(index)?)));
                let Some((index, job)) = next else { continue };
                if let Some(start) = job.start {
                    starting.insert(index);
                    let demand = weighing(job, job.starting(start), machines);
                    fluid.insert(index, demand, start.work);
                } else {
                    fluid.insert(index, demand(job, machines), job.work);
                }
            }
            (_, None) => return times,
        }
    }
}

/// A job's demand on all nodes together, in shares of what is available to jobs.
fn demand(job: &Job, machines: f64) -> Demand {
    let own = job.demand(paceline_policy::Share::ALL, job.cpu_shares, 1.0, Competition::default());
    weighing(job, own, machines)
}

/// Scales a demand to all nodes together, with the job's limiter weight.
fn weighing(job: &Job, own: Demand, machines: f64) -> Demand {
    let (cap, speed) = (own.cap / machines, own.speed * machines);
    Demand { weight: job.weight, cap, speed, contention: None, ..own }
}

/// A lower bound of the worst ρ. Each job's deadline is a multiple of its time by equal shares, and
/// this is the least multiple at which all deadlines can be kept. Deadlines count from releases,
/// which come after starts. So they are later than those of a ρ that counts from arrivals.
pub fn worst_fairness(tasks: &[Task], equal: &[f64], machines: f64) -> f64 {
    let jobs = tasks.iter().zip(equal);
    let due = |(task, equal): (&Task, &f64)| Due { task: *task, base: task.release, pace: *equal };
    least_postponement(&jobs.map(due).collect::<Vec<Due>>(), machines)
}
