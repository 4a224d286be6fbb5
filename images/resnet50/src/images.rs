//! Color images of 32 by 32 pixels: CIFAR-10, or gray images with a margin up to that size.

mod augmentation;

use std::num::NonZeroUsize;
use std::path::Path;

use paceline_torch::{BadInput, Job};
use paceline_workload::{Cifar10, DataArgs, Dataset, Places, Split, Targets};
use tch::{Kind, Tensor};

use self::augmentation::{vary, with_margin};

pub use self::augmentation::Augmentation;

/// The side of an image, in pixels.
const SIDE: i64 = 32;
/// Images in a chunk, where all images are processed.
const CHUNK: i64 = 1000;

const MNIST: Targets = Targets::new(0.3, 0.15);
const FASHION_MNIST: Targets = Targets::new(0.8, 0.6);
const CIFAR_10: Targets = Targets::new(1.0, 0.7);

/// A data set of images, as the command line names it.
#[derive(Debug)]
pub struct ColorData {
    name: String,
    /// Its description in the log.
    description: String,
    targets: Targets,
    /// The augmentation of its images.
    pub augmentation: Augmentation,
    /// The images to train on.
    pub train: ColorImages,
    /// The images to test on.
    pub test: ColorImages,
}

/// Images and their labels, kept as bytes. A batch is converted to numbers when it is requested.
#[derive(Debug)]
pub struct ColorImages {
    pixels: Tensor,
    labels: Tensor,
    mean: Tensor,
    deviation: Tensor,
}

impl ColorData {
    /// Finds or fetches them, and reads them.
    pub fn load(args: DataArgs) -> anyhow::Result<Self> {
        let places = Places::of_user(args.data).map_err(BadInput::new)?;
        let named = places.chosen.as_deref().unwrap_or(&places.cache);
        if let Some(folder) = Cifar10::find(named) {
            return Self::cifar_10(&folder);
        }
        let folder = places.locate().map_err(BadInput::new)?;
        Self::idx(&folder)
    }

    fn cifar_10(folder: &Path) -> anyhow::Result<Self> {
        let Cifar10 { train, test } = Cifar10::load(folder).map_err(BadInput::new)?;
        let images = ColorImages::normalized(&train, &test, [-1, 3, SIDE, SIDE]);
        let name = "CIFAR-10".to_owned();
        Ok(Self::new(name, folder, CIFAR_10, Augmentation::CropAndFlip, images))
    }

    /// Images in IDX files, with a black margin around them. Digits and letters are not mirrored,
    /// since some would become others. Nor are clothes, which all face the same way.
    fn idx(folder: &Path) -> anyhow::Result<Self> {
        let Dataset { kind, name, train, test } = Dataset::load(folder).map_err(BadInput::new)?;
        let images = ColorImages::normalized(&train, &test, [-1, 1, 28, 28]);
        let targets = kind.targets(MNIST, FASHION_MNIST);
        Ok(Self::new(name, folder, targets, Augmentation::Crop, images))
    }

    fn new(
        name: String,
        folder: &Path,
        targets: Targets,
        augmentation: Augmentation,
        [train, test]: [ColorImages; 2],
    ) -> Self {
        let description = format!(
            "{name} from {}: {} images to train on, {} to test on",
            folder.display(),
            train.count(),
            test.count(),
        );
        Self { name, description, targets, augmentation, train, test }
    }

    /// Its description in the log.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The name of the data set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The job of learning from it.
    pub fn job(&self, batch_size: NonZeroUsize) -> Job {
        Job {
            loss_name: "cross entropy",
            dataset: self.name.clone(),
            data: self.description.clone(),
            unit: "images",
            items: self.train.count(),
            batch_size,
            targets: self.targets,
        }
    }
}

impl ColorImages {
    /// Images to train and to test on, both normalized by those to train on.
    fn normalized(train: &Split, test: &Split, shape: [i64; 4]) -> [Self; 2] {
        let pixels = |split: &Split| Tensor::from_slice(&split.pixels).view(shape);
        let [train_pixels, test_pixels] = [pixels(train), pixels(test)];
        let (mean, deviation) = mean_and_deviation(&train_pixels);
        [(train, train_pixels), (test, test_pixels)].map(|(split, pixels)| Self {
            pixels,
            labels: Tensor::from_slice(&split.labels).to_kind(Kind::Int64),
            mean: mean.shallow_clone(),
            deviation: deviation.shallow_clone(),
        })
    }

    /// The number of images.
    pub fn count(&self) -> usize {
        self.labels.numel()
    }

    /// The images at these positions, augmented by libtorch's generator, and their labels.
    pub fn varied(&self, positions: &[i64], augmentation: Augmentation) -> (Tensor, Tensor) {
        let (pixels, labels) = self.select(positions);
        (self.as_numbers(&vary(&pixels, augmentation)), labels)
    }

    /// The images at these positions as they are, and their labels.
    pub fn batch(&self, positions: &[i64]) -> (Tensor, Tensor) {
        let (pixels, labels) = self.select(positions);
        (self.as_numbers(&with_margin(&pixels, 0)), labels)
    }

    /// All images as they are, in batches of this many.
    pub fn chunks(&self, size: i64) -> impl Iterator<Item = (Tensor, Tensor)> {
        let pixels = self.pixels.split(size, 0).into_iter();
        let labels = self.labels.split(size, 0).into_iter();
        pixels
            .zip(labels)
            .map(|(pixels, labels)| (self.as_numbers(&with_margin(&pixels, 0)), labels))
    }

    fn select(&self, positions: &[i64]) -> (Tensor, Tensor) {
        let positions = Tensor::from_slice(positions);
        let [pixels, labels] =
            [&self.pixels, &self.labels].map(|all| all.index_select(0, &positions));
        (pixels, labels)
    }

    /// Three channels, each with the mean 0 and the deviation 1 over all images.
    fn as_numbers(&self, pixels: &Tensor) -> Tensor {
        let pixels = (pixels.to_kind(Kind::Float) - &self.mean) / &self.deviation;
        pixels.expand([-1, 3, -1, -1], false).contiguous()
    }
}

/// The mean and the standard deviation of each channel, of the images alone: a margin does not
/// count.
fn mean_and_deviation(pixels: &Tensor) -> (Tensor, Tensor) {
    let all = [0_i64, 2, 3];
    let sum = |of: &dyn Fn(&Tensor) -> Tensor| {
        let chunks = pixels.split(CHUNK, 0).into_iter();
        let sums = chunks.map(|chunk| of(&chunk.to_kind(Kind::Double)));
        sums.map(|it| it.sum_dim_intlist(all.as_slice(), true, Kind::Double)).sum::<Tensor>()
    };
    let count = sum(&Tensor::ones_like);
    let mean = sum(&Tensor::shallow_clone) / &count;
    // Images of one shade have no deviation to divide by.
    let deviation = (sum(&Tensor::square) / &count - mean.square()).sqrt().clamp_min(1.0);
    (mean.to_kind(Kind::Float), deviation.to_kind(Kind::Float))
}

#[cfg(test)]
mod tests;
