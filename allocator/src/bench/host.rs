//! What the machine did beside the jobs: figures of a run mean something only where that is little.
//!
//! Read on the machine that the bench runs on, which is the engine's own unless it was reached over
//! a network.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::record::Host;
use crate::samples::Sample;

/// On two CPUs the allocator, the engine and the system take 1 to 3 % of the machine. From so much
/// on, somebody else was at work.
const OTHERS_AT_MOST: f64 = 0.06;

/// CPU time that other guests took is missing from every job, and nobody can tell from which. As
/// much as the differences between policies that are told of.
const STEAL_AT_MOST: f64 = 0.02;

/// The machine before a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Before {
    load: f64,
    ticks: Ticks,
}

/// CPU time since the machine booted, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    all: f64,
    stolen: f64,
}

impl Before {
    /// Looks at the machine whose `/proc` is at `proc`.
    pub(crate) fn look(proc: &Path) -> anyhow::Result<Self> {
        let load = read(&proc.join("loadavg"))?;
        let load = load.split_whitespace().next().and_then(|load| load.parse().ok());
        let load = load.with_context(|| format!("{}/loadavg has no load", proc.display()))?;
        Ok(Self { load, ticks: ticks(proc)? })
    }

    /// What it did since, where the allocator wrote `samples`.
    pub(crate) fn since(self, proc: &Path, samples: &[Sample]) -> anyhow::Result<Host> {
        let now = ticks(proc)?;
        let all = now.all - self.ticks.all;
        let steal = if all > 0.0 { (now.stolen - self.ticks.stolen) / all } else { 0.0 };
        let others = others(samples);
        Ok(Host { load: self.load, others, steal, spoiled: spoiled(others, steal) })
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn ticks(proc: &Path) -> anyhow::Result<Ticks> {
    let text = read(&proc.join("stat"))?;
    parse(&text).with_context(|| format!("{}/stat has no cpu line", proc.display()))
}

/// Guest time, the last two fields, is part of user time already.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> =
        line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let own = fields.get(..8)?;
    Some(Ticks { all: own.iter().sum(), stolen: *own.last()? })
}

/// The mean over the samples in which a job ran and all use is known.
fn others(samples: &[Sample]) -> Option<f64> {
    let of = |sample: &Sample| {
        let jobs: f64 = sample.jobs.iter().map(|its| its.cpu).sum::<Option<f64>>()?;
        (!sample.jobs.is_empty()).then_some((sample.node.cpu? - jobs).max(0.0))
    };
    let known: Vec<f64> = samples.iter().filter_map(of).collect();
    let count = paceline_policy::unit::count(known.len());
    (count > 0.0).then(|| known.iter().sum::<f64>() / count)
}

fn spoiled(others: Option<f64>, steal: f64) -> Option<String> {
    if let Some(others) = others.filter(|others| *others > OTHERS_AT_MOST) {
        let (percent, most) = (100.0 * others, 100.0 * OTHERS_AT_MOST);
        return Some(format!("other work took {percent:.0} % of the machine, over {most:.0} %"));
    }
    (steal > STEAL_AT_MOST).then(|| {
        let (percent, most) = (100.0 * steal, 100.0 * STEAL_AT_MOST);
        format!("other guests took {percent:.1} % of the CPU time, over {most:.0} %")
    })
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

    fn sample(machine: f64, jobs: &[Option<f64>]) -> Sample {
        let jobs: Vec<_> = jobs.iter().map(|cpu| json!({ "id": "a", "cpu": cpu })).collect();
        let node = json!({ "cpus": 2.0, "cpu": machine });
        let sample = json!({ "t": 1.0, "unix": 1.0, "node": node, "jobs": jobs });
        serde_json::from_value(sample).unwrap()
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = proc("cpu  100 0 0 800 0 0 0 100 50 0\n");
        let after = proc("cpu  200 0 0 1500 0 0 0 300 90 0\n");
        let host = Before::look(before.path()).unwrap().since(after.path(), &[]).unwrap();
        assert_eq!((host.load, host.others, host.steal), (0.75, None, 0.2));
        assert!(host.spoiled.is_some_and(|why| why.contains("other guests took 20.0 %")));
    }

    #[test]
    fn what_the_jobs_leave_is_used_by_others() {
        let quiet = [sample(0.5, &[]), sample(0.93, &[Some(0.5), Some(0.4)]), sample(0.9, &[None])];
        let share = others(&quiet).unwrap();
        assert!((share - 0.03).abs() < 1e-9, "only the second sample tells: {share}");
        assert_eq!(spoiled(Some(share), 0.0), None);
        let why = spoiled(others(&[sample(0.9, &[Some(0.4)])]), 0.0);
        assert_eq!(why.as_deref(), Some("other work took 50 % of the machine, over 6 %"));
    }

    #[test]
    fn a_machine_that_does_not_tell_is_an_error() {
        assert!(Before::look(Path::new("/nowhere")).is_err());
        assert!(Before::look(proc("cpu  1 2\n").path()).is_err());
    }
}
