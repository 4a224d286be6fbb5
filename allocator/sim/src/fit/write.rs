//! A fit as the TOML of a scenario.

use std::fmt::Display;

use super::model::{Fit, JobFit, NodeFit, Terms};
use crate::curve::Curve;
use crate::scenario::{EarlyReports, Start};

/// What a scenario has besides the fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heading {
    /// Its name.
    pub name: String,
    /// What it is about, for people.
    pub description: String,
    /// The policies that are compared by default.
    pub policies: Vec<String>,
    /// Parameters: policy, name and value.
    pub params: Vec<(String, String, f64)>,
}

/// Smaller parts of the node are negligible.
const MIN_SHARE: f64 = 1e-3;
/// A weight this near to the heaviest counts as equal.
const NEARLY_EQUAL: f64 = 0.99;
/// A background above this leaves too little to simulate jobs.
const MAX_BACKGROUND: f64 = 0.95;

impl Fit {
    /// The TOML of a scenario with these jobs on these nodes.
    pub fn scenario(&self, heading: &Heading) -> String {
        let head =
            "# Fitted to recorded frames by `paceline fit`; work is in seconds of the whole node.";
        let mut text = Text(vec![head.to_owned()]);
        text.value("name", quoted(&heading.name));
        text.value("description", quoted(&heading.description));
        let policies: Vec<String> = heading.policies.iter().map(|name| quoted(name)).collect();
        text.value("policies", format!("[{}]", policies.join(", ")));
        let mut last = None;
        for (policy, name, value) in &heading.params {
            if last.replace(policy) != Some(policy) {
                text.head(&format!("[params.{policy}]"));
            }
            text.value(name, number(*value));
        }
        for node in &self.nodes {
            text.node(node);
        }
        for job in &self.jobs {
            text.job(job);
            if self.nodes.len() > 1 {
                text.value("node", quoted(&job.node));
            }
        }
        text.0.join("\n") + "\n"
    }
}

/// A TOML text that grows line by line.
struct Text(Vec<String>);

impl Text {
    fn value(&mut self, key: &str, value: impl Display) {
        self.0.push(format!("{key} = {value}"));
    }

    fn number(&mut self, key: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.value(key, number(value));
        }
    }

    fn head(&mut self, head: &str) {
        self.0.push(format!("\n{head}"));
    }

    fn node(&mut self, node: &NodeFit) {
        self.head("[[node]]");
        self.value("name", quoted(&node.name));
        self.number("cpus", Some(node.cpus));
        self.number("memory", node.memory);
        let some = |value: &f64| *value >= MIN_SHARE;
        self.number("contention", node.contention.ok().filter(some));
        let background = node.background.ok().filter(some);
        self.number("background", background.map(|share| share.min(MAX_BACKGROUND)));
    }

    fn job(&mut self, job: &JobFit) {
        self.head("[[job]]");
        if !job.ended {
            self.0.push(
                "# It did not end while it was recorded: this is its work until then.".to_owned(),
            );
        }
        self.value("name", quoted(job.id.as_str()));
        self.value("arrive", format!("{{ at = {} }}", number(job.arrived)));
        if let Some(Start { work, seconds }) = job.start {
            let [work, seconds] = [work, seconds].map(number);
            self.value("start", format!("{{ work = {work}, seconds = {seconds} }}"));
        }
        self.number("work", Some(job.work));
        let parallel = job.parallel.ok().map(|most| most.mean).filter(|most| *most < 1.0);
        self.number("parallel", parallel.map(|most| most.max(MIN_SHARE)));
        let crowded = job.crowded.ok().filter(|part| *part < NEARLY_EQUAL);
        self.number("crowded", crowded.map(|part| part.max(MIN_SHARE)));
        self.number("contention", job.contention);
        if let Ok(batch) = &job.batch {
            let throttling = batch.throttling.ok().filter(|limit| limit.cost >= MIN_SHARE);
            self.number("threads", throttling.map(|limit| limit.threads));
            self.number("throttle_cost", throttling.map(|limit| limit.cost));
            let fixed = number(batch.fixed.unwrap_or(0.0));
            let [work, noise] = [batch.work, batch.noise].map(number);
            self.value("batch", format!("{{ work = {work}, fixed = {fixed}, noise = {noise} }}"));
        }
        if let Ok(learning) = &job.learning {
            self.value("loss", curve(&learning.curve));
            if !learning.residuals.is_empty() {
                let each: Vec<String> = learning.residuals.iter().copied().map(number).collect();
                self.value("residuals", format!("[{}]", each.join(", ")));
            }
            self.number("noise", Some(learning.noise));
            if let Some(EarlyReports { loss, largest }) = job.early_reports {
                let [loss, largest] = [loss, largest].map(number);
                self.value("told", format!("{{ loss = {loss}, largest = {largest} }}"));
            }
            self.targets(job, &learning.curve);
        }
        if let Some(seconds) = job.move_wait {
            let (mean, start) = (number(seconds), job.start.is_some());
            self.value("checkpoint", format!("{{ mean = {mean}, start = {start} }}"));
        }
        self.terms(&job.terms);
    }

    /// The targets of the job's loss: without a curve there is none to reach.
    fn targets(&mut self, JobFit { terms, reached_at, .. }: &JobFit, curve: &Curve) {
        let finite = |target: Option<f64>| target.filter(|target| target.is_finite());
        let acceptable = finite(terms.targets.acceptable);
        self.number("acceptable", acceptable);
        let no_worse = |objective: &f64| {
            let Some(acceptable) = acceptable else { return true };
            if curve.rises() { *objective >= acceptable } else { *objective <= acceptable }
        };
        let objective = finite(terms.targets.objective).filter(no_worse);
        self.number("objective", objective);
        self.number("acceptable_at", acceptable.and(reached_at.acceptable));
        self.number("objective_at", objective.and(reached_at.objective));
    }

    fn terms(&mut self, terms: &Terms) {
        let positive = |value: &f64| *value > 0.0 && value.is_finite();
        let share = |value: &f64| *value > 0.0 && *value <= 1.0;
        self.number("batch_latency", terms.targets.batch_latency.filter(positive));
        if terms.may_terminate == Some(false) {
            self.value("may_terminate", false);
        }
        self.number("min", terms.min.filter(share));
        self.number("max", terms.max.filter(share).map(|most| most.max(MIN_SHARE)));
        self.number(
            "weight",
            terms.weight.filter(|weight| positive(weight) && (weight - 1.0).abs() > 0.0),
        );
        let slowdown = |value: &f64| *value >= 1.0 && value.is_finite();
        self.number("max_slowdown", terms.max_slowdown.filter(slowdown));
    }
}

fn curve(curve: &Curve) -> String {
    match curve {
        Curve::Exponential { start, end, tau } => {
            let [start, end, tau] = [start, end, tau].map(|value| number(*value));
            format!("{{ curve = \"exponential\", start = {start}, end = {end}, tau = {tau} }}")
        }
        Curve::Power { start, end, scale, exponent } => {
            let [start, end] = [start, end].map(|value| number(*value));
            let [scale, exponent] = [scale, exponent].map(|value| number(*value));
            let rest = format!("scale = {scale}, exponent = {exponent}");
            format!("{{ curve = \"power\", start = {start}, end = {end}, {rest} }}")
        }
        Curve::Recorded { points } => {
            let point = |(u, loss): &(f64, f64)| format!("[{}, {}]", number(*u), number(*loss));
            let points: Vec<String> = points.iter().map(point).collect();
            format!("{{ curve = \"recorded\", points = [{}] }}", points.join(", "))
        }
    }
}

/// A whole number as it is, any other to seven digits, always in a form that TOML reads as a float.
fn number(value: f64) -> String {
    let digits = format!("{value:.6e}").parse().ok().filter(|_| value.fract().abs() > 0.0);
    format!("{:?}", digits.unwrap_or(value))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
