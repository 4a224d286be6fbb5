//! Trains a small network on made-up digits and reports it.
//!
//! While it runs, `curl -s http://127.0.0.1:7223/v1/progress` shows its progress.

mod digits;

use burn::tensor::Device;
use burn::train::SupervisedTraining;
use burn::train::metric::{AccuracyMetric, LossMetric};
use paceline_burn::PacelineRenderer;
use paceline_reporter::Reporter;

use crate::digits::{BATCH, Digits, learner, loader};

/// The most epochs.
const EPOCHS: usize = 20;
/// A whole number of batches.
const IMAGES: usize = 128 * BATCH;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let reporter = Reporter::builder("digits")
        .loss_name("cross entropy")
        .acceptable(0.5)
        .objective(0.1)
        .stop_at_objective()
        .total_steps(u64::try_from(EPOCHS * IMAGES / BATCH)?)
        .from_env()
        .start()?;

    let folder = tempfile::tempdir()?;
    let training = SupervisedTraining::new(
        folder.path(),
        loader(Digits::new(IMAGES, 1)),
        loader(Digits::new(512, 2)),
    )
    .metrics((LossMetric::new(), AccuracyMetric::new()))
    .num_epochs(EPOCHS);
    let renderer = PacelineRenderer::new(reporter, training.interrupter());
    let result = training.renderer(Box::new(renderer)).launch(learner(&device));

    result.error.map_or(Ok(()), |error| Err(error.to_string().into()))
}
