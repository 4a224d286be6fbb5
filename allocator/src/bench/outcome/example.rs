//! Hand-made observations and findings for tests.

use std::collections::BTreeMap;

use super::super::arm::Record;
use super::super::containers::End;
use super::super::machine::Machine;
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
) -> Record {
    let end = |t: &f64| End { at: BEGAN + t, exit_code: 0, out_of_memory: false };
    let sample = |(t, jobs)| Sample {
        t: t + 2.0,
        unix: BEGAN + t,
        node: SampleNode { cpus: 2.0, cpu: Some(0.9) },
        jobs,
    };
    Record {
        began: BEGAN,
        ends: ends.iter().map(end).collect(),
        samples: samples.into_iter().map(sample).collect(),
        limits_left: Vec::new(),
    }
}

/// The jobs `names`, all of which run for 30 s, under `policies`.
pub(crate) fn example(policies: &[&str], names: &[&str]) -> (Findings, Vec<Record>) {
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
    (findings, vec![one; policies.len()])
}
