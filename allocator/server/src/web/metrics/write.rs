//! Writes a snapshot's figures to the recorder.

use metrics::{Label, counter, gauge};
use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::{JobView, Standing};

use super::PREFIX;

/// How many jobs have metrics of their own.
const MAX_JOBS: usize = 512;
/// The longest label value, in characters.
const MAX_LABEL_LEN: usize = 128;

const STANDINGS: [(Standing, &str); 6] = [
    (Standing::Waiting, "waiting"),
    (Standing::Managed, "managed"),
    (Standing::Pinned, "pinned"),
    (Standing::Released, "released"),
    (Standing::Ending, "ending"),
    (Standing::Moving, "moving"),
];

/// The labels of a sample.
type Labels<'a> = &'a [(&'static str, &'a str)];

pub(super) fn all(snapshot: &Snapshot, decided: impl Fn(&str) -> u64) {
    run(snapshot);
    cost(snapshot);
    for shadow in &snapshot.shadows {
        let labels: Labels<'_> = &[("policy", &shadow.policy)];
        set("shadow_distance_ratio", labels, shadow.distance);
        count("shadow_decisions_total", labels, shadow.decisions);
        count("shadow_disagreements_total", labels, shadow.disagreements);
    }
    for job in snapshot.jobs.iter().take(MAX_JOBS) {
        one(job);
        if job.standing != Standing::Waiting {
            count("job_decisions_total", &[("job_name", &job.job)], decided(&job.job));
        }
    }
}

/// Writes how many messages an OpenTelemetry receiver has taken, and the others.
pub(super) fn exports((sent, failed): (u64, u64)) {
    count("otlp_exports_total", &[], sent);
    count("otlp_export_failures_total", &[], failed);
}

fn run(snapshot: &Snapshot) {
    let policy = &snapshot.policy;
    let dry_run = if policy.dry_run { "true" } else { "false" };
    let labels: Labels<'_> = &[
        ("version", &snapshot.version),
        ("policy", &policy.name),
        ("variant", &policy.variant),
        ("enforcement", &policy.enforcement),
        ("actuator", &policy.actuator),
        ("dry_run", dry_run),
    ];
    set("info", labels, Some(1.0));
    set("start_time_seconds", &[], Some(snapshot.started_at));
    set("look_time_seconds", &[], Some(snapshot.now));
    set("node_cpus", &[], Some(snapshot.node.cpus));
    set("node_memory_bytes", &[], Some(snapshot.node.memory));
    set("node_cpu_ratio", &[], snapshot.node.cpu);
    for (standing, name) in STANDINGS {
        let having = snapshot.jobs.iter().filter(|job| job.standing == standing).count();
        set("jobs", &[("standing", name)], whole(having));
    }
    set("jobs_omitted", &[], whole(snapshot.jobs.len().saturating_sub(MAX_JOBS)));
    let decision = snapshot.decision.as_ref();
    count("decisions_total", &[], decision.map_or(0, |decision| decision.number));
    set("decision_interval_seconds", &[], decision.map(|decision| decision.interval));
}

fn cost(snapshot: &Snapshot) {
    let cost = &snapshot.cost;
    set("cpu_seconds_total", &[], Some(cost.cpu_seconds));
    set("memory_bytes", &[], cost.memory);
    count("limit_writes_total", &[], cost.writes);
    count("limit_write_failures_total", &[], cost.failed_writes);
    set("limit_write_seconds_total", &[], Some(cost.write_seconds));
    count("limit_drifts_total", &[], cost.drifts);
    count("moves_total", &[], cost.moves);
    count("move_failures_total", &[], cost.failed_moves);
    set("move_seconds_total", &[], Some(cost.move_seconds));
    for (guard, actions) in &cost.guard_actions {
        count("guard_actions_total", &[("guard", guard)], *actions);
    }
}

fn one(job: &JobView) {
    let name = ("job_name", job.job.as_str());
    let own: Labels<'_> = &[name];
    set("job_info", &[name, ("container", &job.container), ("container_name", &job.name)], ONE);
    for (standing, text) in STANDINGS {
        let has = if job.standing == standing { ONE } else { ZERO };
        set("job_standing", &[name, ("standing", text)], has);
    }
    set("job_trouble", own, if job.trouble.is_some() { ONE } else { ZERO });
    for (tier, target) in
        [("acceptable", job.targets.acceptable), ("objective", job.targets.objective)]
    {
        set("job_target_loss", &[name, ("tier", tier)], target);
    }
    let step = job.step.and_then(|step| u32::try_from(step).ok()).map(f64::from);
    for (family, value) in [
        ("job_loss", job.last_loss),
        ("job_batch_latency_seconds", job.batch_latency),
        ("job_target_batch_latency_seconds", job.targets.batch_latency),
        ("job_step", step),
        ("job_reported_time_seconds", job.reported_at),
        ("job_limit_ratio", job.limit),
        ("job_chosen_ratio", job.chosen),
        ("job_min_ratio", job.min),
        ("job_max_ratio", job.max),
        ("job_cpu_ratio", job.cpu),
        ("job_throttled_ratio", job.throttled),
        ("job_memory_bytes", job.memory),
        ("job_memory_peak_bytes", job.memory_peak),
        ("job_block_io_bytes_total", job.blkio),
        ("job_network_bytes_total", job.net),
        ("job_score", job.score),
        ("job_work_left_seconds", job.work_left),
        ("job_expected_end_time_seconds", job.ends_at),
        ("job_fair_end_time_seconds", job.fair_ends_at),
    ] {
        set(family, own, value);
    }
}

const ONE: Option<f64> = Some(1.0);
const ZERO: Option<f64> = Some(0.0);

fn set(name: &str, labels: Labels<'_>, value: Option<f64>) {
    if let Some(value) = value.filter(|value| value.is_finite()) {
        gauge!(format!("{PREFIX}{name}"), bounded(labels)).set(value);
    }
}

fn count(name: &str, labels: Labels<'_>, value: u64) {
    counter!(format!("{PREFIX}{name}"), bounded(labels)).absolute(value);
}

/// Labels with their values cut to the allowed length.
fn bounded(labels: Labels<'_>) -> Vec<Label> {
    let cut = |text: &str| text.chars().take(MAX_LABEL_LEN).collect::<String>();
    labels.iter().map(|(name, text)| Label::new(*name, cut(text))).collect()
}

fn whole(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}
