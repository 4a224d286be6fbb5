//! The test of a classifier.

use paceline_workload::Stop;
use tch::nn::ModuleT;
use tch::{Kind, Reduction, Tensor};

use crate::trainer::Test;

/// The mean cross entropy of a network's answers to images with labels, and the fraction of images
/// that it classifies correctly.
pub fn classify(
    net: &impl ModuleT,
    batches: impl Iterator<Item = (Tensor, Tensor)>,
    stop: &Stop,
) -> anyhow::Result<Test> {
    let (mut loss, mut right, mut count) = (0.0, 0.0, 0);
    for (images, labels) in batches.take_while(|_| !stop.requested()) {
        let scores = net.forward_t(&images, false);
        let sum = scores.cross_entropy_loss::<Tensor>(&labels, None, Reduction::Sum, -100, 0.0);
        loss += f64::try_from(sum)?;
        right += f64::try_from(scores.argmax(1, false).eq_tensor(&labels).sum(Kind::Double))?;
        count += i32::try_from(labels.size1()?)?;
    }
    let (loss, percent) = (loss / f64::from(count), 100.0 * right / f64::from(count));
    let line = format!("Test set: Average loss: {loss:.4}, Accuracy: {percent:.2}%");
    Ok(Test { loss, line })
}
