//! The latest figures in the text format of Prometheus.
//!
//! Each answer is written from the latest snapshot alone. So a gone job has no series, and the
//! number of series is bounded by the snapshot.

mod families;
mod write;

use metrics_exporter_prometheus::PrometheusBuilder;
use paceline_api::live::Snapshot;

use families::{FAMILIES, Kind};

/// The common prefix of all names.
const PREFIX: &str = "paceline_allocator_";

/// The text for `snapshot`; `decided` gives the number of decisions on a job. `exports` are the messages
/// that an OpenTelemetry receiver has taken, and the others.
pub(super) fn render(
    snapshot: &Snapshot,
    decided: impl Fn(&str) -> u64,
    exports: (u64, u64),
) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        for (name, kind, help) in FAMILIES {
            let name = format!("{PREFIX}{name}");
            match kind {
                Kind::Gauge | Kind::Sum => metrics::describe_gauge!(name, help),
                Kind::Counter => metrics::describe_counter!(name, help),
            }
        }
        write::all(snapshot, decided);
        write::exports(exports);
    });
    sums_as_counters(recorder.handle().render())
}

/// Declares fractional sums as counters. The `metrics` crate has only integer counters, so sums are
/// kept as gauges.
fn sums_as_counters(text: String) -> String {
    let sums = FAMILIES.iter().filter(|(_, kind, _)| *kind == Kind::Sum);
    sums.fold(text, |text, (name, ..)| {
        let line = |kind: &str| format!("# TYPE {PREFIX}{name} {kind}\n");
        text.replacen(&line("gauge"), &line("counter"), 1)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::web::tests::example::example;

    /// All names.
    pub(in crate::web) fn names() -> BTreeSet<String> {
        FAMILIES.iter().map(|(name, ..)| format!("{PREFIX}{name}")).collect()
    }

    fn rendered(snapshot: &Snapshot) -> String {
        render(snapshot, |_| 7, (0, 0))
    }

    #[test]
    fn every_family_has_samples_help_and_a_type() {
        let text = rendered(&example(0.0));
        let mut seen = BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            seen.extend(line.split(['{', ' ']).next().map(str::to_owned));
        }
        assert_eq!(seen, names());
        for name in names() {
            assert_eq!(text.matches(&format!("# HELP {name} ")).count(), 1, "{name}");
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(text.matches(&format!("# TYPE {name} {kind}\n")).count(), 1, "{name}");
        }
    }

    #[test]
    fn gone_job_has_no_series() {
        let mut snapshot = example(0.0);
        assert!(rendered(&snapshot).contains("job_name=\"vae\""));
        snapshot.jobs.retain(|job| job.job != "vae");
        assert!(!rendered(&snapshot).contains("\"vae\""));
    }

    #[test]
    fn unknown_value_has_no_sample() {
        let mut snapshot = example(0.0);
        snapshot.jobs[0].limit = None;
        snapshot.jobs[0].cpu = Some(f64::NAN);
        let text = rendered(&snapshot);
        let name = &snapshot.jobs[0].job;
        for family in ["job_limit_ratio", "job_cpu_ratio"] {
            assert!(!text.contains(&format!("{PREFIX}{family}{{job_name=\"{name}\"}}")));
        }
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn sums_keep_their_fractions() {
        let text = rendered(&example(0.0));
        assert!(text.contains("\npaceline_allocator_cpu_seconds_total 12.25\n"), "{text}");
    }

    #[test]
    fn series_are_bounded_and_omitted_jobs_counted() {
        let mut snapshot = example(0.0);
        let job = snapshot.jobs[0].clone();
        snapshot.jobs = (0..2000)
            .map(|number| paceline_api::live::snapshot::JobView {
                job: format!("{}{number}", "x".repeat(1000)),
                ..job.clone()
            })
            .collect();
        let text = rendered(&snapshot);
        assert!(text.contains("\npaceline_allocator_jobs_omitted 1488\n"));
        assert!(text.lines().all(|line| line.len() < 400));
    }
}
