//! Simulated runs that replace real ones in tests.

use paceline_api::samples::SampleJob;
use paceline_policy::policies::Srpt;
use paceline_policy::{Frame, Variant, frame};
use paceline_sim::fit::Recording;
use paceline_sim::outcome::Line;
use paceline_sim::scenario;
use paceline_sim::{Run, Scenario};

use super::super::super::analysis::{Analysis, analyse_by};
use super::super::super::record::Recorded;
use super::super::super::schedule::{Arm, Job};
use super::super::{About, ORACLE, Observed};
use super::{BEFORE, BEGAN, about, arm, entries, job, recorded};

/// Seconds from a job's arrival in the schedule until its process begins.
const WAIT: f64 = 0.3;
/// The work of the process before its first frame: seconds of the node, on one of its CPUs.
pub(crate) const START: f64 = 0.4;

/// The machine as one node …
const WHOLE: &[(&str, f64)] = &[("n", 2.0)];
/// … and as two of one CPU each.
const HALVES: &[(&str, f64)] = &[("a", 1.0), ("b", 1.0)];

/// Predictions are means over a few runs only, since these vary little.
pub(crate) const FEW: u64 = 6;

/// A bench whose measured runs come from the simulator. Each repeat's jobs have 1 % more work than those
/// of the repeat before.
pub(crate) struct Simulated {
    pub(crate) about: About,
    pub(crate) arms: Vec<Arm>,
    pub(crate) runs: Vec<Recorded>,
    folders: Vec<(Recording, Vec<paceline_api::audit::Record>)>,
    nodes: &'static [(&'static str, f64)],
}

/// The true properties of a job, which a fit has to find.
struct Truth {
    name: &'static str,
    /// When it arrives in the schedule.
    at: f64,
    /// The rest of it as a scenario's lines.
    rest: String,
}

impl Simulated {
    /// `FlowCon`'s three jobs at a quarter of their times.
    pub(crate) fn bench(repeats: u32) -> Self {
        Self::arriving(repeats, |_| [0.0, 10.0, 20.0])
    }

    /// Two of them under the oracle. The shorter one declares more work than the longer one.
    pub(crate) fn oracle(repeats: u32) -> Self {
        let works = [("vae", 27.0, 27.0), ("mnist-p", 18.0, 40.0)];
        let jobs: Vec<Job> = works
            .iter()
            .map(|(name, _, declared)| Job { work: Some(*declared), ..job(name, 0.0) })
            .collect();
        Self::runs(about("demo", &jobs), arm("oracle", ORACLE), repeats, |repeat| {
            let truth = |(name, work, declared): &(&'static str, f64, f64)| {
                let work = work * factor(repeat);
                let rest = format!("work = {work:?}\ndeclared = {declared:?}\nmin = 0.005\n");
                Truth { name, at: 0.0, rest }
            };
            works.iter().map(truth).collect()
        })
    }

    /// The same, with separate arrivals for each repeat.
    pub(crate) fn arriving(repeats: u32, arrivals: impl Fn(u32) -> [f64; 3]) -> Self {
        let works = [("vae", 54.3), ("mnist-p", 37.1), ("mnist-t", 7.05)];
        let arrive = |repeat: u32| works.iter().zip(arrivals(repeat.max(1)));
        let jobs: Vec<Job> = arrive(1)
            .map(|((name, work), at)| Job { work: Some(*work), ..job(name, at) })
            .collect();
        let mut flowcon = arm("flowcon-published", "flowcon");
        flowcon.variant = Variant::Published;
        flowcon.params = [("alpha".to_owned(), 0.2), ("interval".to_owned(), 5.0)].into();
        let about = About { scale: 4.0, ..about("R-FC3", &jobs) };
        Self::runs(about, flowcon, repeats, |repeat| {
            let truth = |((name, work), at): (&(&'static str, f64), f64)| {
                // The declared work is the schedule's, whatever the true work is.
                let (declared, work) = (work, work * factor(repeat));
                let rest = format!(
                    "work = {work:?}\ndeclared = {declared:?}\nbatch = {{ work = 0.05 }}\nnoise = 0.01\n\
                     loss = {{ curve = \"exponential\", start = 500.0, end = 100.0, tau = 0.15 }}\n\
                     acceptable = 200.0\nbatch_latency = 0.2\n"
                );
                Truth { name, at, rest }
            };
            arrive(repeat).map(truth).collect()
        })
    }

    /// Jobs that never end, with targets that can all be met; they are stopped after a minute.
    pub(crate) fn inference(repeats: u32) -> Self {
        let targets = [("quick", 0.11), ("middle", 0.2), ("slow", 0.4)];
        let jobs: Vec<Job> = targets.iter().map(|(name, _)| job(name, 0.0)).collect();
        let mut dqoes = arm("dqoes", "dqoes");
        dqoes.params = [("interval".to_owned(), 2.0)].into();
        let about = About { until: Some(60.0), ..about("demo", &jobs) };
        Self::runs(about, dqoes, repeats, |repeat| {
            let truth = |(name, target): &(&'static str, f64)| {
                let batch = 0.05 * factor(repeat);
                let rest = format!("batch = {{ work = {batch:?} }}\nbatch_latency = {target:?}\n");
                Truth { name, at: 0.0, rest }
            };
            targets.iter().map(truth).collect()
        })
    }

    /// Jobs that arrive on two nodes alternately; `SpeCon` moves them once they have converged.
    pub(crate) fn on_two_nodes(repeats: u32) -> Self {
        let each: Vec<(&'static str, f64)> = ["vae-1", "vae-2", "vae-3", "vae-4", "vae-5"]
            .into_iter()
            .zip((0..).map(|at| 4.0 * f64::from(at)))
            .collect();
        let node = |place: usize| ["a", "b"].into_iter().cycle().nth(place).map(str::to_owned);
        let jobs: Vec<Job> = (each.iter().enumerate())
            .map(|(place, (name, at))| Job {
                node: node(place),
                checkpoint: Some("/checkpoints".to_owned()),
                ..job(name, *at)
            })
            .collect();
        let mut specon = arm("specon", "specon");
        specon.params = [("alpha".to_owned(), 0.05), ("interval".to_owned(), 1.0)].into();
        let truths = |repeat: u32| {
            let truth = |(place, (name, at)): (usize, &(&'static str, f64))| {
                let (work, node) = (10.0 * factor(repeat), node(place).unwrap_or_default());
                let rest = format!(
                    "work = {work:?}\nnode = {node:?}\nbatch = {{ work = 0.05 }}\n\
                     loss = {{ curve = \"exponential\", start = 500.0, end = 100.0, tau = 0.15 }}\n\
                     checkpoint = {{ mean = {WAIT:?}, start = true }}\n"
                );
                Truth { name, at: *at, rest }
            };
            each.iter().enumerate().map(truth).collect()
        };
        Self::runs_on(HALVES, about("R-SP", &jobs), specon, repeats, truths)
    }

    fn runs(about: About, policy: Arm, repeats: u32, truths: impl Fn(u32) -> Vec<Truth>) -> Self {
        Self::runs_on(WHOLE, about, policy, repeats, truths)
    }

    fn runs_on(
        nodes: &'static [(&'static str, f64)],
        about: About,
        policy: Arm,
        repeats: u32,
        truths: impl Fn(u32) -> Vec<Truth>,
    ) -> Self {
        let mut none = arm("none", "none");
        // Batches are timed between two samples, which are a second apart.
        none.params = [("interval".to_owned(), 2.0)].into();
        let (runs, folders) = (Vec::new(), Vec::new());
        let mut simulated = Self { about, arms: vec![none, policy], runs, folders, nodes };
        for repeat in 0..=repeats {
            for arm in simulated.arms.clone() {
                simulated.run(&arm, repeat, &truths(repeat));
            }
        }
        simulated
    }

    /// All runs with what their folders would hold.
    pub(crate) fn observed(&self) -> Vec<Observed<'_>> {
        let observed = |(recorded, (frames, log)): (_, &(Recording, Vec<_>))| Observed {
            recorded,
            frames: Ok(frames.clone()),
            log: log.clone(),
        };
        self.runs.iter().zip(&self.folders).map(observed).collect()
    }

    pub(crate) fn analyse(&self) -> Analysis {
        let observed = self.observed();
        analyse_by(FEW, self.about.clone(), &self.arms, &observed, &[])
    }

    fn run(&mut self, facts: &Arm, repeat: u32, truths: &[Truth]) {
        let until = self.about.until;
        let scenario = Scenario::parse(&scenario(self.nodes, facts, until, truths)).unwrap();
        let policy = if facts.policy == ORACLE { Srpt::NAME } else { &facts.policy };
        let arm = scenario::Arm { policy: policy.to_owned(), variant: facts.variant };
        let run = Run { scenario: &scenario, arm: &arm, seed: u64::from(repeat), record: true };
        let done = run.simulate().unwrap();
        let frame = |line: &Line| {
            let frame = Frame::parse(&line.frame).unwrap();
            Frame { t: frame.t + BEFORE, ..frame }
        };
        let frames: Vec<Frame> = done.lines.iter().map(frame).collect();
        let span = |truth: &Truth| {
            let job = done.outcome.jobs.iter().find(|job| job.id == truth.name).unwrap();
            (truth.name, truth.at, job.finished.or(until).unwrap())
        };
        let spans: Vec<(&str, f64, f64)> = truths.iter().map(span).collect();
        let sample = |frame: &Frame| {
            let t = frame.t - BEFORE;
            let job = |job: &frame::Job| {
                let its = done.outcome.jobs.iter().find(|its| its.id == job.id.as_str());
                let acceptable = its.and_then(|its| its.acceptable).filter(|at| *at <= t);
                sampled(job, acceptable.map(|at| BEGAN + at))
            };
            (t, frame.jobs.iter().map(job).collect())
        };
        let samples: Vec<(f64, Vec<SampleJob>)> = frames.iter().map(sample).collect();
        self.runs.push(recorded(&facts.name, repeat, &spans, samples));
        let text: Vec<String> =
            frames.iter().map(|frame| serde_json::to_string(frame).unwrap()).collect();
        let log: Vec<String> =
            (1..).zip(&done.lines).map(|(number, line)| decided(number, &line.decision)).collect();
        let recording = Recording::parse(&text.join("\n")).unwrap();
        self.folders.push((recording, entries(&log.join("\n"))));
    }
}

fn factor(repeat: u32) -> f64 {
    1.0 + 0.01 * (f64::from(repeat) - 2.0)
}

/// The scenario that is simulated instead of a measurement, with the parameters that a fit has to find.
fn scenario(nodes: &[(&str, f64)], facts: &Arm, until: Option<f64>, truths: &[Truth]) -> String {
    let until = until.map(|until| format!("until = {until:?}\n")).unwrap_or_default();
    let node = |(name, cpus): &(&str, f64)| {
        format!(
            "[[node]]\nname = {name:?}\ncpus = {cpus:?}\ncontention = 0.03\nbackground = 0.02\n"
        )
    };
    let cpus = nodes.first().map_or(1.0, |(_, cpus)| *cpus);
    let nodes: String = nodes.iter().map(node).collect();
    let head = format!(
        "name = \"truth\"\ndescription = \"\"\npolicies = [\"none\"]\n{until}\
         [limiter]\nenforcement = \"quota\"\n{nodes}"
    );
    let job = |Truth { name, at, rest }: &Truth| {
        let (arrive, seconds) = (at + WAIT, cpus * START);
        format!(
            "[[job]]\nname = \"{name}\"\narrive = {{ at = {arrive:?} }}\n\
             start = {{ work = {START:?}, seconds = {seconds:?} }}\n{rest}"
        )
    };
    let params = facts.params.iter().map(|(name, value)| format!("{name} = {value:?}\n"));
    let (jobs, params) = (truths.iter().map(job).collect::<String>(), params.collect::<String>());
    let params = if facts.params.is_empty() {
        String::new()
    } else {
        format!("[params.{}]\n{params}", facts.policy)
    };
    format!("{head}{jobs}{params}")
}

/// A job of a frame as it would have been sampled.
fn sampled(job: &frame::Job, acceptable_at: Option<f64>) -> SampleJob {
    SampleJob {
        id: job.id.to_string(),
        loss: job.loss,
        steps: None,
        cpu: job.usage.cpu,
        throttled: job.throttled,
        limit: job.limit.applied,
        target_acceptable: job.targets.acceptable,
        target_objective: None,
        acceptable_at,
        objective_at: None,
    }
}

/// A simulated decision as lines of the audit log, followed by a write for each limited job.
fn decided(number: u64, decision: &str) -> String {
    let decision: serde_json::Value = serde_json::from_str(decision).unwrap();
    let at = BEGAN + decision["t"].as_f64().unwrap();
    let none = "0".repeat(64);
    let line = |at: f64, entry: serde_json::Value| {
        let mut line = serde_json::json!({"seq": 1, "at": at, "prev": none, "hash": none});
        line.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        line.to_string()
    };
    let mut lines = Vec::new();
    for (job, its) in decision["jobs"].as_object().unwrap() {
        let chosen = decision["limits"][job].as_f64().unwrap_or(1.0);
        lines.push(line(
            at,
            serde_json::json!({
                "what": "decided", "number": number, "job": job, "class": its["class"],
                "score": its["score"], "chosen": chosen, "why": its["why"],
            }),
        ));
        if chosen < 1.0 {
            let to = format!("{:.1} %", 100.0 * chosen);
            lines.push(line(
                at + 0.03,
                serde_json::json!({
                    "what": "limited", "job": job, "container": "c", "from": "100.0 %", "to": to,
                    "why": "as the policy chose", "seconds": 0.03,
                }),
            ));
        }
    }
    lines.join("\n")
}
