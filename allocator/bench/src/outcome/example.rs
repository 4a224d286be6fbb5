//! Hand-made and simulated runs for tests.

mod simulated;

use std::collections::BTreeMap;
use std::path::PathBuf;

use paceline_api::audit;
use paceline_api::samples::{Sample, SampleCost, SampleJob, SampleNode};
use paceline_policy::Variant;
use paceline_policy::limiter::Enforcement;

use super::super::analysis::{Analysis, analyse};
use super::super::machine::Machine;
use super::super::record::{self, Host, JobRun, Recorded};
use super::super::schedule::Arm;
use super::super::schedule::Job;
use super::{About, JobFacts, Observed};
pub(crate) use simulated::{FEW, START, Simulated};

/// Unix seconds at which the runs begin.
pub(crate) const BEGAN: f64 = 1_760_000_000.0;
/// Seconds that the allocator ran before that.
const BEFORE: f64 = 3.0;

pub(crate) fn job(name: &str, arrive: f64) -> Job {
    Job {
        name: name.to_owned(),
        image: "image".to_owned(),
        command: Vec::new(),
        arrive,
        work: None,
        env: BTreeMap::new(),
        labels: BTreeMap::new(),
        node: None,
        checkpoint: None,
    }
}

pub(crate) fn running(name: &str, loss: f64, steps: u64) -> SampleJob {
    SampleJob {
        id: name.to_owned(),
        loss: Some(loss),
        steps: Some(steps),
        cpu: Some(0.4),
        throttled: Some(0.5),
        limit: Some(0.5),
        target_acceptable: None,
        target_objective: None,
        acceptable_at: None,
        objective_at: None,
    }
}

/// A run of these jobs: names, arrivals and ends.
pub(crate) fn recorded(
    arm: &str,
    repeat: u32,
    jobs: &[(&str, f64, f64)],
    samples: impl IntoIterator<Item = (f64, Vec<SampleJob>)>,
) -> Recorded {
    let sample = |(t, jobs)| Sample {
        t: t + BEFORE,
        unix: BEGAN + t,
        node: SampleNode { cpus: 2.0, cpu: Some(0.9) },
        jobs,
        cost: Some(SampleCost { cpu_seconds: 0.01 * t, writes: 0, write_seconds: 0.0 }),
    };
    let job = |(name, arrived, ended): &(&str, f64, f64)| JobRun {
        job: (*name).to_owned(),
        arrived: *arrived,
        ended: *ended,
        exit_code: 0,
        out_of_memory: false,
    };
    Recorded {
        run: record::Run {
            arm: arm.to_owned(),
            repeat,
            began: BEGAN,
            jobs: jobs.iter().map(job).collect(),
            limits_left: Vec::new(),
            host: Host { load: 0.1, others: Some(0.01), steal: 0.0, ..Host::default() },
            speed_samples: Vec::new(),
            moves: Vec::new(),
        },
        samples: samples.into_iter().map(sample).collect(),
        folder: PathBuf::from(format!("runs/{repeat:03}-{arm}")),
    }
}

/// An observed run without frames and without an audit log.
pub(crate) fn bare(recorded: &Recorded) -> Observed<'_> {
    Observed { recorded, frames: Err("the folder has no frames".to_owned()), log: Vec::new() }
}

/// The entries of an audit log's text.
pub(crate) fn entries(text: &str) -> Vec<audit::Record> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn arm(name: &str, policy: &str) -> Arm {
    Arm {
        name: name.to_owned(),
        policy: policy.to_owned(),
        variant: Variant::Resolved,
        enforcement: Enforcement::Quota,
        migration: None,
        params: BTreeMap::new(),
    }
}

pub(crate) fn about(name: &str, jobs: &[Job]) -> About {
    About {
        name: name.to_owned(),
        description: "what & why".to_owned(),
        run: "1".to_owned(),
        date: "2026-11-21T12:16:16Z".to_owned(),
        machine: Machine { cpus: 2, memory: None, system: None, kernel: None, engine: None },
        data: Some("mnist".to_owned()),
        scale: 1.0,
        until: None,
        jobs: jobs.iter().map(|job| JobFacts::new(job, None)).collect(),
    }
}

/// Two repeats of each arm, in which all jobs `names` run for 30 s.
pub(crate) fn example(arms: &[&str], names: &[&str]) -> (About, Vec<Arm>, Vec<Recorded>) {
    let jobs: Vec<Job> = names.iter().map(|name| job(name, 0.0)).collect();
    let spans: Vec<(&str, f64, f64)> = names.iter().map(|name| (*name, 0.0, 30.0)).collect();
    let second = |t: u32| {
        let loss = 100.0 / f64::from(t + 1);
        (f64::from(t), names.iter().map(|name| running(name, loss, 1)).collect())
    };
    let runs =
        (1..=2).flat_map(|repeat| arms.iter().map(move |arm| (arm, repeat)).collect::<Vec<_>>());
    let runs = runs.map(|(arm, repeat)| recorded(arm, repeat, &spans, (0..30).map(second)));
    let runs = runs.collect();
    let facts = arms.iter().map(|name| arm(name, name)).collect();
    (about("demo", &jobs), facts, runs)
}

/// Marks the runs of `arm` as disturbed: all of them, or of one repeat.
pub(crate) fn disturb(runs: &mut [Recorded], arm: &str, repeat: Option<u32>) {
    let asked = |run: &record::Run| run.arm == arm && repeat.is_none_or(|its| its == run.repeat);
    for recorded in runs.iter_mut().filter(|recorded| asked(&recorded.run)) {
        let why = format!("other work took {} % of the machine", 50 + recorded.run.repeat);
        recorded.run.host.spoiled = Some(why);
    }
}

/// Analyses the example.
pub(crate) fn analysed(arms: &[&str], names: &[&str]) -> (Analysis, Vec<Recorded>) {
    let (about, facts, runs) = example(arms, names);
    let analysis = {
        let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
        analyse(about, &facts, &observed, &[])
    };
    (analysis, runs)
}
