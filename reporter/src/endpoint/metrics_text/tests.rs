use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use paceline_wire::{Checkpoint, ForecastSteps};
use proptest::prelude::*;

use super::writer::escaped;
use super::*;
use crate::bell::Bell;
use crate::hot::clock::Clock;
use crate::hot::ledger::Entry;
use crate::job::Job;
use crate::settings::Settings;

fn job(settings: Settings) -> Job {
    Job::new(settings, Bell::new().unwrap().0)
}

fn enter(job: &Job, loss: Option<f64>, took: Duration) {
    job.ledger().enter(Entry { loss, took: Some(took) }, Clock::now());
}

fn rendered(job: &Job) -> String {
    rendered_as(job, Format::Prometheus)
}

fn rendered_as(job: &Job, format: Format) -> String {
    let (progress, durations) = job.read();
    render(&progress, &durations, format)
}

fn busy_job() -> Job {
    let mut settings = Settings::new("a \"b\"\\c\nd".to_owned());
    settings.dataset = Some("MNIST".to_owned());
    settings.targets.acceptable = Some(120.0);
    settings.targets.objective = Some(110.5);
    let job = job(settings);
    for (loss, millis) in [(118.0, 2), (119.0, 40), (f64::NAN, 700_000)] {
        enter(&job, Some(loss), Duration::from_millis(millis));
    }
    job.set_epoch(3);
    job
}

/// The name of the family that a sample belongs to.
fn family(sample: &str) -> &str {
    let name = sample.split(['{', ' ']).next().unwrap();
    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

#[test]
fn every_sample_follows_the_help_and_type_of_its_family() {
    let text = rendered(&busy_job());
    let mut kinds = BTreeMap::new();
    let mut helps = BTreeSet::new();
    let mut open = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            open = help.split_once(' ').unwrap().0;
            assert!(helps.insert(open), "{open} has two families");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, open);
            kinds.insert(name, kind);
        } else {
            assert_eq!(family(line), open, "{line}");
            assert!(kinds.contains_key(open), "{line}");
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        }
    }
    for (name, kind) in kinds {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
    }
    assert!(text.ends_with('\n'));
}

#[test]
fn openmetrics_has_the_same_samples_and_an_end() {
    let job = busy_job();
    let [plain, open] =
        [Format::Prometheus, Format::OpenMetrics].map(|format| rendered_as(&job, format));
    let whole = open.strip_suffix("# EOF\n").unwrap();
    let samples = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let bounds = |line: &String| line.contains("le=\"");
    let same =
        |text: &str| samples(text).into_iter().filter(|line| !bounds(line)).collect::<Vec<_>>();
    assert_eq!(same(whole), same(&plain));
    assert_eq!(samples(whole).iter().filter(|line| bounds(line)).count(), BOUNDS.len() + 1);
    for line in [
        "# TYPE paceline_steps counter",
        "# HELP paceline_steps Steps that were made.",
        "paceline_steps_total 3",
        "# TYPE paceline_batch_duration_seconds histogram",
        "paceline_batch_duration_seconds_bucket{le=\"0.05\"} 2",
        "paceline_batch_duration_seconds_bucket{le=\"600.0\"} 2",
        "paceline_batch_duration_seconds_bucket{le=\"+Inf\"} 3",
    ] {
        assert!(whole.lines().any(|known| known == line), "{line} is not in\n{open}");
    }
    let families = whole.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    assert!(
        families.clone().count() > 20 && !families.clone().any(|name| name.contains("_total "))
    );
}

#[test]
fn samples_match_reports() {
    let text = rendered(&busy_job());
    for line in [
        "paceline_loss 118.5",
        "paceline_loss_reports_total 2",
        "paceline_steps_total 3",
        "paceline_reports_rejected_total 1",
        "paceline_reports_dropped_total 0",
        "paceline_epoch 3",
        "paceline_target_loss{tier=\"acceptable\"} 120",
        "paceline_target_loss{tier=\"objective\"} 110.5",
        "paceline_batch_duration_seconds_bucket{le=\"0.001\"} 0",
        "paceline_batch_duration_seconds_bucket{le=\"0.002\"} 1",
        "paceline_batch_duration_seconds_bucket{le=\"0.05\"} 2",
        "paceline_batch_duration_seconds_bucket{le=\"600\"} 2",
        "paceline_batch_duration_seconds_bucket{le=\"+Inf\"} 3",
        "paceline_batch_duration_seconds_count 3",
        "paceline_batch_duration_seconds_sum 700.042",
        "paceline_state{state=\"running\"} 1",
        "paceline_state{state=\"failed\"} 0",
        "paceline_checkpoints_requested_total 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    let info = format!(
        "paceline_job_info{{job=\"a \\\"b\\\"\\\\c\\nd\",loss=\"loss\",direction=\"minimize\",\
         source=\"reporter\",version=\"{}\",dataset=\"MNIST\"}} 1",
        env!("CARGO_PKG_VERSION"),
    );
    assert!(text.lines().any(|known| known == info), "{info} is not in\n{text}");
}

#[test]
fn forecast_is_shown_in_seconds_and_in_steps_by_quantile() {
    let (mut progress, durations) = job(Settings::new("vae".to_owned())).read();
    progress.signals.to_objective = Some(Forecast {
        seconds: Some(60.0),
        low: Some(20.5),
        high: None,
        steps: Some(ForecastSteps { low: Some(205.0), median: Some(600.0), high: None }),
    });
    let text = render(&progress, &durations, Format::Prometheus);
    let expected = [
        "paceline_objective_eta_seconds{quantile=\"0.1\"} 20.5",
        "paceline_objective_eta_seconds{quantile=\"0.5\"} 60",
        "paceline_objective_remaining_steps{quantile=\"0.1\"} 205",
        "paceline_objective_remaining_steps{quantile=\"0.5\"} 600",
    ];
    let shown: Vec<_> = text.lines().filter(|line| line.contains("quantile=")).collect();
    assert_eq!(shown, expected);
}

#[test]
fn last_checkpoint_and_written_points_are_shown() {
    let (mut progress, durations) = job(Settings::new("vae".to_owned())).read();
    let before = render(&progress, &durations, Format::Prometheus);
    assert!(!before.contains("paceline_tensorboard"), "{before}");
    assert!(!before.lines().any(|line| line.starts_with("paceline_last_checkpoint")), "{before}");
    progress.checkpoint =
        Checkpoint { step: Some(1200), at: Some(1_760_000_041.5), ..Checkpoint::default() };
    progress.tensorboard = Some(Forward { sent: 7, failed: 2, dropped: 1, ..Forward::default() });
    let text = render(&progress, &durations, Format::Prometheus);
    for line in [
        "paceline_last_checkpoint_timestamp_seconds 1760000041.5",
        "paceline_last_checkpoint_step 1200",
        "paceline_tensorboard_points_total 7",
        "paceline_tensorboard_failures_total 2",
        "paceline_tensorboard_points_dropped_total 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
}

#[test]
fn unknown_value_has_no_sample() {
    let text = rendered(&job(Settings::new("vae".to_owned())));
    for name in ["paceline_loss", "paceline_epoch", "paceline_target_loss"] {
        assert!(!text.lines().any(|line| family(line) == name), "{text}");
    }
}

#[test]
fn the_bounds_are_bounds_of_the_finer_histogram() {
    for bound in BOUNDS.map(Duration::from_millis) {
        let job = job(Settings::new("vae".to_owned()));
        enter(&job, None, bound);
        enter(&job, None, bound + Duration::from_nanos(1));
        let nanos = u64::try_from(bound.as_nanos()).unwrap();
        assert_eq!(job.read().1.at_most(nanos), 1, "{bound:?}");
    }
}

proptest! {
    #[test]
    fn an_escaped_label_reads_back_and_stays_on_its_line(text in any::<String>()) {
        let written = escaped(&text);
        let mut read = String::new();
        let mut left = written.chars();
        while let Some(next) = left.next() {
            prop_assert!(next != '"' && next != '\n');
            read.push(match next {
                '\\' => match left.next().unwrap() { 'n' => '\n', other => other },
                other => other,
            });
        }
        prop_assert_eq!(read, text);
    }
}

#[test]
fn forwards_are_counted_for_each_target_and_absent_without() {
    let job = busy_job();
    let (mut progress, durations) = job.read();
    assert!(!render(&progress, &durations, Format::Prometheus).contains("paceline_forward"));
    let forward =
        |name: &str, sent| Forward { name: name.to_owned(), sent, failed: 2, ..Forward::default() };
    let forwards = vec![forward("katib", 3), forward("on:failed", 0)];
    progress.sidecar = Some(paceline_wire::Sidecar { forwards, ..Default::default() });
    let text = render(&progress, &durations, Format::Prometheus);
    for line in [
        "# TYPE paceline_forward_sent_total counter",
        "paceline_forward_sent_total{target=\"katib\"} 3",
        "paceline_forward_failed_total{target=\"on:failed\"} 2",
        "paceline_forward_dropped_total{target=\"katib\"} 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing in {text}");
    }
}
