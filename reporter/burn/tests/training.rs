//! Real trainings, followed over HTTP.

mod client;
#[path = "../examples/digits/digits.rs"]
mod digits;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{fmt, fs};

use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::Device;
use burn::train::metric::{AccuracyMetric, LossMetric, NumericEntry};
use burn::train::{LearningResult, SupervisedTraining};
use client::progress;
use digits::{BATCH, Digit, Digits, Network, learner, loader};
use paceline_burn::PacelineRenderer;
use paceline_reporter::{Builder, Reporter};
use paceline_wire::State;

const IMAGES: usize = 200;
/// Batches of an epoch; the last one is smaller.
const BATCHES: u64 = 7;
const _: () = assert!(IMAGES.div_ceil(BATCH) == 7);

fn reporter(set: impl FnOnce(Builder) -> Builder) -> Reporter {
    set(Reporter::builder("digits").listen("127.0.0.1:0")).start().expect("a port is free")
}

fn train(
    folder: &Path,
    reporter: &Reporter,
    images: impl Dataset<Digit> + 'static,
) -> LearningResult<Network> {
    let training = SupervisedTraining::new(folder, loader(images), loader(Digits::new(100, 2)))
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .with_application_logger(None)
        .num_epochs(3);
    let renderer = PacelineRenderer::new(reporter.clone(), training.interrupter());
    training.renderer(Box::new(renderer)).launch(learner(&Device::flex().autodiff()))
}

/// Burn's log of an epoch: the loss of every batch, and that of the epoch.
fn logged(folder: &Path, split: &str, epoch: u64) -> (Vec<f64>, f64) {
    let path = folder.join(split).join(format!("epoch-{epoch}")).join("Loss.log");
    let text = fs::read_to_string(path).expect("Burn has logged the epoch");
    let entry = |line| NumericEntry::deserialize(line).expect("Burn reads its own log");
    let mut losses: Vec<f64> = text.lines().map(|line| entry(line).current()).collect();
    let last = losses.pop().expect("there is a line");
    (losses, last)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

#[test]
fn progress_over_http_agrees_with_burns_log() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = reporter(|builder| builder.total_steps(3 * BATCHES));
    assert_eq!(progress(&reporter).state, State::Starting);
    let result = train(folder.path(), &reporter, Digits::new(IMAGES, 1));
    assert!(result.error.is_none() && result.interrupted.is_none());

    let read = progress(&reporter);
    let losses: Vec<f64> =
        (1..=3).flat_map(|epoch| logged(folder.path(), "train", epoch).0).collect();
    let validations: Vec<f64> =
        (1..=3).map(|epoch| logged(folder.path(), "valid", epoch).1).collect();
    println!("Burn: {} losses, {losses:?}, validation {validations:?}", losses.len());
    println!("HTTP: {}", serde_json::to_string_pretty(&read).unwrap());

    assert_eq!((read.state, read.epoch), (State::Finished, Some(3)));
    assert_eq!((read.step, read.total_steps), (Some(3 * BATCHES), Some(3 * BATCHES)));
    assert_eq!((read.eval.count, losses.len()), (21, 21));
    assert_eq!(read.eval.first, losses.first().copied());
    assert!(close(read.eval.sum, losses.iter().sum()));
    assert!(close(read.eval.value.unwrap(), losses[16..].iter().sum::<f64>() / 5.0));
    assert_eq!(read.eval.best, losses.iter().copied().reduce(f64::min));
    let validation = read.validation.unwrap();
    assert_eq!((validation.count, Some(&validation.value)), (3, validations.last()));
    assert_eq!(Some(validation.best), validations.iter().copied().reduce(f64::min));
    assert_eq!((read.batch_latency.count, read.dropped, read.rejected), (21, 0, 0));
    assert!(read.batch_latency.sum > 0.0 && read.batch_latency.sum < read.now - read.started_at);
}

#[test]
fn a_reached_objective_stops_the_training_if_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let any_loss = |builder: Builder| builder.objective(1e9).stop_at_objective();
    let reporter = reporter(any_loss);
    let result = train(folder.path(), &reporter, Digits::new(IMAGES, 1));
    let reason = result.interrupted.expect("it was stopped").reason.expect("with a reason");
    assert!(reason.contains("objective"), "{reason}");
    let read = progress(&reporter);
    assert_eq!((read.state, read.epoch), (State::Finished, Some(1)));
    assert!(read.reached.objective_at.is_some() && read.validation.is_none());
    // Burn's channel holds one batch, and the training is already on the next.
    assert!((5..=8).contains(&read.step.unwrap()), "{:?}", read.step);
}

#[test]
fn a_reached_objective_stops_nothing_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = reporter(|builder| builder.objective(1e9));
    let result = train(folder.path(), &reporter, Digits::new(IMAGES, 1));
    assert!(result.interrupted.is_none());
    assert_eq!(progress(&reporter).step, Some(3 * BATCHES));
}

/// Images of an [`Unreadable`] that can be read.
const READABLE: usize = 100;

/// Images that cannot all be read.
struct Unreadable {
    digits: Digits,
    panics: bool,
}

impl Dataset<Digit> for Unreadable {
    fn get(&self, index: usize) -> Result<Digit, DatasetError> {
        assert!(!self.panics || index < READABLE, "the data set has a bug");
        if index < READABLE { self.digits.get(index) } else { Err(DatasetError::new(fmt::Error)) }
    }

    fn len(&self) -> usize {
        self.digits.len()
    }
}

#[test]
fn error_that_ends_the_training_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = reporter(|builder| builder);
    let images = Unreadable { digits: Digits::new(IMAGES, 1), panics: false };
    let result = train(folder.path(), &reporter, images);
    assert!(result.error.is_some());
    let read = progress(&reporter);
    assert_eq!((read.state, read.step, read.batch_latency.count), (State::Failed, Some(3), 3));
}

#[test]
fn panic_that_ends_the_training_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = reporter(|builder| builder);
    let images = Unreadable { digits: Digits::new(IMAGES, 1), panics: true };
    let panicked: Result<_, Box<dyn Any + Send>> =
        catch_unwind(AssertUnwindSafe(|| train(folder.path(), &reporter, images).error));
    assert!(panicked.is_err());
    // Burn's thread drops the renderer some time after the panic.
    while progress(&reporter).state == State::Running {
        std::thread::yield_now();
    }
    let read = progress(&reporter);
    assert_eq!((read.state, read.step, read.batch_latency.count), (State::Failed, Some(3), 3));
}

#[test]
fn a_disabled_reporter_leaves_the_training_alone() {
    let folder = tempfile::tempdir().unwrap();
    let result = train(folder.path(), &Reporter::disabled(), Digits::new(IMAGES, 1));
    assert!(result.error.is_none() && result.interrupted.is_none());
}
