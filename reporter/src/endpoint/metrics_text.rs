//! The text of `GET /metrics`: Prometheus' exposition format 0.0.4, or `OpenMetrics` 1.0.0.

mod accept;
mod writer;

use paceline_wire::{Activity, Cpu, Direction, Forecast, Forward, Health, Progress, State};

pub(crate) use self::accept::wanted;
pub(crate) use self::writer::Format;
use self::writer::Text;
use crate::hot::histogram::Counts;

/// Upper bounds of the batch durations in milliseconds: from a small model's batch to that of a
/// large model with little CPU. Each is a bound of the finer histogram, so its count is exact.
const BOUNDS: [u64; 17] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000,
    600_000,
];

/// The metrics of a job. An unknown value has no sample.
pub(crate) fn render(progress: &Progress, durations: &Counts, format: Format) -> String {
    let mut text = Text::new(format);
    job(&mut text, progress);
    losses(&mut text, progress);
    steps(&mut text, progress, durations);
    targets(&mut text, progress);
    states(&mut text, progress);
    counters_and_quota(&mut text, progress);
    forwards(&mut text, progress);
    text.end()
}

fn job(text: &mut Text, progress: &Progress) {
    let mut labels = vec![
        ("job", progress.job.as_str()),
        ("loss", &progress.eval.name),
        ("direction", direction(progress.eval.direction)),
        ("source", &progress.source),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    labels.extend(progress.dataset.as_deref().map(|dataset| ("dataset", dataset)));
    let rank = progress.rank.map(|rank| rank.global.to_string());
    labels.extend(rank.as_deref().map(|rank| ("rank", rank)));
    text.family("paceline_job_info", "gauge", "What the job is; always 1.");
    text.sample("paceline_job_info", &labels, &1);
}

fn losses(text: &mut Text, progress: &Progress) {
    let Progress { eval, signals, validation, .. } = progress;
    text.known("paceline_loss", "gauge", "Mean of the last reported losses.", eval.value);
    let smoothed = signals.loss_smoothed;
    text.known("paceline_loss_smoothed", "gauge", "The loss without its noise.", smoothed);
    let best = eval.best;
    text.known("paceline_loss_best", "gauge", "The best loss of a single report.", best);
    let reports = Some(eval.count);
    let help = "Finite losses that were reported.";
    text.known("paceline_loss_reports_total", "counter", help, reports);
    let held_out = validation.map(|validation| validation.value);
    let help = "The last loss on held-out data.";
    text.known("paceline_validation_loss", "gauge", help, held_out);
    let last = eval.updated_at;
    let help = "When the last loss was reported.";
    text.known("paceline_last_report_timestamp_seconds", "gauge", help, last);
}

fn steps(text: &mut Text, progress: &Progress, durations: &Counts) {
    let signals = &progress.signals;
    text.durations(durations);
    let steps = Some(progress.step.unwrap_or(0));
    text.known("paceline_steps_total", "counter", "Steps that were made.", steps);
    text.known("paceline_epoch", "gauge", "Epoch, counted from 1.", progress.epoch);
    let ratio = signals.progress_ratio;
    let help = "Steps made, as a fraction of all steps.";
    text.known("paceline_progress_ratio", "gauge", help, ratio);
    let eta = signals.eta_seconds;
    text.known("paceline_eta_seconds", "gauge", "Time until all steps are made.", eta);
}

fn targets(text: &mut Text, progress: &Progress) {
    let Progress { targets, reached, signals, .. } = progress;
    let tiers = |acceptable: Option<f64>, objective: Option<f64>| {
        [("acceptable", acceptable), ("objective", objective)]
    };
    text.family("paceline_target_loss", "gauge", "The loss that the job is asked to reach.");
    for (tier, target) in tiers(targets.acceptable, targets.objective) {
        if let Some(target) = target {
            text.sample("paceline_target_loss", &[("tier", tier)], &target);
        }
    }
    let name = "paceline_target_reached_timestamp_seconds";
    text.family(name, "gauge", "When the loss was reached.");
    for (tier, at) in tiers(reached.acceptable_at, reached.objective_at) {
        if let Some(at) = at {
            text.sample(name, &[("tier", tier)], &at);
        }
    }
    forecasts(
        text,
        ("paceline_acceptable_eta_seconds", "Time until the acceptable loss"),
        ("paceline_acceptable_remaining_steps", "Steps until the acceptable loss"),
        signals.to_acceptable.as_ref(),
    );
    forecasts(
        text,
        ("paceline_objective_eta_seconds", "Time until the objective"),
        ("paceline_objective_remaining_steps", "Steps until the objective"),
        signals.to_objective.as_ref(),
    );
    let target = targets.batch_latency;
    let help = "The target for the duration of a batch.";
    text.known("paceline_target_batch_duration_seconds", "gauge", help, target);
}

/// Writes how far a target is, in seconds and in steps; each is given by its name and its help.
fn forecasts(
    text: &mut Text,
    seconds: (&str, &str),
    steps: (&str, &str),
    forecast: Option<&Forecast>,
) {
    let in_seconds = forecast.map(|forecast| [forecast.low, forecast.seconds, forecast.high]);
    let in_steps = forecast.and_then(|forecast| forecast.steps);
    let in_steps = in_steps.map(|steps| [steps.low, steps.median, steps.high]);
    for ((name, what), values) in [(seconds, in_seconds), (steps, in_steps)] {
        let help = format!("{what}, by the probability of reaching it by then.");
        text.family(name, "gauge", &help);
        for (quantile, value) in ["0.1", "0.5", "0.9"].into_iter().zip(values.iter().flatten()) {
            if let Some(value) = value {
                text.sample(name, &[("quantile", quantile)], value);
            }
        }
    }
}

fn states(text: &mut Text, progress: &Progress) {
    let Progress { state, signals, .. } = progress;
    let states = [
        ("starting", State::Starting),
        ("running", State::Running),
        ("finished", State::Finished),
        ("failed", State::Failed),
    ];
    let states = states.map(|(name, one)| (name, one == *state));
    text.states(
        "paceline_state",
        "The job's state: 1 for the current one, 0 for the others.",
        &states,
    );
    let activities = [
        ("starting", Activity::Starting),
        ("training", Activity::Training),
        ("evaluating", Activity::Evaluating),
        ("checkpointing", Activity::Checkpointing),
        ("stalled", Activity::Stalled),
        ("ended", Activity::Ended),
    ];
    let activities = activities.map(|(name, one)| (name, one == signals.activity));
    text.states(
        "paceline_activity",
        "The job's activity: 1 for the current one, 0 for the others.",
        &activities,
    );
    let healths = [
        ("fine", Health::Fine),
        ("nonfinite", Health::Nonfinite),
        ("diverging", Health::Diverging),
    ];
    let healths = healths.map(|(name, one)| (name, one == signals.health));
    text.states(
        "paceline_loss_health",
        "The loss's health: 1 for the current one, 0 for the others.",
        &healths,
    );
}

fn counters_and_quota(text: &mut Text, progress: &Progress) {
    let Progress { checkpoint, cpu, .. } = progress;
    let counters = [
        (
            "paceline_checkpoints_requested_total",
            "Checkpoints that were requested.",
            checkpoint.requested,
        ),
        ("paceline_checkpoints_saved_total", "Checkpoints that were saved.", checkpoint.saved),
        (
            "paceline_reports_dropped_total",
            "Reports that were lost because too many came at once.",
            progress.dropped,
        ),
        (
            "paceline_reports_rejected_total",
            "Reports whose loss was not a finite number.",
            progress.rejected,
        ),
    ];
    for (name, help, count) in counters {
        text.known(name, "counter", help, Some(count));
    }
    let at = checkpoint.at;
    let help = "When the last checkpoint was saved.";
    text.known("paceline_last_checkpoint_timestamp_seconds", "gauge", help, at);
    let step = checkpoint.step;
    let help = "The step of the last checkpoint.";
    text.known("paceline_last_checkpoint_step", "gauge", help, step);
    points(text, progress.tensorboard.as_ref());
    cpu_use(text, cpu);
}

/// The points in event files, if any are written.
fn points(text: &mut Text, written: Option<&Forward>) {
    let Some(Forward { sent, failed, dropped, .. }) = written else { return };
    let counters = [
        ("paceline_tensorboard_points_total", "Points that the event files have.", sent),
        (
            "paceline_tensorboard_points_dropped_total",
            "Points that were lost because the disk took none.",
            dropped,
        ),
        ("paceline_tensorboard_failures_total", "Writes of points that failed.", failed),
    ];
    for (name, help, count) in counters {
        text.known(name, "counter", help, Some(count));
    }
}

fn cpu_use(text: &mut Text, cpu: &Cpu) {
    text.known("paceline_cpu_quota_cores", "gauge", "The process's CPU quota in cores.", cpu.quota);
    let periods = cpu.periods;
    let help = "Periods of the CPU quota in which the control group ran.";
    text.known("paceline_cpu_periods_total", "counter", help, periods);
    let throttled = cpu.throttled_periods;
    let help = "Periods in which the CPU quota was used up.";
    text.known("paceline_cpu_throttled_periods_total", "counter", help, throttled);
    let waited = cpu.throttled_seconds;
    let help = "How long threads waited for the next period, all together.";
    text.known("paceline_cpu_throttled_seconds_total", "counter", help, waited);
    let pressure = cpu.pressure;
    let help = "The part of the last 10 s in which a thread waited for a CPU.";
    text.known("paceline_cpu_pressure_ratio", "gauge", help, pressure);
}

/// A count of a target.
type Count = fn(&Forward) -> u64;

/// What a sidecar has forwarded; nothing where it forwards nothing.
fn forwards(text: &mut Text, progress: &Progress) {
    let targets = progress.sidecar.as_ref().map(|sidecar| sidecar.forwards.as_slice());
    let targets = targets.unwrap_or_default();
    let families: [(_, _, Count); 3] = [
        ("paceline_forward_sent_total", "Readings or events sent to a target.", |one| one.sent),
        ("paceline_forward_failed_total", "Those that could not be sent.", |one| one.failed),
        (
            "paceline_forward_dropped_total",
            "Those that newer ones replaced because the target was too slow.",
            |one| one.dropped,
        ),
    ];
    for (name, help, count) in families.into_iter().filter(|_| !targets.is_empty()) {
        text.family(name, "counter", help);
        for target in targets {
            text.sample(name, &[("target", &target.name)], &count(target));
        }
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Minimize => "minimize",
        Direction::Maximize => "maximize",
    }
}

#[cfg(test)]
mod tests;
