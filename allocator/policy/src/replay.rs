//! Replays recorded frames: a policy's decisions without the rest of the system.

use std::fmt::{self, Display, Formatter};

use serde::{Serialize, Serializer};

use crate::cluster::{GangFrame, Placement, Scaling, TaskFrame};
use crate::decision::Decision;
use crate::frame::{Frame, FrameError};
use crate::policies::AnyPolicy;

/// A policy, fed with frames line by line.
#[derive(Debug)]
pub struct Replay {
    policy: AnyPolicy,
    last: Option<f64>,
}

/// A policy's answer to one line.
#[derive(Debug)]
pub enum Answer {
    /// Of a job policy. The frame is included so that the limiter can be applied to the decision.
    Jobs(Box<Frame>, Decision),
    /// Of a policy that places the tasks of distributed jobs.
    Tasks(Placement),
    /// Of a policy of whole distributed jobs.
    Gangs(Scaling),
}

impl Replay {
    /// Starts with a policy that has seen nothing.
    pub fn new(policy: AnyPolicy) -> Self {
        Self { policy, last: None }
    }

    /// Answers one line; `None` if it is empty. Frames must be in the order of their time.
    pub fn line(&mut self, line: &str) -> Result<Option<Answer>, FrameError> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let answer = match &mut self.policy {
            AnyPolicy::Jobs(policy) => {
                let frame = Frame::parse(line)?;
                in_order(&mut self.last, frame.t)?;
                let decision = policy.decide(&frame);
                Answer::Jobs(Box::new(frame), decision)
            }
            AnyPolicy::Tasks(policy) => {
                let frame = TaskFrame::parse(line)?;
                in_order(&mut self.last, frame.t)?;
                Answer::Tasks(policy.decide(&frame))
            }
            AnyPolicy::Gangs(policy) => {
                let frame = GangFrame::parse(line)?;
                in_order(&mut self.last, frame.t)?;
                Answer::Gangs(policy.decide(&frame))
            }
        };
        Ok(Some(answer))
    }
}

fn in_order(last: &mut Option<f64>, t: f64) -> Result<(), FrameError> {
    match last.replace(t) {
        Some(last) if t < last => Err(FrameError::Backwards { t, last }),
        _ => Ok(()),
    }
}

/// A decision's line is the decision alone.
impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Jobs(_, decision) => decision.serialize(serializer),
            Self::Tasks(placement) => placement.serialize(serializer),
            Self::Gangs(scaling) => scaling.serialize(serializer),
        }
    }
}

impl Answer {
    /// The decision as sentences: what is decided, and why. Names are as in the frame, and may hold any
    /// character.
    pub fn sentences(&self) -> Vec<String> {
        match self {
            Self::Jobs(_, decision) => explain_jobs(decision),
            Self::Tasks(placement) => explain_tasks(placement),
            Self::Gangs(scaling) => explain_gangs(scaling),
        }
    }
}

/// The sentences, one a line.
impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.sentences().iter().try_for_each(|sentence| writeln!(f, "{sentence}"))
    }
}

fn explain_jobs(decision: &Decision) -> Vec<String> {
    let Decision { t, policy, interval, limits, terminate, migrate, place, waiting: _, jobs } =
        decision;
    let next = Hundredths(*interval);
    let mut said = vec![format!("{} s: {policy}, next in {next} s", Hundredths(*t))];
    for (id, job) in jobs {
        let limit = match limits.get(id) {
            Some(share) => share.to_string(),
            None if terminate.contains(id) => "is ended".to_owned(),
            None => "no limit".to_owned(),
        };
        let why = job.why.to_string();
        // Some reasons begin with the class.
        let is_in_why = job.class == "-" || why.starts_with(job.class);
        let class = if is_in_why { String::new() } else { format!(", {}", job.class) };
        said.push(format!("  {id}: {limit}{class}: {why}"));
    }
    for assignment in place {
        said.push(format!("  {} goes to {}", assignment.job, assignment.node));
    }
    for migration in migrate {
        said.push(format!("  {} moves from {} to {}", migration.job, migration.from, migration.to));
    }
    said
}

fn explain_tasks(placement: &Placement) -> Vec<String> {
    let Placement { t, policy, place, pending } = placement;
    let mut said = vec![format!("{} s: {policy}", Hundredths(*t))];
    for bound in place {
        said.push(format!(
            "  {} goes to {}, score {:.3}: {}",
            bound.task, bound.node, bound.score, bound.why
        ));
    }
    for task in pending {
        said.push(format!("  {} waits: {}", task.task, task.why));
    }
    said
}

fn explain_gangs(scaling: &Scaling) -> Vec<String> {
    let Scaling { t, policy, weights: _, start, scale_in, scale_out, waiting } = scaling;
    let mut said = vec![format!("{} s: {policy}", Hundredths(*t))];
    for start in start {
        said.push(format!("  {} starts: {}", start.job, start.why));
    }
    for (verb, changes) in [("gives up", scale_in), ("gets", scale_out)] {
        for change in changes {
            let (job, count, node) = (&change.job, change.count, &change.node);
            said.push(format!("  {job} {verb} {count} workers on {node}: {}", change.why));
        }
    }
    for waiting in waiting {
        said.push(format!("  {} waits: {}", waiting.job, waiting.why));
    }
    said
}

/// Seconds to the nearest hundredth, without zeros at the end.
struct Hundredths(f64);

impl Display for Hundredths {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        write!(f, "{rounded}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::policies;
    use crate::variant::Variant;

    fn replay(policy: &str) -> Replay {
        Replay::new(policies::build(policy, Variant::Resolved, &Params::default()).unwrap())
    }

    fn json(replay: &mut Replay, line: &str) -> String {
        serde_json::to_string(&replay.line(line).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn a_policy_of_jobs_answers_as_the_contract_says() {
        let line = r#"{"t": 40.0, "jobs": [{"id": "vae", "limit": {"cpu": 1.0}}]}"#;
        assert_eq!(
            json(&mut replay("none"), line),
            r#"{"t":40.0,"policy":"none","interval":20.0,"limits":{"vae":1.0},"terminate":[],"migrate":[],"jobs":{"vae":{"class":"-","score":null,"why":"no policy: the kernel shares the CPU"}}}"#
        );
    }

    #[test]
    fn explained_decision_has_rounded_times_and_each_class_once() {
        let mut replay = replay("paceline");
        let line = r#"{"t": 11.750870898, "jobs": [{"id": "a"},
            {"id": "b", "cpu_seconds": 1, "step": 3, "total_steps": 100}]}"#;
        let said = replay.line(line).unwrap().unwrap().to_string();
        assert!(said.starts_with("11.75 s: paceline, next in 1 s\n"), "{said}");
        assert!(said.contains("  b: 60.0 %: new, 0.0 s used so far"), "{said}");
    }

    #[test]
    fn every_policy_answers_frames_of_its_own_shape() {
        for entry in policies::ALL {
            let mut replay = replay(entry.name);
            assert!(replay.line("").unwrap().is_none(), "an empty line is skipped");
            let said = json(&mut replay, r#"{"t": 1, "nodes": [], "jobs": [], "tasks": []}"#);
            assert!(said.contains(&format!(r#""policy":"{}""#, entry.name)), "{said}");
            assert!(replay.line("{}").is_err(), "the time is missing");
        }
    }

    #[test]
    fn time_never_goes_back() {
        let mut replay = replay("flowcon");
        for (line, ok) in [(r#"{"t": 2}"#, true), (r#"{"t": 2}"#, true), (r#"{"t": 1}"#, false)] {
            assert_eq!(replay.line(line).is_ok(), ok, "{line}");
        }
    }
}
