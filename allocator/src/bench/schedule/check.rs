//! The rules for a schedule's values.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;

use super::file::{JobFile, ScheduleFile};
use super::{Job, Problem, STEPS, Schedule, policy_problem};
use crate::toml_error::line_at;

/// A day in seconds: a longer bench is a mistake in the file.
const LONGEST: f64 = 86_400.0;

/// The labels that tell the bench's containers apart.
const OWN_LABELS: [&str; 3] = ["paceline.enable", "paceline.job", "paceline.bench"];

const NAME_RULE: &str =
    "must be 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit";

/// Checks what `file`, parsed from `text`, says.
pub(super) fn check(text: &str, file: ScheduleFile) -> Result<Schedule, Problem> {
    let at = |span: Range<usize>| line_at(text, span.start);
    check_name("name", &file.name, &at)?;
    check_policies(&file, &at)?;
    if file.jobs.is_empty() {
        let end = at(text.len()..text.len());
        return Err(value(end, "job", &"missing", "there must be at least one [[job]]"));
    }
    let mut names = BTreeSet::new();
    let mut jobs = Vec::new();
    for job in file.jobs {
        let line = at(job.span());
        let job = job.into_inner();
        check_name("[[job]] name", &job.name, &at)?;
        if !names.insert(job.name.get_ref().clone()) {
            let rule = "another job has that name already";
            return Err(value(at(job.name.span()), "[[job]] name", &quoted(&job.name), rule));
        }
        check_job(&job, line, &at)?;
        jobs.push(job.into_job());
    }
    Ok(Schedule {
        name: file.name.into_inner(),
        description: file.description,
        policies: file.policies.into_inner().into_iter().map(Spanned::into_inner).collect(),
        params: file.params.into_iter().map(|(name, its)| (name, its.into_inner())).collect(),
        jobs,
    })
}

/// From a place in the text to its line.
trait Lines: Fn(Range<usize>) -> usize {}
impl<F: Fn(Range<usize>) -> usize> Lines for F {}

fn check_name(field: &str, name: &Spanned<String>, at: &impl Lines) -> Result<(), Problem> {
    let letters = || name.get_ref().bytes();
    let fits = (1..=63).contains(&letters().count())
        && letters().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && letters().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { Ok(()) } else { Err(value(at(name.span()), field, &quoted(name), NAME_RULE)) }
}

fn check_policies(file: &ScheduleFile, at: &impl Lines) -> Result<(), Problem> {
    for (name, params) in &file.params {
        if let Some(problem) = policy_problem(name, Some(params.get_ref())) {
            let line = at(params.span());
            return Err(value(line, "params", &format!("[params.{name}]"), problem));
        }
    }
    let mut seen = BTreeSet::new();
    for name in file.policies.get_ref() {
        let problem = match policy_problem(name.get_ref(), None) {
            None if !seen.insert(name.get_ref()) => "no policy may stand there twice".to_owned(),
            None => continue,
            Some(problem) => problem,
        };
        return Err(value(at(name.span()), "policies", &quoted(name), problem));
    }
    if seen.is_empty() {
        let line = at(file.policies.span());
        return Err(value(line, "policies", &"[]", "there must be at least one policy"));
    }
    Ok(())
}

fn check_job(job: &JobFile, line: usize, at: &impl Lines) -> Result<(), Problem> {
    let field = |field: &str| format!("job {:?}: {field}", job.name.get_ref());
    if job.image.get_ref().is_empty() {
        let rule = "must name an image";
        return Err(value(at(job.image.span()), field("image"), &quoted(&job.image), rule));
    }
    let arrive = *job.arrive.get_ref();
    if !(0.0..=LONGEST).contains(&arrive) {
        let rule = format!("must be from 0 to {LONGEST} seconds");
        return Err(value(at(job.arrive.span()), field("arrive"), &arrive, rule));
    }
    for word in &job.command {
        if let Some(unknown) = placeholders(word.get_ref()).find(|name| *name != STEPS) {
            let rule = format!("the only placeholder is {STEPS}");
            return Err(value(at(word.span()), field("command"), &unknown, rule));
        }
    }
    let takes_steps = job.command.iter().any(|word| word.get_ref().contains(STEPS));
    match &job.work {
        Some(work) if !takes_steps => {
            let rule = format!("it needs {STEPS} in the command, to become that many steps");
            return Err(value(at(work.span()), field("work"), work.get_ref(), rule));
        }
        Some(work) if !(*work.get_ref() > 0.0 && *work.get_ref() <= LONGEST) => {
            let rule = format!("must be above 0 and at most {LONGEST} machine-seconds");
            return Err(value(at(work.span()), field("work"), work.get_ref(), rule));
        }
        None if takes_steps => {
            let rule = format!("a command with {STEPS} needs it, in machine-seconds");
            return Err(value(line, field("work"), &"missing", rule));
        }
        Some(_) | None => {}
    }
    for (name, is) in &job.env {
        if name.is_empty() || name.contains('=') {
            let rule = "a variable's name must not be empty nor contain '='";
            return Err(value(at(is.span()), field("env"), &format!("{name:?}"), rule));
        }
    }
    for (name, is) in &job.labels {
        if OWN_LABELS.contains(&name.as_str()) {
            let rule = "the bench sets that label itself";
            return Err(value(at(is.span()), field("labels"), &format!("{name:?}"), rule));
        }
    }
    Ok(())
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

fn quoted(text: &Spanned<String>) -> String {
    format!("{:?}", text.get_ref())
}

fn value(
    line: usize,
    field: impl Into<String>,
    value: &dyn Display,
    rule: impl Into<String>,
) -> Problem {
    Problem::Value { line, field: field.into(), value: value.to_string(), rule: rule.into() }
}

impl JobFile {
    fn into_job(self) -> Job {
        let plain = |map: std::collections::BTreeMap<String, Spanned<String>>| {
            map.into_iter().map(|(name, is)| (name, is.into_inner())).collect()
        };
        Job {
            name: self.name.into_inner(),
            image: self.image.into_inner(),
            command: self.command.into_iter().map(Spanned::into_inner).collect(),
            arrive: self.arrive.into_inner(),
            work: self.work.map(Spanned::into_inner),
            env: plain(self.env),
            labels: plain(self.labels),
        }
    }
}
