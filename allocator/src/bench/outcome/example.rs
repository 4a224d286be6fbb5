//! Hand-made observations and findings for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::machine::Machine;
use super::super::record::{Host, JobRun, Recorded, Run};
use super::super::schedule::Job;
use super::{ArmOutcome, Findings, JobFacts, compare_all};
use crate::samples::{Sample, SampleJob, SampleNode};

/// Unix seconds at which the hand-made records begin.
const BEGAN: f64 = 1_760_000_000.0;

pub(crate) fn job(name: &str, arrive: f64) -> Job {
    Job {
        name: name.to_owned(),
        image: "image".to_owned(),
        command: Vec::new(),
        arrive,
        work: None,
        node: None,
        checkpoint: None,
        env: BTreeMap::new(),
        labels: BTreeMap::new(),
    }
}

pub(crate) fn running(name: &str, loss: f64, steps: u64) -> SampleJob {
    SampleJob {
        id: name.to_owned(),
        loss: Some(loss),
        steps: Some(steps),
        cpu: Some(0.4),
        limit: Some(0.5),
        target_acceptable: None,
        target_objective: None,
    }
}

/// A record whose jobs end after so many seconds.
pub(crate) fn record(
    ends: &[f64],
    samples: impl IntoIterator<Item = (f64, Vec<SampleJob>)>,
) -> Recorded {
    let job = |(at, ended): (usize, &f64)| JobRun {
        job: at.to_string(),
        arrived: 0.0,
        ended: *ended,
        exit_code: 0,
        out_of_memory: false,
    };
    let sample = |(t, jobs)| Sample {
        t: t + 2.0,
        unix: BEGAN + t,
        node: SampleNode { cpus: 2.0, cpu: Some(0.9) },
        jobs,
    };
    let run = Run {
        arm: "none".to_owned(),
        repeat: 1,
        began: BEGAN,
        jobs: ends.iter().enumerate().map(job).collect(),
        limits_left: Vec::new(),
        host: Host::default(),
        moves: Vec::new(),
    };
    let samples = samples.into_iter().map(sample).collect();
    Recorded { run, samples, folder: PathBuf::new() }
}

/// The jobs `names`, all of which run for 30 s, under `policies`.
pub(crate) fn example(policies: &[&str], names: &[&str]) -> (Findings, Vec<Recorded>) {
    let jobs: Vec<_> = names.iter().map(|name| job(name, 0.0)).collect();
    let second = |t: u32| {
        let loss = 100.0 / f64::from(t + 1);
        (f64::from(t), names.iter().map(|name| running(name, loss, 1)).collect())
    };
    let one = record(&vec![30.0; names.len()], (0..30).map(second));
    let judge = |policy: &&str| ArmOutcome::judge(policy, BTreeMap::new(), &jobs, &one);
    let mut arms: Vec<_> = policies.iter().map(judge).collect();
    compare_all(&mut arms);
    let machine = Machine { cpus: 2, memory: None, system: None, kernel: None, engine: None };
    let findings = Findings {
        name: "demo".to_owned(),
        description: "what & why".to_owned(),
        run: "1".to_owned(),
        date: "2026-11-21T12:16:16Z".to_owned(),
        machine,
        jobs: jobs.iter().map(|job| JobFacts::new(job, None)).collect(),
        arms,
        together: None,
    };
    let of = |policy: &&str| {
        let run = Run { arm: (*policy).to_owned(), ..one.run.clone() };
        Recorded { run, ..one.clone() }
    };
    (findings, policies.iter().map(of).collect())
}
