//! Makes the calls that Burn would make.

mod call_recorder;
mod client;

use std::sync::{Arc, Mutex};

use burn::train::Interrupter;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{
    MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericEntry, SerializedEntry,
};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use call_recorder::CallRecorder;
use client::progress;
use paceline_burn::PacelineRenderer;
use paceline_reporter::Reporter;
use paceline_wire::{Activity, State};

/// A renderer, and everything to observe it by.
struct TestEnv {
    renderer: PacelineRenderer,
    reporter: Reporter,
    interrupter: Interrupter,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

/// A training from its 4th epoch on, with the metrics `Loss` and `Other`.
fn started() -> TestEnv {
    let reporter =
        Reporter::builder("by hand").listen("127.0.0.1:0").start().expect("a port is free");
    let (interrupter, calls) = (Interrupter::new(), Arc::new(Mutex::new(Vec::with_capacity(4096))));
    let mut renderer = PacelineRenderer::around(
        Box::new(CallRecorder::new(Arc::clone(&calls))),
        reporter.clone(),
        interrupter.clone(),
    );
    for name in ["Other", "Loss"] {
        renderer.register_metric(MetricDefinition {
            metric_id: id(name),
            name: Arc::new(name.to_owned()),
            description: None,
            attributes: MetricAttributes::None,
        });
    }
    renderer.start(9, 4, Some(64), Some("a label"));
    TestEnv { renderer, reporter, interrupter, calls }
}

fn id(metric: &str) -> MetricId {
    MetricId::new(Arc::new(metric.to_owned()))
}

fn state(metric: &str, entry: NumericEntry) -> MetricState {
    let serialized = SerializedEntry::new(String::new(), entry.serialize());
    MetricState::Numeric(MetricEntry::new(id(metric), serialized), Some(entry))
}

fn value(metric: &str, value: f64) -> MetricState {
    state(metric, NumericEntry::Value(value))
}

#[test]
fn the_renderer_inside_gets_every_call() {
    let TestEnv { mut renderer, calls, .. } = started();
    let name = || EvaluationName::new("test");
    renderer.start_split("train", 64);
    renderer.update_train(value("Loss", 1.0));
    renderer.update_split(32);
    renderer.log_event_training("Iteration".to_owned());
    renderer.end_split();
    renderer.update_valid(value("Loss", 1.0));
    renderer.update_epoch(4);
    renderer.end();
    renderer.on_train_end(None).unwrap();
    renderer.manual_close();
    renderer.start_global_progress(1);
    renderer.start_test("test", 64);
    renderer.update_test(name(), value("Loss", 1.0));
    renderer.update_test_progress(64);
    renderer.log_event_evaluation("Iteration".to_owned());
    renderer.end_test();
    renderer.end_global_progress();
    renderer.on_test_end(None).unwrap();
    let calls = calls.lock().unwrap().join(" ");
    assert_eq!(
        calls,
        "register_metric register_metric start start_split update_train update_split \
         log_event_training end_split update_valid update_epoch end on_train_end manual_close \
         start_global_progress start_test update_test update_test_progress log_event_evaluation \
         end_test end_global_progress on_test_end",
    );
}

#[test]
fn the_loss_is_the_metric_of_that_name_and_nothing_else() {
    let TestEnv { mut renderer, reporter, .. } = started();
    renderer.start_split("train", 64);
    renderer.update_train(value("Loss", 2.0));
    renderer.update_train(value("Other", 7.0));
    renderer.update_train(MetricState::Generic(MetricEntry::new(
        id("Loss"),
        SerializedEntry::new(String::new(), "9".to_owned()),
    )));
    renderer.update_split(32);
    renderer
        .update_train(state("Loss", NumericEntry::Aggregated { aggregated_value: 1.0, count: 32 }));
    renderer.update_split(64);
    renderer.update_train(state("Loss", NumericEntry::Final(1.5)));
    renderer.end_split();
    let read = progress(&reporter);
    assert_eq!((read.epoch, read.step, read.batch_latency.count), (Some(4), Some(2), 2));
    assert_eq!((read.eval.sum, read.validation), (3.0, None));
}

#[test]
fn another_metric_may_be_the_loss() {
    let TestEnv { renderer, reporter, .. } = started();
    let mut renderer = renderer.loss("Cross entropy");
    renderer.register_metric(MetricDefinition {
        metric_id: id("Cross entropy"),
        name: Arc::new("Cross entropy".to_owned()),
        description: None,
        attributes: MetricAttributes::None,
    });
    renderer.start_split("train", 64);
    renderer.update_train(value("Cross entropy", 4.0));
    renderer.update_train(value("Loss", 2.0));
    renderer.update_split(32);
    assert_eq!(progress(&reporter).eval.first, Some(4.0));
}

#[test]
fn a_batch_without_a_loss_counts_for_the_latency_alone() {
    let TestEnv { mut renderer, reporter, .. } = started();
    renderer.start_split("train", 64);
    renderer.update_train(value("Loss", f64::NAN));
    renderer.update_split(32);
    renderer.update_split(64);
    let read = progress(&reporter);
    assert_eq!((read.step, read.rejected, read.batch_latency.count), (Some(1), 1, 2));
}

#[test]
fn a_validation_has_one_loss_that_of_the_whole_split() {
    let TestEnv { mut renderer, reporter, .. } = started();
    renderer.start_split("valid", 64);
    for (loss, items) in [(8.0, 32), (6.0, 64)] {
        renderer.update_valid(value("Loss", loss));
        renderer.update_split(items);
    }
    assert_eq!(progress(&reporter).validation, None);
    renderer.update_valid(state("Loss", NumericEntry::Final(7.0)));
    renderer.update_valid(state("Other", NumericEntry::Final(1.0)));
    renderer.end_split();
    renderer.update_epoch(4);
    renderer.start_split("train", 32);
    let read = progress(&reporter);
    assert_eq!(
        read.validation.map(|validation| (validation.value, validation.count)),
        Some((7.0, 1))
    );
    assert_eq!((read.epoch, read.step, read.batch_latency.count), (Some(5), None, 0));
}

#[test]
fn no_step_is_expected_during_a_validation_or_a_test() {
    let TestEnv { mut renderer, reporter, .. } = started();
    let becomes = |activity| assert_eq!(progress(&reporter).signals.activity, activity);
    renderer.start_split("train", 32);
    renderer.update_train(value("Loss", 2.0));
    renderer.update_split(32);
    renderer.end_split();
    becomes(Activity::Training);
    renderer.start_split("valid", 64);
    renderer.update_split(32);
    becomes(Activity::Evaluating);
    renderer.end_split();
    becomes(Activity::Training);
    renderer.start_test("first", 64);
    renderer.start_test("second", 64);
    becomes(Activity::Evaluating);
    renderer.end_test();
    becomes(Activity::Training);
}

#[test]
fn a_validation_that_is_left_early_has_no_loss() {
    let TestEnv { mut renderer, reporter, interrupter, .. } = started();
    renderer.start_split("valid", 64);
    renderer.update_split(32);
    interrupter.stop(None);
    renderer.update_valid(state("Loss", NumericEntry::Final(7.0)));
    renderer.end_split();
    renderer.end();
    let read = progress(&reporter);
    assert_eq!((read.validation, read.state), (None, State::Finished));
}

#[test]
fn renderer_dropped_during_training_reports_a_failure() {
    let TestEnv { mut renderer, reporter, .. } = started();
    renderer.start_split("train", 64);
    drop(renderer);
    let read = progress(&reporter);
    assert_eq!((read.state, read.batch_latency.count), (State::Failed, 0));
}

#[test]
fn a_batch_allocates_nothing() {
    let TestEnv { mut renderer, reporter, .. } = started();
    let states: Vec<_> = (0..1000).map(|_| value("Loss", 1.0)).collect();
    renderer.start_split("train", 1000);
    let counted = allocation_counter::measure(|| {
        for state in states {
            renderer.update_train(state);
            renderer.update_split(1);
        }
    });
    assert_eq!((counted.count_total, progress(&reporter).step), (0, Some(1000)));
}
