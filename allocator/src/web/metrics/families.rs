//! What figures there are, in words. A ratio is a fraction of the node's CPUs.

/// How a figure changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It counts.
    Counter,
    /// It only grows, and is no whole number.
    Sum,
}
use Kind::{Counter, Gauge, Sum};

/// The names without their common beginning, and what they mean.
pub(super) const FAMILIES: [(&str, Kind, &str); 47] = [
    ("info", Gauge, "The run: version, policy and how it is enforced."),
    ("start_time_seconds", Gauge, "When the run began, in Unix seconds."),
    ("look_time_seconds", Gauge, "When the jobs were last looked at, in Unix seconds."),
    ("node_cpus", Gauge, "CPUs of the node."),
    ("node_memory_bytes", Gauge, "Memory of the node."),
    ("node_cpu_ratio", Gauge, "Use of CPU by everything on the node."),
    ("jobs", Gauge, "Containers that opted in, by standing."),
    ("jobs_omitted", Gauge, "Jobs without figures of their own here, since there are too many."),
    ("decisions_total", Counter, "Runs of the policy."),
    ("decision_interval_seconds", Gauge, "Time between the last run of the policy and the next."),
    ("cpu_seconds_total", Sum, "The allocator's own CPU time."),
    ("memory_bytes", Gauge, "The allocator's own memory."),
    ("limit_writes_total", Counter, "Limits written."),
    ("limit_write_failures_total", Counter, "Limits that could not be written."),
    ("limit_write_seconds_total", Sum, "Time spent in writing limits."),
    ("limit_drifts_total", Counter, "Limits found to be another's than what was written."),
    ("moves_total", Counter, "Jobs moved to another node."),
    ("move_failures_total", Counter, "Moves that came to nothing."),
    ("move_seconds_total", Sum, "Time without progress that jobs have lost by moves."),
    ("guard_actions_total", Counter, "How often a guard of the limiter acted."),
    (
        "shadow_distance_ratio",
        Gauge,
        "Mean distance of a shadow's last choices from those in force.",
    ),
    ("shadow_decisions_total", Counter, "Decisions of a shadow."),
    (
        "shadow_disagreements_total",
        Counter,
        "Decisions of a shadow with another share for some job.",
    ),
    ("job_info", Gauge, "A job's container."),
    ("job_standing", Gauge, "1 for the standing that the job has, 0 for the others."),
    ("job_trouble", Gauge, "1 if something keeps the job or its figures away, else 0."),
    ("job_decisions_total", Counter, "Decisions on a job, since it was first seen."),
    ("job_loss", Gauge, "The last loss that was seen."),
    ("job_target_loss", Gauge, "A target for the loss, by tier."),
    ("job_batch_latency_seconds", Gauge, "Mean duration of a batch since the look before."),
    ("job_target_batch_latency_seconds", Gauge, "The target for a batch's duration."),
    ("job_step", Gauge, "The number of the last step."),
    ("job_reported_time_seconds", Gauge, "When the job last reported a loss, in Unix seconds."),
    ("job_limit_ratio", Gauge, "The limit in force; 1 is none."),
    ("job_chosen_ratio", Gauge, "What the policy chose last."),
    ("job_min_ratio", Gauge, "The least that the job is given."),
    ("job_max_ratio", Gauge, "The most that the job is given."),
    ("job_cpu_ratio", Gauge, "Mean use of CPU since the look before."),
    ("job_throttled_ratio", Gauge, "Share of the time at the cap since the look before."),
    ("job_memory_bytes", Gauge, "Memory in use."),
    ("job_memory_peak_bytes", Gauge, "The most memory so far."),
    ("job_block_io_bytes_total", Sum, "Bytes of block I/O since the container began."),
    ("job_network_bytes_total", Sum, "Bytes over the network since the container began."),
    ("job_score", Gauge, "The figure that the policy classed the job by."),
    ("job_work_left_seconds", Gauge, "Work left, in seconds of the whole node."),
    ("job_expected_end_time_seconds", Gauge, "When the job is expected to end, in Unix seconds."),
    (
        "job_fair_end_time_seconds",
        Gauge,
        "When the job would end if all shared the node equally, in Unix seconds.",
    ),
];
