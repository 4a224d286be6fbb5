use proptest::prelude::*;

use super::properties::taken;
use super::*;

/// Seconds from one frame to the next.
const STEP: f64 = 5.0;

/// A cluster that follows the policy: starts and additions at once, removals one frame late. A removal that
/// is requested again before it is done counts once, as on a Swarm: both name the last worker.
#[derive(Debug)]
struct Cluster {
    nodes: Vec<Node>,
    jobs: Vec<Gang>,
    /// When each job arrives, and for how long it runs.
    plans: Vec<(f64, f64)>,
    ends: BTreeMap<JobId, f64>,
    /// Pending removals, with the number of workers that they leave on the node.
    leaving: Vec<(Change, u32)>,
}

impl Cluster {
    fn frame(&self, t: f64) -> GangFrame {
        let there = self.jobs.iter().zip(&self.plans).filter(|(_, (at, _))| *at <= t);
        frame(t, &self.nodes, &there.map(|(job, _)| job.clone()).collect::<Vec<_>>())
    }

    fn job(&mut self, id: &JobId) -> &mut Gang {
        self.jobs.iter_mut().find(|job| job.id == *id).unwrap()
    }

    fn advance(&mut self, t: f64, scaling: &Scaling) -> Result<(), TestCaseError> {
        let mut leaving = Vec::new();
        for change in &scaling.scale_in {
            let there = self.job(&change.job).placement.workers.get(&change.node).copied();
            let rest = there.unwrap_or(0).checked_sub(change.count);
            prop_assert!(rest.is_some(), "{change:?} of {there:?}");
            leaving.extend(rest.map(|rest| (change.clone(), rest)));
        }
        for (change, rest) in std::mem::replace(&mut self.leaving, leaving) {
            if let Some(workers) = self.job(&change.job).placement.workers.get_mut(&change.node) {
                *workers = rest.min(*workers);
            }
        }
        for start in &scaling.start {
            let at = self.jobs.iter().position(|job| job.id == start.job).unwrap();
            self.ends.insert(start.job.clone(), t + self.plans[at].1);
            (self.jobs[at].state, self.jobs[at].placement) = (State::Running, start.layout.clone());
        }
        for change in &scaling.scale_out {
            *self.job(&change.job).placement.workers.entry(change.node.clone()).or_default() +=
                change.count;
        }
        prop_assert!(scaling.scale_out.is_empty() || scaling.scale_in.is_empty());
        let taken = taken(&self.jobs);
        for node in &self.nodes {
            let (cpu, memory) = taken.get(node.name.as_str()).copied().unwrap_or_default();
            prop_assert!(cpu <= node.cpus.unwrap() && memory <= node.memory.unwrap());
        }
        for job in &mut self.jobs {
            let over = self.ends.get(&job.id).is_some_and(|end| *end <= t);
            if job.state == State::Running {
                prop_assert!(job.placement.workers.values().sum::<u32>() >= job.worker.min);
                if over {
                    (job.state, job.placement) = (State::Finished, Layout::default());
                }
            }
        }
        Ok(())
    }
}

/// A cluster and jobs that each fit it when it is empty.
fn any_cluster() -> impl Strategy<Value = Cluster> {
    let nodes =
        (2..9_u32, 2..9_u32).prop_map(|(a, b)| nodes([("w1", f64::from(a)), ("w2", f64::from(b))]));
    let job = ((0..60_u32, 1..60_u32), 0..2_u32, (1..4_u32, 0..3_u32, 1..4_u32));
    let jobs = prop::collection::vec(job, 2..9);
    (nodes, jobs).prop_map(|(nodes, jobs)| {
        let mut cluster = Cluster {
            nodes,
            jobs: Vec::new(),
            plans: Vec::new(),
            ends: BTreeMap::new(),
            leaving: Vec::new(),
        };
        for (at, ((arrives, lasts), ps, (min, more, worker))) in jobs.into_iter().enumerate() {
            let arrives = f64::from(arrives);
            let mut job = gang(&format!("j{at}"), arrives, f64::from(ps), min, f64::from(worker));
            job.worker.max = Some(min + more);
            if !decide(arrives, &cluster.nodes, std::slice::from_ref(&job)).start.is_empty() {
                cluster.jobs.push(job);
                cluster.plans.push((arrives, f64::from(lasts)));
            }
        }
        cluster
    })
}

proptest! {
    #[test]
    fn every_job_that_fits_the_empty_cluster_starts_eventually(mut cluster in any_cluster()) {
        let mut params = Params::default();
        params.set("quiet", 5.0);
        let mut policy = Kod2::new(Variant::Resolved, &params).unwrap();
        let lasts: f64 = cluster.plans.iter().map(|(_, lasts)| lasts + 4.0 * STEP).sum();
        let bound = 60.0 + 30.0 + lasts;
        let mut t = 0.0;
        while cluster.jobs.iter().any(|job| job.state != State::Finished) {
            let frame = cluster.frame(t);
            let scaling = policy.decide(&frame);
            prop_assert!(t <= bound, "{scaling:?}");
            cluster.advance(t, &scaling)?;
            t += STEP;
        }
    }
}
