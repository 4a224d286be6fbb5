//! Jobs as plain text, for pipes and files.

use std::time::Instant;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::discover::Search;
use crate::facts::{self, facts};
use crate::figures::{UNKNOWN, duration, number, percent, span};
use crate::jobs::{Group, Job, Jobs};

/// The columns of a text.
const COLUMNS: usize = 100;
/// The columns before the words of a fact.
pub(crate) const LABEL: usize = 12;
/// The columns of a job's curve.
const CURVE: usize = 60;

/// One job.
pub(crate) fn job(group: &Group<'_>, now: Instant) -> String {
    let head = group.head;
    let mut lines = wrap(&title(head, now), COLUMNS);
    let trouble = facts::trouble(head).into_iter().flat_map(|line| wrap(&line, COLUMNS - 2));
    lines.extend(trouble.map(|part| format!("  {part}")));
    let curve = curve(&head.past.curve(CURVE));
    if !curve.is_empty() {
        lines.push(format!("  {:LABEL$}{curve}", "Curve"));
    }
    let mut all = facts(group, now);
    all.push(("Address".to_owned(), place(head)));
    let facts = fact_lines(&all, COLUMNS - 2);
    lines.extend(facts.into_iter().map(|(label, words)| format!("  {label}{words}")));
    lines.join("\n") + "\n"
}

/// The name of a job and how it is.
pub(crate) fn title(job: &Job, now: Instant) -> String {
    let report = facts::last_report(job, now).filter(|_| !job.is_over());
    let report = report.map_or_else(String::new, |ago| format!(", last report {ago}"));
    let name = crate::clean::text(&job.progress.job, 60);
    format!("{name}: {}, {}{report}", facts::state(job), facts::health(&job.progress))
}

/// Where a job is, as a browser or `watch` takes it.
pub(crate) fn place(job: &Job) -> String {
    job.address.page().unwrap_or_else(|| job.address.to_string())
}

/// All jobs, a line each. An address that is too long has further lines, and is never cut.
pub(crate) fn list(jobs: &Jobs, search: &Search) -> String {
    let groups = jobs.groups();
    if groups.is_empty() {
        return nothing(search);
    }
    let mut text =
        row(["job", "state", "loss", "", "done", "left", "batch", "throttled", "address"]);
    for group in &groups {
        text += &cells(group);
    }
    let more =
        if jobs.left_out > 0 { format!("and {} more\n", jobs.left_out) } else { String::new() };
    text + &more
}

/// What to do where there is no job.
pub(crate) fn nothing(search: &Search) -> String {
    wrap(
        &format!(
            "No job found ({}). Start one: paceline-sidecar exec -- python train.py",
            search.places()
        ),
        COLUMNS,
    )
    .join("\n")
        + "\n"
}

fn cells(group: &Group<'_>) -> String {
    let job = group.head;
    let figures = Figures::new(group, 8);
    let address = job.address.to_string();
    row([
        &figures.name,
        figures.state,
        &figures.loss,
        &figures.curve,
        &figures.done,
        &figures.left,
        &figures.batch,
        &figures.throttled,
        &address,
    ])
}

fn row([job, state, loss, curve, done, left, batch, throttled, address]: [&str; 9]) -> String {
    let line = format!(
        "{} {} {} {} {} {} {} {}",
        fit(job, 14),
        fit(state, 10),
        fit(loss, 9),
        fit(curve, 8),
        fit(done, 7),
        fit(left, 10),
        fit(batch, 9),
        fit(throttled, 9),
    );
    if line.width() + 1 + address.width() <= COLUMNS {
        return format!("{line} {address}\n");
    }
    let further = wrap(address, COLUMNS - 2).into_iter().map(|part| format!("  {part}\n"));
    format!("{}\n{}", line.trim_end(), further.collect::<String>())
}

/// The figures of a job in a list.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) loss: String,
    pub(crate) curve: String,
    pub(crate) done: String,
    pub(crate) left: String,
    pub(crate) batch: String,
    pub(crate) throttled: String,
}

impl Figures {
    /// With a curve of at most `columns`.
    pub(crate) fn new(group: &Group<'_>, columns: usize) -> Self {
        let job = group.head;
        let progress = &job.progress;
        let signals = &progress.signals;
        let name = match group.ranks.len() {
            1 => progress.job.clone(),
            many => format!("{} ×{many}", progress.job),
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        Self {
            name,
            state: facts::state(job),
            loss: number(signals.loss_smoothed.or(progress.eval.value)),
            curve: curve(&job.past.curve(columns)),
            done: or_dash(signals.progress_ratio.map(percent)),
            left: or_dash(signals.eta_seconds.filter(|_| !job.is_over()).map(span)),
            batch: duration(progress.batch_latency.p50),
            throttled: or_dash(progress.cpu.throttled_ratio.map(percent)),
        }
    }
}

/// Of losses that differ by a larger factor the logarithms are drawn.
pub(crate) const MAX_LINEAR: f64 = 25.0;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A curve with a character for each value, from the smallest to the largest. Of values that differ by a
/// large factor the logarithms are drawn.
pub(crate) fn curve(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_wide = least > 0.0 && most / MAX_LINEAR > least;
    let values: Vec<f64> =
        values.iter().map(|value| if is_wide { value.ln() } else { *value }).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let level = |value: &f64| {
        // Halved, so that the largest numbers have a difference.
        let height =
            if high > low { (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.0 };
        let tops = (1..=8_u32).map(|step| f64::from(step) / 8.0);
        LEVELS.iter().zip(tops).find(|(_, top)| height <= *top).map_or('█', |(level, _)| *level)
    };
    values.iter().map(level).collect()
}

/// Facts as lines of at most `columns`: a label of [`LABEL`] columns, and words. Long facts take several.
pub(crate) fn fact_lines(facts: &[(String, String)], columns: usize) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (label, words) in facts {
        let mut label = label.as_str();
        for part in wrap(words, columns.saturating_sub(LABEL)) {
            lines.push((fit(label, LABEL - 1) + " ", part));
            label = "";
        }
    }
    lines
}

/// The text in lines of at most `columns`, broken between words where it can be.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let used = lines.last().map_or(0, |line| line.width());
        let gap = usize::from(used > 0);
        if used + gap + word.width() <= columns {
            if let Some(line) = lines.last_mut() {
                line.extend((gap > 0).then_some(' '));
                line.push_str(word);
            }
            continue;
        }
        if used > 0 {
            lines.push(String::new());
        }
        for c in word.chars() {
            let used = lines.last().map_or(0, |line| line.width());
            if used + c.width().unwrap_or(0) > columns {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

/// The text in exactly `columns`, cut with an ellipsis.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut fitted = String::new();
    let mut used = 0;
    let is_cut = text.width() > columns;
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if used + width + usize::from(is_cut) > columns {
            break;
        }
        used += width;
        fitted.push(c);
    }
    if is_cut && columns > 0 {
        fitted.push('…');
        used += 1;
    }
    fitted + &" ".repeat(columns.saturating_sub(used))
}

#[cfg(test)]
mod tests;
