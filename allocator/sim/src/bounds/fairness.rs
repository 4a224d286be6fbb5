//! Finish-time fairness: how long each job takes beside what an equal share would have given it.

use std::collections::BTreeSet;

use super::Task;
use super::deadlines::{Due, put_off};
use crate::fluid::{Fluid, Party};
use crate::scenario::{Company, Job, Node};

/// How long each job takes if those that are there share all nodes equally by the weights of the
/// limiter, up to their caps, from its arrival to its end; infinite for one that never ends.
///
/// This is what finish-time fairness compares with: ρ is a job's completion time over that of an
/// equal part of the cluster, 1/N of it among N jobs of one weight (Mahajan et al., "Themis: fair and efficient
/// GPU cluster scheduling", NSDI 2020). N changes as jobs come and go. It is taken from the run in
/// which all share equally, as if each job owned its part, so that every policy is held to the same
/// figure. Under `none`, on one node without contention, every ρ is 1.
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
                    fluid.insert(index, party(job, machines), job.work);
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
                    let party = weighing(job, job.starting(start), machines);
                    fluid.insert(index, party, start.work);
                } else {
                    fluid.insert(index, party(job, machines), job.work);
                }
            }
            (_, None) => return times,
        }
    }
}

/// What a job asks of all nodes as one, of what there is for jobs.
fn party(job: &Job, machines: f64) -> Party {
    let own = job.party(paceline_policy::Share::ALL, job.cpu_shares, 1.0, Company::default());
    weighing(job, own, machines)
}

/// The same of all nodes as one, by the job's own weight.
fn weighing(job: &Job, own: Party, machines: f64) -> Party {
    let (cap, speed) = (own.cap / machines, own.speed * machines);
    Party { weight: job.weight, cap, speed, contention: None, ..own }
}

/// No policy's worst ρ is smaller: each job has as its deadline so many times what it takes by equal
/// shares, and this is the least number of times for which all deadlines can be kept. They count from
/// releases, which come after starts, and so are later than those of a ρ that counts from arrivals.
pub fn worst_fairness(tasks: &[Task], equal: &[f64], machines: f64) -> f64 {
    let jobs = tasks.iter().zip(equal);
    let due = |(task, equal): (&Task, &f64)| Due { task: *task, base: task.release, pace: *equal };
    put_off(&jobs.map(due).collect::<Vec<Due>>(), machines)
}
