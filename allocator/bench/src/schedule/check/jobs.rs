//! The `[[job]]`s of a schedule.

use std::collections::{BTreeMap, BTreeSet};

use paceline_api::labels::{LabelError, Labels, WORK};
use paceline_api::nodes::Node;
use toml::Spanned;

use super::super::file::JobFile;
use super::super::{Arrivals, Job, Problem, STEPS};
use super::{Lines, MAX_SECONDS, check_name, check_time, quoted, value};

/// The labels that the bench sets itself.
const OWN_LABELS: [&str; 4] =
    ["paceline.enable", "paceline.job", "paceline.bench", "paceline.checkpoint"];

pub(super) fn check(
    given: Vec<Spanned<JobFile>>,
    arrivals: Arrivals,
    nodes: &[Node],
    lines: Lines<'_>,
) -> Result<Vec<Job>, Problem> {
    if given.is_empty() {
        let rule = "there must be at least one [[job]]";
        return Err(value(lines.last(), "job", &"missing", rule));
    }
    let mut names = BTreeSet::new();
    let mut jobs = Vec::new();
    for job in given {
        let line = lines.of(&job);
        let job = job.into_inner();
        check_name("[[job]] name", &job.name, lines)?;
        if !names.insert(job.name.get_ref().clone()) {
            let rule = "another job has that name already";
            return Err(value(lines.of(&job.name), "[[job]] name", &quoted(&job.name), rule));
        }
        let rules = Rules { job: &job, line, lines };
        rules.check_image_and_command()?;
        rules.check_work()?;
        rules.check_node(nodes)?;
        rules.check_names()?;
        let arrive = rules.arrival(arrivals)?;
        let checkpoint = rules.checkpoint()?;
        let job = job.into_job(arrive, checkpoint);
        jobs.push(job);
    }
    Ok(jobs)
}

/// Why the oracle cannot run, if the work of a job is unknown.
pub(in super::super) fn unknown_work(jobs: &[Job]) -> Option<String> {
    let unknown = |job: &&Job| job.work.is_none() && !job.labels.contains_key(WORK);
    let job = jobs.iter().find(unknown)?;
    Some(format!(
        "it needs the work of every job: give job {:?} `work` or the label {WORK}",
        job.name
    ))
}

/// The rules for one job, whose table begins on `line`.
#[derive(Clone, Copy, Debug)]
struct Rules<'a> {
    job: &'a JobFile,
    line: usize,
    lines: Lines<'a>,
}

impl Rules<'_> {
    fn field(&self, field: &str) -> String {
        format!("job {:?}: {field}", self.job.name.get_ref())
    }

    fn check_image_and_command(&self) -> Result<(), Problem> {
        let (job, lines) = (self.job, self.lines);
        if job.image.get_ref().is_empty() {
            let (field, rule) = (self.field("image"), "must name an image");
            return Err(value(lines.of(&job.image), field, &quoted(&job.image), rule));
        }
        for word in &job.command {
            if let Some(unknown) = placeholders(word.get_ref()).find(|name| *name != STEPS) {
                let rule = format!("the only placeholder is {STEPS}");
                return Err(value(lines.of(word), self.field("command"), &unknown, rule));
            }
        }
        Ok(())
    }

    fn arrival(&self, arrivals: Arrivals) -> Result<f64, Problem> {
        let field = self.field("arrive");
        match (&self.job.arrive, arrivals) {
            (Some(given), Arrivals::Fixed) => check_time(&field, given, self.lines),
            (None, Arrivals::Fixed) => {
                let rule = "without [arrivals], each job needs it, in seconds";
                Err(value(self.line, field, &"missing", rule))
            }
            (Some(given), _) => {
                let rule = "[arrivals] already sets when jobs arrive: remove one of them";
                Err(value(self.lines.of(given), field, given.get_ref(), rule))
            }
            (None, _) => Ok(0.0),
        }
    }

    fn check_work(&self) -> Result<(), Problem> {
        let takes_steps = self.job.command.iter().any(|word| word.get_ref().contains(STEPS));
        let field = self.field("work");
        match &self.job.work {
            Some(work) if !takes_steps => {
                let rule = format!("the command needs {STEPS}, which work is converted to");
                Err(value(self.lines.of(work), field, work.get_ref(), rule))
            }
            Some(work) if !(*work.get_ref() > 0.0 && *work.get_ref() <= MAX_SECONDS) => {
                let rule = format!("must be above 0 and at most {MAX_SECONDS} machine-seconds");
                Err(value(self.lines.of(work), field, work.get_ref(), rule))
            }
            None if takes_steps => {
                let rule = format!("a command with {STEPS} requires it, in machine-seconds");
                Err(value(self.line, field, &"missing", rule))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_node(&self, nodes: &[Node]) -> Result<(), Problem> {
        let field = self.field("node");
        match &self.job.node {
            Some(given) if nodes.iter().all(|node| node.name != *given.get_ref()) => {
                let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                let rule = match known.as_slice() {
                    [] => "there is no [[node]]".to_owned(),
                    known => format!("the nodes are {}", known.join(", ")),
                };
                Err(value(self.lines.of(given), field, &quoted(given), rule))
            }
            None if !nodes.is_empty() => {
                let rule = "with [[node]] tables, each job must name its first node";
                Err(value(self.line, field, &"missing", rule))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn checkpoint(&self) -> Result<Option<String>, Problem> {
        let Some(given) = &self.job.checkpoint else { return Ok(None) };
        let path = given.get_ref();
        if path.starts_with('/') && path.len() > 1 && !path.contains(':') {
            return Ok(Some(path.clone()));
        }
        let rule = "must be an absolute path of the container, without a colon";
        Err(value(self.lines.of(given), self.field("checkpoint"), &quoted(given), rule))
    }

    /// Checks environment variables and labels.
    fn check_names(&self) -> Result<(), Problem> {
        for (name, is) in &self.job.env {
            if name.is_empty() || name.contains('=') {
                let rule = "a variable's name must not be empty or contain '='";
                let line = self.lines.of(is);
                return Err(value(line, self.field("env"), &format!("{name:?}"), rule));
            }
        }
        for (name, is) in &self.job.labels {
            if OWN_LABELS.contains(&name.as_str()) {
                let rule = "the bench sets that label itself";
                let line = self.lines.of(is);
                return Err(value(line, self.field("labels"), &format!("{name:?}"), rule));
            }
        }
        Labels::parse(&plain(self.job.labels.clone())).map(drop).map_err(|error| {
            let (label, given, rule) = match &error {
                LabelError::Value { label, value, allowed } => {
                    (label, format!("{value:?}"), format!("must be {allowed}"))
                }
                LabelError::Order { low, low_value, high, high_value } => {
                    let rule = format!("must be at most {high}, which is {high_value}");
                    (low, low_value.to_string(), rule)
                }
            };
            let line = self.job.labels.get(*label).map_or(self.line, |is| self.lines.of(is));
            value(line, self.field(label), &given, rule)
        })
    }
}

/// What looks like a placeholder in `word`: lower-case letters and `_` in braces.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(|(start, _)| {
        let rest = word.get(start..)?;
        let found = rest.get(..=rest.find('}')?)?;
        let name = found.trim_matches(['{', '}']);
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        is_name.then_some(found)
    })
}

fn plain(map: BTreeMap<String, Spanned<String>>) -> BTreeMap<String, String> {
    map.into_iter().map(|(name, is)| (name, is.into_inner())).collect()
}

impl JobFile {
    fn into_job(self, arrive: f64, checkpoint: Option<String>) -> Job {
        Job {
            name: self.name.into_inner(),
            image: self.image.into_inner(),
            command: self.command.into_iter().map(Spanned::into_inner).collect(),
            arrive,
            work: self.work.map(Spanned::into_inner),
            node: self.node.map(Spanned::into_inner),
            checkpoint,
            env: plain(self.env),
            labels: plain(self.labels),
        }
    }
}
