//! The report of a comparison: one HTML page with its table and pictures.

mod completion;
mod limits;
mod over_time;
mod pareto;
mod ratios;
mod sets;
mod shares;
mod sweep;
mod tables;

use anyhow::Result;
use paceline_policy::policies::AnyPolicy;
use paceline_sim::compare::Comparison;
use paceline_sim::scenario::Arm;
use paceline_sim::{Run, Scenario, ScenarioError, Trace, gangs};

use crate::figure::html::{each, escape, figure, head, legend};
use crate::figure::palette::colour;

pub(super) use sweep::page as sweep;

/// How the figures were computed.
const METHOD: &str = include_str!("report/method.html");

/// What a report is about.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) comparison: &'a Comparison,
    /// Each policy's run with the first seed, in the order of the comparison.
    pub(super) traces: Vec<Trace>,
}

/// A section: its pictures, and a caption that says how to read them.
#[derive(Debug)]
struct Section {
    title: &'static str,
    caption: &'static str,
    body: String,
}

/// Runs every policy with the first seed again, and records it over time.
pub(super) fn traces(scenario: &Scenario, arms: &[Arm]) -> Result<Vec<Trace>, ScenarioError> {
    let trace = |arm: &Arm| {
        let done = match scenario.policy(arm)? {
            AnyPolicy::Gangs(_) => gangs::watched(scenario, arm)?,
            AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) => {
                Run { scenario, arm, seed: 1, record: false }.watched()?
            }
        };
        Ok(done.trace.unwrap_or_default())
    };
    arms.iter().map(trace).collect()
}

/// The page.
pub(super) fn page(subject: &Subject<'_>) -> Result<String> {
    let Subject { scenario, comparison, .. } = subject;
    let mut html = opening(scenario, comparison.seeds.len());
    html.push_str(&subject.colours());
    html.push_str(&tables::comparison(comparison));
    let sections = [
        pareto::section(comparison)?,
        ratios::section(comparison)?,
        completion::section(subject)?,
        shares::section(subject)?,
        limits::section(subject)?,
        sets::section(subject)?,
    ];
    html.push_str(&each(sections.into_iter().flatten(), Section::html));
    html.push_str(METHOD);
    html.push_str("</body></html>\n");
    Ok(html)
}

/// The beginning of the page: the scenario and its size.
fn opening(scenario: &Scenario, seeds: usize) -> String {
    let nodes = scenario.nodes.len();
    let cpus: f64 = scenario.nodes.iter().map(|node| node.cpus).sum();
    let jobs = scenario.draw(1).len().max(scenario.gangs.len());
    let some = |number: usize, what: &str| {
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    let set = each(&scenario.params, |(policy, params)| {
        each(params.iter(), |(name, value)| format!(", {policy}.{name} = {value}"))
    });
    let facts = [some(jobs, "job"), some(nodes, "node"), format!("{cpus} CPUs in all")];
    format!(
        "{}<p>{}</p>\n<p class=\"note\">{}, {}{}.</p>\n",
        head(&format!("Paceline simulate: {}", scenario.name)),
        escape(&scenario.description),
        facts.join(", "),
        some(seeds, "seed"),
        escape(&set),
    )
}

impl Subject<'_> {
    fn names(&self) -> Vec<String> {
        self.comparison.results.iter().map(|results| results.arm.to_string()).collect()
    }

    /// The legend of the policies' colours.
    fn colours(&self) -> String {
        let names = self.names();
        legend(names.iter().enumerate().map(|(place, name)| (colour(place), name.as_str())))
    }

    /// When the longest run ended.
    fn end(&self) -> f64 {
        self.traces.iter().map(|trace| trace.until).fold(0.0, f64::max)
    }
}

impl Section {
    fn html(self) -> String {
        format!(
            "<h2>{}</h2>\n<p class=\"note\">{}</p>\n{}",
            self.title,
            escape(self.caption),
            self.body
        )
    }
}

/// Pictures of policies side by side, each under its policy's name.
fn side_by_side(pictures: impl IntoIterator<Item = (String, String)>) -> String {
    let one = |(name, svg): (String, String)| {
        format!("<section><h3>{}</h3>\n{}</section>\n", escape(&name), figure(&svg))
    };
    format!("<div class=\"pictures\">\n{}</div>\n", each(pictures, one))
}

/// A picture by itself.
fn alone(svg: &str) -> String {
    format!("<div class=\"pictures\">\n{}</div>\n", figure(svg))
}

#[cfg(test)]
mod tests;
