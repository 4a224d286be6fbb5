//! The machine's other load during a run: the figures of a run are valid only if it is small.
//!
//! It is read on the machine that runs the bench. That is the engine's machine, unless the engine is
//! reached over a network.

use std::fs;
use std::path::Path;

use anyhow::Context;
use paceline_api::samples::Sample;

use super::record::{Host, JobRun, Move};

/// A run is disturbed if other work takes more than this share of the machine. On two CPUs the
/// allocator, the engine and the system take 1 to 3 %.
const MAX_OTHER_WORK: f64 = 0.06;

/// The largest valid share of CPU time that other guests took. It is missing from unknown jobs, and must
/// stay below the differences between policies.
const MAX_STEAL: f64 = 0.02;

/// The machine before a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Before {
    load: f64,
    ticks: Ticks,
}

/// What is needed to separate other work from that of a run's jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEvidence<'a> {
    /// In Unix seconds.
    pub(crate) began: f64,
    pub(crate) jobs: &'a [JobRun],
    pub(crate) moves: &'a [Move],
    /// The allocator's samples.
    pub(crate) samples: &'a [Sample],
}

/// CPU time since the machine booted, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    all: f64,
    stolen: f64,
}

impl Before {
    /// Reads the state of the machine whose `/proc` is at `proc`.
    pub(crate) fn read(proc: &Path) -> anyhow::Result<Self> {
        let load = read(&proc.join("loadavg"))?;
        let load = load.split_whitespace().next().and_then(|load| load.parse().ok());
        let load = load.with_context(|| format!("{}/loadavg has no load", proc.display()))?;
        Ok(Self { load, ticks: ticks(proc)? })
    }

    /// The machine's other load since then, during the run that `evidence` describes.
    pub(crate) fn since(self, proc: &Path, evidence: &RunEvidence<'_>) -> anyhow::Result<Host> {
        let now = ticks(proc)?;
        let all = now.all - self.ticks.all;
        let steal = if all > 0.0 { (now.stolen - self.ticks.stolen) / all } else { 0.0 };
        let others = evidence.other_work();
        Ok(Host {
            load: self.load,
            others,
            steal,
            speed: None,
            spoiled: disturbance(others, steal),
        })
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn ticks(proc: &Path) -> anyhow::Result<Ticks> {
    let text = read(&proc.join("stat"))?;
    parse(&text).with_context(|| format!("{}/stat has no cpu line", proc.display()))
}

/// The last two fields, guest time, are already part of user time.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> =
        line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let own = fields.get(..8)?;
    Some(Ticks { all: own.iter().sum(), stolen: *own.last()? })
}

impl RunEvidence<'_> {
    /// The mean share of the machine that other work took. Only samples count in which a job ran and the
    /// CPU use of all jobs is known.
    fn other_work(&self) -> Option<f64> {
        let of = |pair: &[Sample]| {
            let [before, sample] = pair else { return None };
            if sample.jobs.is_empty() || self.lacks_a_job(before, sample) {
                return None;
            }
            let jobs: f64 = sample.jobs.iter().map(|its| its.cpu).sum::<Option<f64>>()?;
            Some((sample.node.cpu? - jobs).max(0.0))
        };
        let known: Vec<f64> = self.samples.windows(2).filter_map(of).collect();
        let count = paceline_policy::unit::count(known.len());
        (count > 0.0).then(|| known.iter().sum::<f64>() / count)
    }

    /// Whether `sample` lacks work of a job that ran since the sample `before`. A starting job has not
    /// answered yet, and a job that is being moved has two containers.
    fn lacks_a_job(&self, before: &Sample, sample: &Sample) -> bool {
        let (from, to) = (before.unix - self.began, sample.unix - self.began);
        let is_sampled = |job: &JobRun| sample.jobs.iter().any(|its| its.id == job.job);
        let ran = |job: &&JobRun| job.arrived < to && job.ended > from;
        let moves = |moved: &Move| moved.t < to && moved.t + moved.seconds > from;
        !self.jobs.iter().filter(ran).all(is_sampled) || self.moves.iter().any(moves)
    }
}

/// What disturbed the run, if anything did.
fn disturbance(others: Option<f64>, steal: f64) -> Option<String> {
    if let Some(others) = others.filter(|others| *others > MAX_OTHER_WORK) {
        return Some(format!("other work took {:.0} % of the machine", 100.0 * others));
    }
    (steal > MAX_STEAL).then(|| format!("other guests took {:.1} % of the CPU time", 100.0 * steal))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proc(stat: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stat"), stat).unwrap();
        fs::write(folder.path().join("loadavg"), "0.75 0.50 0.25 1/100 4242\n").unwrap();
        folder
    }

    /// The CPU use of the machine and of each job.
    type Second = (f64, &'static [(&'static str, Option<f64>)]);

    /// The other work beside two jobs, the second of which runs from 2 s to 4.5 s; one sample a second.
    fn other_work(samples: &[Second], moves: &[Move]) -> Option<f64> {
        let of = |(t, (machine, jobs)): (u32, &Second)| {
            let jobs: Vec<_> =
                jobs.iter().map(|(id, cpu)| json!({ "id": id, "cpu": cpu })).collect();
            let node = json!({ "cpus": 2.0, "cpu": machine });
            let unix = 1000.0 + f64::from(t);
            serde_json::from_value(json!({ "t": t, "unix": unix, "node": node, "jobs": jobs }))
        };
        let samples: Result<Vec<Sample>, _> = (0..).zip(samples).map(of).collect();
        let runs = [("a", 0.0, 9.0), ("b", 2.0, 4.5)].map(|(job, arrived, ended)| JobRun {
            job: job.to_owned(),
            arrived,
            ended,
            exit_code: 0,
            out_of_memory: false,
        });
        RunEvidence { began: 1000.0, jobs: &runs, moves, samples: &samples.unwrap() }.other_work()
    }

    const NONE: Second = (0.9, &[]);
    const ONE: Second = (0.9, &[("a", Some(0.87))]);
    const TWO: Second = (0.9, &[("a", Some(0.4)), ("b", Some(0.46))]);

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = proc("cpu  100 0 0 800 0 0 0 100 50 0\n");
        let after = proc("cpu  200 0 0 1500 0 0 0 300 90 0\n");
        let evidence = RunEvidence { began: 0.0, jobs: &[], moves: &[], samples: &[] };
        let host = Before::read(before.path()).unwrap().since(after.path(), &evidence).unwrap();
        assert_eq!((host.load, host.others, host.steal), (0.75, None, 0.2));
        assert!(host.spoiled.is_some_and(|why| why.contains("other guests took 20.0 %")));
    }

    #[test]
    fn cpu_that_jobs_do_not_use_is_other_work() {
        let share = other_work(&[NONE, ONE, (0.9, &[("a", None)]), NONE], &[]).unwrap();
        assert!((share - 0.03).abs() < 1e-9, "only the second sample counts: {share}");
        assert_eq!(disturbance(Some(share), 0.0), None);
        let why = disturbance(other_work(&[NONE, (0.9, &[("a", Some(0.4))])], &[]), 0.0);
        assert_eq!(why.as_deref(), Some("other work took 50 % of the machine"));
    }

    #[test]
    fn unsampled_work_of_a_job_is_not_other_work() {
        let starting = (1.0, &[("a", Some(0.5))][..]);
        let share = other_work(&[NONE, ONE, ONE, starting, TWO, starting, ONE], &[]).unwrap();
        assert!((share - 0.0325).abs() < 1e-9, "neither at its start nor at its end: {share}");
        let (from, to) = ("n".to_owned(), "m".to_owned());
        let moved = Move { t: 0.2, job: "a".to_owned(), from, to, seconds: 1.0, failed: None };
        let share = other_work(&[NONE, starting, starting, NONE, TWO], &[moved]).unwrap();
        assert!((share - 0.04).abs() < 1e-9, "not while it is moved: {share}");
    }

    #[test]
    fn unreadable_proc_is_an_error() {
        assert!(Before::read(Path::new("/nowhere")).is_err());
        assert!(Before::read(proc("cpu  1 2\n").path()).is_err());
    }
}
