//! The rules for a schedule's values.

mod arms;
mod arrivals;
mod jobs;
mod nodes;

use std::fmt::Display;
use std::ops::Range;

use paceline_api::toml_error::line_at;
use toml::Spanned;

use super::file::ScheduleFile;
use super::{Job, Problem, Schedule};

pub(super) use jobs::unknown_work;

/// A day in seconds: a longer bench is a mistake in the file.
const MAX_SECONDS: f64 = 86_400.0;

/// More repeats are a mistake in the file.
const MAX_REPEATS: u32 = 1000;

const NAME_RULE: &str =
    "must be 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit";

/// Checks the values of `file`, which was parsed from `text`.
pub(super) fn check(text: &str, file: ScheduleFile) -> Result<Schedule, Problem> {
    let lines = Lines(text);
    check_name("name", &file.name, lines)?;
    let short = repeats("repeats", file.repeats.as_ref(), lines)?;
    let full = file.full.as_ref().map(|full| &full.repeats);
    let full = full.map(|full| repeats("[full] repeats", Some(full), lines)).transpose()?;
    let arrivals = arrivals::check(file.arrivals.as_ref(), lines)?;
    let nodes = nodes::check(file.nodes, lines)?;
    let jobs = jobs::check(file.jobs, arrivals, &nodes, lines)?;
    let params =
        file.params.iter().map(|(name, its)| (name.clone(), its.get_ref().clone())).collect();
    let arms::Arms { always, in_full } = arms::check(
        arms::ArmTables { policies: file.policies, arms: file.arms, params: file.params },
        nodes.len(),
        &jobs,
        lines,
    )?;
    let schedule = Schedule {
        name: file.name.into_inner(),
        description: file.description,
        text: text.to_owned(),
        repeats: short,
        full_repeats: full,
        warm_up: file.warm_up.unwrap_or(short > 1),
        seed: file.seed,
        scale: scale(file.scale.as_ref(), lines)?,
        arrivals,
        until: until(file.until.as_ref(), lines)?,
        arms: always,
        full_arms: in_full,
        nodes,
        jobs,
        params,
    };
    if let Some(given) = &file.until {
        let mut all =
            (1..=short.max(full.unwrap_or(short))).flat_map(|repeat| schedule.jobs_of(repeat));
        if let Some(Job { name, arrive, .. }) = all.find(|job| job.arrive >= *given.get_ref()) {
            let rule =
                format!("job {name:?} arrives after {arrive} seconds, when all would be stopped");
            return Err(value(lines.of(given), "until", given.get_ref(), rule));
        }
    }
    Ok(Schedule { jobs: schedule.jobs_of(1), ..schedule })
}

fn repeats(field: &str, given: Option<&Spanned<u32>>, lines: Lines<'_>) -> Result<u32, Problem> {
    let Some(given) = given else { return Ok(1) };
    let repeats = *given.get_ref();
    if (1..=MAX_REPEATS).contains(&repeats) {
        return Ok(repeats);
    }
    let rule = format!("must be from 1 to {MAX_REPEATS}");
    Err(value(lines.of(given), field, &repeats, rule))
}

fn scale(given: Option<&Spanned<f64>>, lines: Lines<'_>) -> Result<f64, Problem> {
    let Some(given) = given else { return Ok(1.0) };
    let scale = *given.get_ref();
    if scale.is_finite() && scale > 0.0 {
        return Ok(scale);
    }
    Err(value(lines.of(given), "scale", &scale, "must be a number above 0"))
}

fn until(given: Option<&Spanned<f64>>, lines: Lines<'_>) -> Result<Option<f64>, Problem> {
    let Some(given) = given else { return Ok(None) };
    let until = *given.get_ref();
    if until > 0.0 && until <= MAX_SECONDS {
        return Ok(Some(until));
    }
    let rule = format!("must be above 0 and at most {MAX_SECONDS} seconds");
    Err(value(lines.of(given), "until", &until, rule))
}

/// Converts positions in the text to lines.
#[derive(Clone, Copy, Debug)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of<T>(self, what: &Spanned<T>) -> usize {
        self.at(what.span())
    }

    fn at(self, span: Range<usize>) -> usize {
        line_at(self.0, span.start)
    }

    fn last(self) -> usize {
        self.at(self.0.len()..self.0.len())
    }
}

fn check_name(field: &str, name: &Spanned<String>, lines: Lines<'_>) -> Result<(), Problem> {
    let letters = || name.get_ref().bytes();
    let fits = (1..=63).contains(&letters().count())
        && letters().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && letters().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { Ok(()) } else { Err(value(lines.of(name), field, &quoted(name), NAME_RULE)) }
}

/// Checks a time in seconds.
fn check_time(field: &str, given: &Spanned<f64>, lines: Lines<'_>) -> Result<f64, Problem> {
    let seconds = *given.get_ref();
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        return Ok(seconds);
    }
    let rule = format!("must be from 0 to {MAX_SECONDS} seconds");
    Err(value(lines.of(given), field, &seconds, rule))
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
