//! Images as tensors.

use paceline_workload::Split;
use tch::{Kind, Tensor};

/// Any number of images with one channel and the one size that a data set is read with.
const SHAPE: [i64; 4] = [-1, 1, 28, 28];

/// Images and their labels, kept as bytes: a batch becomes numbers when it is asked for.
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

    /// The mean and the standard deviation of all pixels, which are from 0 to 1.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        self.mean_and_deviation
    }

    /// The images at these positions, with pixels from 0 to 1 and a channel of their own, and their
    /// labels.
    pub fn batch(&self, positions: &[i64]) -> (Tensor, Tensor) {
        let positions = Tensor::from_slice(positions);
        let [pixels, labels] =
            [&self.pixels, &self.labels].map(|all| all.index_select(0, &positions));
        as_numbers(&pixels, &labels)
    }
    /// All images in their own order, so many at a time.
    pub fn chunks(&self, size: i64) -> impl Iterator<Item = (Tensor, Tensor)> {
        let pixels = self.pixels.split(size, 0).into_iter();
        let labels = self.labels.split(size, 0).into_iter();
        pixels.zip(labels).map(|(pixels, labels)| as_numbers(&pixels, &labels))
    }
}

fn as_numbers(pixels: &Tensor, labels: &Tensor) -> (Tensor, Tensor) {
    (pixels.to_kind(Kind::Float) / 255.0, labels.to_kind(Kind::Int64))
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
    fn a_batch_has_the_images_that_were_asked_for_with_their_labels() {
        let (pixels, labels) = images().batch(&[2, 0]);
        assert_eq!(pixels.size(), [2, 1, 28, 28]);
        assert_eq!(greys(&pixels), [1.0, 0.0]);
        assert_eq!(Vec::<i64>::try_from(labels).unwrap(), [2, 0]);
    }

    #[test]
    fn chunks_are_all_images_in_their_order() {
        let chunks: Vec<_> = images().chunks(2).collect();
        assert_eq!(chunks.iter().map(|(pixels, _)| pixels.size()[0]).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(Vec::<i64>::try_from(&chunks[1].1).unwrap(), [2]);
        assert!((greys(&chunks[0].0)[1] - 0.2).abs() < 1e-6);
    }
}
