//! The metrics and their help texts. A ratio is a fraction of the node's CPUs.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A whole number that only grows.
    Counter,
    /// A fractional number that only grows.
    Sum,
}
use Kind::{Counter, Gauge, Sum};

/// Each metric's name without the common prefix, its kind and its help text.
pub(super) const FAMILIES: [(&str, Kind, &str); 49] = [
    ("info", Gauge, "Version, policy and enforcement of the run."),
    ("start_time_seconds", Gauge, "When the run began, in Unix seconds."),
    ("look_time_seconds", Gauge, "When the jobs were last sampled, in Unix seconds."),
    ("node_cpus", Gauge, "CPUs of the node."),
    ("node_memory_bytes", Gauge, "Memory of the node."),
    ("node_cpu_ratio", Gauge, "CPU used by all processes of the node."),
    ("jobs", Gauge, "Containers that opted in, by standing."),
    ("jobs_omitted", Gauge, "Jobs without metrics of their own, because there are too many."),
    ("decisions_total", Counter, "Runs of the policy."),
    ("decision_interval_seconds", Gauge, "Time between the last run of the policy and the next."),
    ("cpu_seconds_total", Sum, "The allocator's own CPU time."),
    ("memory_bytes", Gauge, "The allocator's own memory."),
    ("limit_writes_total", Counter, "Limits written."),
    ("limit_write_failures_total", Counter, "Limits that failed to be written."),
    ("limit_write_seconds_total", Sum, "Time spent writing limits."),
    ("limit_drifts_total", Counter, "Limits found to differ from what was written."),
    ("moves_total", Counter, "Jobs moved to another node."),
    ("move_failures_total", Counter, "Failed moves."),
    ("move_seconds_total", Sum, "Time without progress that moves have cost jobs."),
    ("guard_actions_total", Counter, "How often a guard of the limiter acted."),
    (
        "shadow_distance_ratio",
        Gauge,
        "Mean distance between a shadow policy's last choices and those in force.",
    ),
    ("shadow_decisions_total", Counter, "Decisions of a shadow policy."),
    (
        "shadow_disagreements_total",
        Counter,
        "Decisions of a shadow policy that gave some job another share.",
    ),
    ("otlp_exports_total", Counter, "Messages that an OpenTelemetry receiver has taken."),
    (
        "otlp_export_failures_total",
        Counter,
        "Messages that an OpenTelemetry receiver has not taken as a whole.",
    ),
    ("job_info", Gauge, "A job's container."),
    ("job_standing", Gauge, "1 for the standing that the job has, 0 for the others."),
    ("job_trouble", Gauge, "1 if the job or its figures have a problem, else 0."),
    ("job_decisions_total", Counter, "Decisions on a job, since it was first seen."),
    ("job_loss", Gauge, "The last loss reported."),
    ("job_target_loss", Gauge, "A target for the loss, by tier."),
    ("job_batch_latency_seconds", Gauge, "Mean duration of a batch since the previous sample."),
    ("job_target_batch_latency_seconds", Gauge, "The target for a batch's duration."),
    ("job_step", Gauge, "The number of the last step."),
    ("job_reported_time_seconds", Gauge, "When the job last reported a loss, in Unix seconds."),
    ("job_limit_ratio", Gauge, "The limit in force; 1 is none."),
    ("job_chosen_ratio", Gauge, "The share that the policy chose last."),
    ("job_min_ratio", Gauge, "The smallest share that the job may get."),
    ("job_max_ratio", Gauge, "The largest share that the job may get."),
    ("job_cpu_ratio", Gauge, "Mean CPU use since the previous sample."),
    ("job_throttled_ratio", Gauge, "Share of the time at the cap since the previous sample."),
    ("job_memory_bytes", Gauge, "Memory in use."),
    ("job_memory_peak_bytes", Gauge, "The most memory so far."),
    ("job_block_io_bytes_total", Sum, "Bytes of block I/O since the container began."),
    ("job_network_bytes_total", Sum, "Bytes over the network since the container began."),
    ("job_score", Gauge, "The figure by which the policy classified the job."),
    ("job_work_left_seconds", Gauge, "Work left, in seconds of the whole node."),
    ("job_expected_end_time_seconds", Gauge, "When the job is expected to end, in Unix seconds."),
    (
        "job_fair_end_time_seconds",
        Gauge,
        "When the job would end if all jobs shared the node equally, in Unix seconds.",
    ),
];
