//! Images as tensors.

use std::num::NonZeroUsize;

use paceline_workload::{DataArgs, Dataset, Kind, Places, Split, Targets};
use tch::Tensor;

use crate::program::BadInput;
use crate::trainer::Job;

/// Any number of images with one channel and the one size that a data set is read with.
const SHAPE: [i64; 4] = [-1, 1, 28, 28];

/// A data set of images, as the command line names it.
#[derive(Debug)]
pub struct ImageData {
    kind: Kind,
    name: String,
    /// Its description in the log.
    description: String,
    /// The images to train on.
    pub train: Images,
    /// The images to test on.
    pub test: Images,
}

impl ImageData {
    /// Finds or fetches them, and reads them.
    pub fn load(args: DataArgs) -> anyhow::Result<Self> {
        let places = Places::of_user(args.data).map_err(BadInput::new)?;
        let folder = places.locate().map_err(BadInput::new)?;
        let Dataset { kind, name, train, test } = Dataset::load(&folder).map_err(BadInput::new)?;
        let (images, tests) = (train.len(), test.len());
        let description = format!(
            "{name} from {}: {images} images to train on, {tests} to test on",
            folder.display(),
        );
        let (train, test) = (Images::new(&train), Images::new(&test));
        Ok(Self { kind, name, description, train, test })
    }

    /// The job of learning from them, with the targets of its data set. Images of unknown origin have
    /// no targets.
    pub fn job(
        &self,
        loss_name: &'static str,
        batch_size: NonZeroUsize,
        [mnist, fashion_mnist]: [Targets; 2],
    ) -> Job {
        Job {
            loss_name,
            dataset: self.name.clone(),
            data: self.description.clone(),
            unit: "images",
            items: self.train.count(),
            batch_size,
            targets: self.kind.targets(mnist, fashion_mnist),
        }
    }
}

/// Images and their labels, kept as bytes. A batch is converted to numbers when it is requested.
#[derive(Debug)]
pub struct Images {
    pixels: Tensor,
    labels: Tensor,
    mean_and_deviation: (f64, f64),
}

impl Images {
    /// Copies them.
    pub fn new(split: &Split) -> Self {
        let pixels = Tensor::from_slice(&split.pixels).view(SHAPE);
        let labels = Tensor::from_slice(&split.labels);
        Self { pixels, labels, mean_and_deviation: split.mean_and_deviation() }
    }

    /// The number of images.
    pub fn count(&self) -> usize {
        self.labels.numel()
    }

    /// The mean and the standard deviation of all pixels, which are from 0 to 1.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        self.mean_and_deviation
    }

    /// The images at these positions, with pixels from 0 to 1 and one channel, and their
    /// labels.
    pub fn batch(&self, positions: &[i64]) -> (Tensor, Tensor) {
        let positions = Tensor::from_slice(positions);
        let [pixels, labels] =
            [&self.pixels, &self.labels].map(|all| all.index_select(0, &positions));
        as_numbers(&pixels, &labels)
    }

    /// All images in order, in batches of this many.
    pub fn chunks(&self, size: i64) -> impl Iterator<Item = (Tensor, Tensor)> {
        let pixels = self.pixels.split(size, 0).into_iter();
        let labels = self.labels.split(size, 0).into_iter();
        pixels.zip(labels).map(|(pixels, labels)| as_numbers(&pixels, &labels))
    }
}

fn as_numbers(pixels: &Tensor, labels: &Tensor) -> (Tensor, Tensor) {
    (pixels.to_kind(tch::Kind::Float) / 255.0, labels.to_kind(tch::Kind::Int64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three images of one grey each, labelled 0 to 2.
    fn images() -> Images {
        let pixels = [0, 51, 255].into_iter().flat_map(|grey| [grey; 784]).collect();
        Images::new(&Split { pixels, labels: vec![0, 1, 2] })
    }

    fn greys(pixels: &Tensor) -> Vec<f32> {
        Vec::try_from(pixels.mean_dim([1_i64, 2, 3].as_slice(), false, None)).unwrap()
    }

    #[test]
    fn batch_has_requested_images_with_labels() {
        let (pixels, labels) = images().batch(&[2, 0]);
        assert_eq!(pixels.size(), [2, 1, 28, 28]);
        assert_eq!(greys(&pixels), [1.0, 0.0]);
        assert_eq!(Vec::<i64>::try_from(labels).unwrap(), [2, 0]);
    }

    #[test]
    fn chunks_hold_all_images_in_order() {
        let chunks: Vec<_> = images().chunks(2).collect();
        assert_eq!(chunks.iter().map(|(pixels, _)| pixels.size()[0]).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(Vec::<i64>::try_from(&chunks[1].1).unwrap(), [2]);
        assert!((greys(&chunks[0].0)[1] - 0.2).abs() < 1e-6);
    }
}
