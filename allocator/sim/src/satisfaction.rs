//! The jobs by their batch targets over a run: `DQoES`'s sets, computed from frames for any policy.

use std::collections::BTreeMap;

use paceline_policy::reason::dqoes::Set;
use paceline_policy::{Frame, JobId};
use serde::{Deserialize, Serialize};

use crate::fit::Recording;

/// How far a batch may deviate from its target and still count as satisfied: the papers' α.
pub(crate) const TOLERANCE: f64 = 0.1;

/// The set of a job whose batches take `latency` seconds, with a target of `target` seconds. `DQoES`
/// compares the difference with its band instead, which rounds differently: a batch of exactly 1.1
/// targets is in S here.
pub(crate) fn set_of(latency: f64, target: f64) -> Set {
    if latency > (1.0 + TOLERANCE) * target {
        Set::Behind
    } else if latency < (1.0 - TOLERANCE) * target {
        Set::Ahead
    } else {
        Set::Satisfied
    }
}

/// The number of jobs in each set from some moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The moment, in seconds of the recording's time.
    pub at: f64,
    /// In S.
    pub satisfied: usize,
    /// In G.
    pub ahead: usize,
    /// In B.
    pub behind: usize,
    /// With a target, but no batch so far.
    pub unknown: usize,
}

/// The sets of a run's jobs over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Satisfaction {
    /// One for each frame.
    pub over_time: Vec<Standing>,
    /// Each job's batch duration when the run is judged, in seconds. That is at the last of the
    /// frames with the most jobs, before an end leaves room for the others.
    pub latencies: BTreeMap<JobId, f64>,
    /// How often a job that was satisfied fell behind.
    pub overshoots: usize,
}

impl Satisfaction {
    /// The sets of a recorded run; `None` if no job in it has a batch target.
    pub fn from_recording(recording: &Recording) -> Option<Self> {
        let with = |frame: &Frame| frame.jobs.iter().filter(|job| target(job).is_some()).count();
        let most = recording.frames().iter().map(with).max().filter(|most| *most > 0)?;
        let mut found = Self { over_time: Vec::new(), latencies: BTreeMap::new(), overshoots: 0 };
        let mut known: BTreeMap<&JobId, f64> = BTreeMap::new();
        let mut sets: BTreeMap<&JobId, Set> = BTreeMap::new();
        for frame in recording.frames() {
            let mut standing = Standing { at: frame.t, ..Standing::default() };
            for job in &frame.jobs {
                let Some(target) = target(job) else { continue };
                known.extend(
                    job.batch_latency.filter(|took| *took > 0.0).map(|took| (&job.id, took)),
                );
                let Some(latency) = known.get(&job.id) else {
                    standing.unknown += 1;
                    continue;
                };
                let set = set_of(*latency, target);
                match set {
                    Set::Ahead => standing.ahead += 1,
                    Set::Satisfied => standing.satisfied += 1,
                    Set::Behind => standing.behind += 1,
                }
                let before = sets.insert(&job.id, set);
                found.overshoots +=
                    usize::from(before == Some(Set::Satisfied) && set == Set::Behind);
            }
            found.over_time.push(standing);
            if with(frame) == most {
                let here = frame.jobs.iter().filter_map(|job| known.get_key_value(&job.id));
                found.latencies = here.map(|(id, took)| ((*id).clone(), *took)).collect();
            }
        }
        Some(found)
    }

    /// When the first job was satisfied, in seconds of the recording's time.
    pub fn first(&self) -> Option<f64> {
        self.over_time.iter().find(|standing| standing.satisfied > 0).map(|standing| standing.at)
    }
}

fn target(job: &paceline_policy::frame::Job) -> Option<f64> {
    job.targets.batch_latency.filter(|target| *target > 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames of one second each, with the latencies of jobs whose target is 1 s.
    fn recording(frames: &[&[(&str, Option<f64>)]]) -> Recording {
        let mut text = String::new();
        for (t, jobs) in frames.iter().enumerate() {
            let job = |(id, took): &(&str, Option<f64>)| serde_json::json!({"id": id, "batch_latency": took, "targets": {"batch_latency": 1.0}});
            let jobs: Vec<_> = jobs.iter().map(job).collect();
            text.push_str(&serde_json::json!({"t": t, "jobs": jobs}).to_string());
            text.push('\n');
        }
        Recording::parse(&text).unwrap()
    }

    #[test]
    fn a_run_is_judged_before_the_first_job_ends() {
        let found = Satisfaction::from_recording(&recording(&[
            &[("a", None)],
            &[("a", Some(1.0)), ("b", Some(3.0))],
            &[("a", None), ("b", Some(1.1))],
            &[("b", Some(0.2))],
        ]));
        let found = found.unwrap();
        let sets = |s: &Standing| (s.satisfied, s.ahead, s.behind, s.unknown);
        let sets: Vec<_> = found.over_time.iter().map(sets).collect();
        assert_eq!(sets, [(0, 0, 0, 1), (1, 0, 1, 0), (2, 0, 0, 0), (0, 1, 0, 0)]);
        let judged: Vec<f64> = found.latencies.values().copied().collect();
        assert_eq!((judged.as_slice(), found.first()), ([1.0, 1.1].as_slice(), Some(1.0)));
        assert_eq!(found.overshoots, 0);
    }

    #[test]
    fn a_job_that_was_satisfied_and_falls_behind_has_overshot() {
        let course = [1.0, 1.2, 1.0, 0.5, 1.2, 1.1, 1.11].map(|took| [("a", Some(took))]);
        let frames: Vec<&[_]> = course.iter().map(<[_; 1]>::as_slice).collect();
        assert_eq!(Satisfaction::from_recording(&recording(&frames)).unwrap().overshoots, 2);
    }

    #[test]
    fn without_a_target_there_is_nothing_to_satisfy() {
        let recording = Recording::parse(r#"{"t": 1, "jobs": [{"id": "a"}]}"#).unwrap();
        assert_eq!(Satisfaction::from_recording(&recording), None);
    }

    proptest! {
        #[test]
        fn a_shorter_batch_is_never_in_a_worse_set(target in 0.01..100.0, a in 0.0..200.0, b in 0.0..200.0) {
            let rank = |latency| match set_of(latency, target) {
                Set::Ahead => 0,
                Set::Satisfied => 1,
                Set::Behind => 2,
            };
            let (short, long) = (f64::min(a, b), f64::max(a, b));
            prop_assert!(rank(short) <= rank(long));
        }
    }
}
