//! What is known of a job, in words.

use std::time::Instant;

use paceline_wire::{Activity, Direction, Forecast, Health, Progress, State};

use crate::figures::{UNKNOWN, duration, number, percent, plural, short, span, whole};
use crate::jobs::{Group, Job, Standing};

/// The most ranks that have a line of their own.
const MAX_RANKS: usize = 16;

/// The state in one or two words.
pub(crate) fn state(job: &Job) -> &'static str {
    match (job.progress.state, job.standing) {
        (State::Finished, _) => "Finished",
        (State::Failed, _) => "Failed",
        (_, Standing::Gone) => "Ended",
        (_, Standing::Silent) => "Not answering",
        (State::Starting | State::Running, Standing::Answers) => {
            match job.progress.signals.activity {
                Activity::Starting => "Starting",
                Activity::Training => "Training",
                Activity::Evaluating => "Evaluating",
                Activity::Checkpointing => "Saving",
                Activity::Stalled => "Stalled",
                Activity::Ended => "Ended",
            }
        }
    }
}

/// The health of the loss.
pub(crate) fn health(progress: &Progress) -> &'static str {
    match progress.signals.health {
        Health::Nonfinite => "the last loss was NaN or infinite",
        Health::Diverging => "the loss diverges",
        Health::Fine if progress.eval.count > 0 => "the loss is sound",
        Health::Fine if progress.rejected > 0 => "no finite loss yet",
        Health::Fine => "no loss yet",
    }
}

/// How long ago the last report was.
pub(crate) fn last_report(job: &Job, now: Instant) -> Option<String> {
    let quiet = job.progress.signals.quiet_seconds?;
    let quiet = quiet + now.saturating_duration_since(job.seen).as_secs_f64();
    Some(if quiet < 1.0 { "just now".to_owned() } else { format!("{} ago", span(quiet)) })
}

/// What needs attention.
pub(crate) fn trouble(job: &Job) -> Vec<String> {
    let progress = &job.progress;
    let mut all = Vec::new();
    match (progress.state, job.standing) {
        (State::Failed, _) => all.push("The job has ended by an error.".to_owned()),
        (State::Finished, _) | (_, Standing::Answers) => {}
        (_, Standing::Silent) => {
            all.push("The job does not answer. The figures are its last ones.".to_owned());
        }
        (_, Standing::Gone) => {
            all.push("The job is gone, and did not say how it ended.".to_owned());
        }
    }
    if progress.signals.activity == Activity::Stalled && !job.is_over() {
        let quiet = progress.signals.quiet_seconds.map_or_else(|| UNKNOWN.to_owned(), span);
        all.push(format!("No step for {quiet}, much longer than steps took before."));
    }
    match progress.signals.health {
        Health::Fine => {}
        Health::Nonfinite => all.push(
            "The last loss was NaN or infinite. The learning rate may be too high.".to_owned(),
        ),
        Health::Diverging => {
            all.push("The loss has been far worse than its best for a while.".to_owned());
        }
    }
    if let Some(error) = &progress.checkpoint.error {
        all.push(format!("The last checkpoint failed: {error}"));
    }
    if let Some(sidecar) = &progress.sidecar {
        if sidecar.block_buffered {
            all.push(
                "Output arrives in blocks, so times are inaccurate. PYTHONUNBUFFERED=1 avoids this."
                    .to_owned(),
            );
        }
        let said = |source: &paceline_wire::Source| {
            let words = source.error.as_ref().or(source.hint.as_ref())?;
            Some(format!("{}: {words}", source.name))
        };
        all.extend(sidecar.sources.iter().filter_map(said).take(2));
    }
    all
}

/// The time left; `None` after the end.
pub(crate) fn left(job: &Job) -> Option<String> {
    if job.is_over() {
        return None;
    }
    job.progress.signals.eta_seconds.map(|seconds| format!("{} left", span(seconds)))
}

/// The steps made, and of how many.
pub(crate) fn steps(progress: &Progress) -> Option<String> {
    let step = format!("step {}", whole(progress.step?));
    let of = |total: u64| format!("{step} of {}", whole(total));
    let steps = progress.total_steps.map_or_else(|| step.clone(), of);
    Some(match progress.expected_steps.filter(|few| Some(*few) != progress.total_steps) {
        Some(few) => format!("{steps} ({} expected)", whole(few)),
        None => steps,
    })
}

/// The lines about a job and its ranks: a subject and its words.
pub(crate) fn facts(group: &Group<'_>, now: Instant) -> Vec<(String, String)> {
    let job = group.head;
    let progress = &job.progress;
    let mut lines = vec![("Progress", progress_line(job)), ("Loss", loss(progress))];
    if let Some(validation) = progress.validation {
        let count = plural(validation.count, "time", "times");
        let [last, best] = [validation.value, validation.best].map(|value| number(Some(value)));
        lines.push(("Validation", format!("{last}, best {best}, {count}")));
    }
    lines.push(("Batch", batch(progress)));
    lines.extend(targets(job));
    lines.push(("CPU", cpu(progress)));
    lines.push(("Checkpoint", checkpoint(job, now)));
    let mut lines: Vec<_> =
        lines.into_iter().map(|(name, words)| (name.to_owned(), words)).collect();
    lines.extend(ranks(group));
    lines.push(("Run".to_owned(), run(job)));
    lines
}

fn progress_line(job: &Job) -> String {
    let progress = &job.progress;
    let signals = &progress.signals;
    let pace = signals.steps_per_second.filter(|_| !job.is_over()).map(|pace| {
        if pace >= 1.0 {
            format!("{} steps/s", number(Some(pace)))
        } else {
            format!("{} per step", duration(Some(1.0 / pace)))
        }
    });
    let parts = [
        signals.progress_ratio.map(|ratio| format!("{} done", percent(ratio))),
        steps(progress),
        progress.epoch.map(|epoch| format!("epoch {}", whole(epoch))),
        left(job),
        pace,
    ];
    let known: Vec<_> = parts.into_iter().flatten().collect();
    if known.is_empty() { "no step yet".to_owned() } else { known.join(", ") }
}

fn loss(progress: &Progress) -> String {
    let eval = &progress.eval;
    if eval.count == 0 {
        return "none yet".to_owned();
    }
    let better = match eval.direction {
        Direction::Minimize => "",
        Direction::Maximize => ", larger is better",
    };
    let reports = plural(eval.count.min(u64::from(eval.window)), "report", "reports");
    let named = if eval.name == "loss" { String::new() } else { format!("{}: ", eval.name) };
    format!(
        "{named}{} smoothed, {} over {reports}, best {}{better}",
        number(progress.signals.loss_smoothed),
        number(eval.value),
        number(eval.best),
    )
}

fn batch(progress: &Progress) -> String {
    let latency = &progress.batch_latency;
    if latency.count == 0 {
        return "none yet".to_owned();
    }
    let target = progress.targets.batch_latency;
    let target =
        target.map_or_else(String::new, |target| format!(", target {}", duration(Some(target))));
    format!(
        "p50 {}, p95 {}, p99 {}, last {}{target}",
        duration(latency.p50),
        duration(latency.p95),
        duration(latency.p99),
        duration(latency.last),
    )
}

fn targets(job: &Job) -> impl Iterator<Item = (&'static str, String)> {
    let Progress { targets, reached, signals, now, .. } = &job.progress;
    let is_over = job.is_over();
    let all = [
        ("Acceptable", targets.acceptable, reached.acceptable_at, signals.to_acceptable),
        ("Objective", targets.objective, reached.objective_at, signals.to_objective),
    ];
    let now = *now;
    all.into_iter().filter_map(move |(name, target, at, ahead)| {
        let words = match at {
            Some(at) => format!("reached {} ago", span(now - at)),
            None if is_over => "not reached".to_owned(),
            None => ahead.map_or_else(|| "forecast not yet known".to_owned(), forecast),
        };
        Some((name, format!("{}: {words}", short(Some(target?)))))
    })
}

/// A forecast, and the interval that 8 of 10 cases are in.
fn forecast(Forecast { low, seconds, high, .. }: Forecast) -> String {
    let Some(low) = low else { return "most likely never".to_owned() };
    let until = match high {
        Some(high) => format!("{} to {}", span(low), span(high)),
        None => format!("{} or never", span(low)),
    };
    let median = seconds.map_or_else(|| "likely never".to_owned(), |at| format!("in {}", span(at)));
    format!("{median} (8 of 10 cases: {until})")
}

/// The quota, and what was refused.
pub(crate) fn cpu(progress: &Progress) -> String {
    let cpu = &progress.cpu;
    let quota = cpu.quota.map_or_else(
        || "no quota".to_owned(),
        |quota| {
            let cores = if (quota - 1.0).abs() < 1e-9 { "core" } else { "cores" };
            format!("quota {} {cores}", short(Some(quota)))
        },
    );
    let threads = cpu.threads.map(|threads| plural(u64::from(threads), "thread", "threads"));
    let so_far = cpu.throttled_seconds.filter(|_| cpu.periods > Some(0));
    let parts = [
        Some(quota),
        threads.map(|threads| format!("room for {threads}")),
        cpu.throttled_ratio.map(|part| format!("throttled {}", percent(part))),
        so_far.map(|seconds| format!("{} lost so far", duration(Some(seconds)))),
        cpu.pressure.map(|part| format!("waiting {} of the last 10 s", percent(part))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn checkpoint(job: &Job, now: Instant) -> String {
    let checkpoint = &job.progress.checkpoint;
    let Some(at) = checkpoint.at else {
        return match checkpoint.requested {
            0 => "none".to_owned(),
            requested => format!("none, {} requested", whole(requested)),
        };
    };
    let age = job.progress.now - at + now.saturating_duration_since(job.seen).as_secs_f64();
    let parts = [
        Some(format!("{} saved", whole(checkpoint.saved))),
        Some(format!("last {} ago", span(age))),
        checkpoint.step.map(|step| format!("step {}", whole(step))),
        checkpoint.loss.map(|loss| format!("loss {}", number(Some(loss)))),
        checkpoint.path.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Other ranks with an endpoint each, and ranks whose output one sidecar reads.
fn ranks(group: &Group<'_>) -> Vec<(String, String)> {
    let name = |global: u32| format!("Rank {global}");
    let own = group.ranks.iter().filter_map(|rank| {
        let progress = &rank.progress;
        let number_of = progress.rank?;
        let size = number_of.world.map_or_else(String::new, |world| format!(" of {world}"));
        Some((
            name(number_of.global) + &size,
            format!(
                "{}, {}, loss {}, p50 {}, {}",
                state(rank),
                steps(progress).unwrap_or_else(|| "no step".to_owned()),
                number(progress.signals.loss_smoothed.or(progress.eval.value)),
                duration(progress.batch_latency.p50),
                rank.address,
            ),
        ))
    });
    let printed = group.head.progress.sidecar.iter().flat_map(|sidecar| &sidecar.ranks);
    let printed = printed.filter(|rank| rank.count > 0).map(|rank| {
        let mean = rank.sum / crate::figures::float(rank.count);
        let batches = plural(rank.count, "batch", "batches");
        (name(rank.rank), format!("{batches}, mean {}", duration(Some(mean))))
    });
    own.chain(printed).take(MAX_RANKS).collect()
}

fn run(job: &Job) -> String {
    let progress = &job.progress;
    let reports = plural(progress.eval.count, "report", "reports");
    let refused = if progress.rejected > 0 || progress.dropped > 0 {
        let [rejected, dropped] = [progress.rejected, progress.dropped].map(whole);
        format!(", {rejected} not finite, {dropped} dropped")
    } else {
        String::new()
    };
    let data = progress.dataset.as_ref().map_or_else(String::new, |data| format!("{data}, "));
    format!(
        "{data}for {}, {reports}{refused}, by {}, process {}",
        span(progress.now - progress.started_at),
        progress.source,
        progress.pid
    )
}

#[cfg(test)]
mod tests;
