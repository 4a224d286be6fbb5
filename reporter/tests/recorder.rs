//! The same values in the job's own recorder.

#![cfg(feature = "metrics")]

mod client;

use client::wait_until;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use paceline_reporter::Reporter;

#[test]
fn the_jobs_own_recorder_has_the_same_figures() {
    let name = Matcher::Full("paceline_batch_duration_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(name, &[60.0, 600.0]).unwrap();
    let handle = builder.install_recorder().unwrap();
    let reporter = Reporter::builder("vae").listen("127.0.0.1:0").start().unwrap();
    for loss in [3.0, 5.0, f64::NAN] {
        reporter.batch().loss(loss);
    }
    reporter.validation(7.0);
    reporter.epoch(2);
    drop(reporter);
    for line in [
        r#"paceline_loss{job="vae"} 4"#,
        r#"paceline_validation_loss{job="vae"} 7"#,
        r#"paceline_epoch{job="vae"} 2"#,
        r#"paceline_steps_total{job="vae"} 3"#,
        r#"paceline_reports_rejected_total{job="vae"} 1"#,
        r#"paceline_batch_duration_seconds_count{job="vae"} 3"#,
        r#"paceline_batch_duration_seconds_bucket{job="vae",le="60"} 3"#,
    ] {
        wait_until(line, || handle.render().lines().any(|known| known == line));
    }
}
