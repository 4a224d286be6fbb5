//! Lines of the form "value (mean)": the `imagenet` example and torchvision's references.

use paceline_lines::observation::Phase::Validation;
use paceline_lines::observation::Span::{EpochSoFar, Interval, Step};

use super::Grammar;
use super::shape::Shape;
use super::table::Table;

/// The grammars of this family.
pub(super) fn grammars() -> Vec<Box<dyn Grammar>> {
    vec![
        Box::new(imagenet()),
        Box::new(torchvision()),
        Box::new(face_swapping()),
        Box::new(depth()),
        Box::new(segmentation()),
    ]
}

fn imagenet() -> Table {
    let shapes = [
        Shape::new(
            "Epoch: [{epoch}][{batch}/{total}]\tTime {s} ({_})\tData {_} ({_})\tLoss {loss} ({_})",
        )
        .train("Loss", Step),
        // For held-out data, only the mean is useful.
        Shape::new("Test: [{_}/{_}] Time {_} ({_})\tLoss {_} ({loss})")
            .loss("Loss", Validation, EpochSoFar),
    ];
    Table::new("pytorch imagenet", shapes)
}

/// The value is the median of the last 20 batches; the time is their mean.
fn torchvision() -> Table {
    let shapes = [
        Shape::new("Epoch: [{epoch}] [{batch}/{total}] eta: {..}loss: {loss} ({_}){..}time: {s}")
            .train("loss", Interval),
        Shape::new("Test: [{_}/{_}] eta: {..}loss: {_} ({loss})")
            .loss("loss", Validation, EpochSoFar),
    ];
    Table::new("torchvision", shapes)
}

/// A line that names its own fields.
fn depth() -> Table {
    let shape =
        Shape::new("[epoch][s/s_per_e/gs]: [{epoch}][{_}/{_}/{step}], lr: {_}, loss: {loss}");
    Table::new("monocular depth", [shape.train("loss", Step)])
}

/// The counters are glued to their names.
fn segmentation() -> Table {
    let shape = Shape::new("The train loss of epoch{epoch}-batch-{batch}:{loss}");
    Table::new("deeplab", [shape.train("train loss", Step)])
}

/// The iteration, its time and the losses of both sides, in brackets alone.
fn face_swapping() -> Table {
    let shapes = [
        Shape::new("[#{step}][{ms}ms][{loss}]").train("loss", Step),
        Shape::new("[#{step}][{s}s][{loss}]").train("loss", Step),
        // A logger's time is already gone; this one is the program's own.
        Shape::new("[{_}:{_}:{_}][#{step}][{ms}ms][{loss}]").train("loss", Step),
        Shape::new("[{_}:{_}:{_}][#{step}][{s}s][{loss}]").train("loss", Step),
    ];
    Table::new("face swapping", shapes)
}

#[cfg(test)]
mod tests;
