//! A data set in memory.

use std::path::{Path, PathBuf};

use crate::files;
use crate::idx::{Idx, IdxError};
use crate::kind::Kind;

/// The side of an image, in pixels: the models are made for this size.
const SIDE: usize = 28;
/// Labels are 0 to 9.
pub(crate) const CLASSES: u8 = 10;

/// Images to train on, and others to test on.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Its kind.
    pub kind: Kind,
    /// Its name in logs, such as `MNIST`.
    pub name: String,
    /// The images to train on.
    pub train: Split,
    /// The images to test on.
    pub test: Split,
}

/// Images and their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The pixels of all images, row by row.
    pub pixels: Vec<u8>,
    /// One label for each image.
    pub labels: Vec<u8>,
}

/// The reason why a folder is not a data set.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The folder does not exist.
    #[error("{0} is not a folder of images")]
    NoFolder(PathBuf),
    /// A file is not there.
    #[error("{folder} has no {name}, compressed or not")]
    Missing {
        /// The searched folder.
        folder: PathBuf,
        /// The name of the missing file.
        name: &'static str,
    },
    /// A file is not an array.
    #[error("{path} is not an array of bytes")]
    Idx {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: IdxError,
    },
    /// A file is an array of something else.
    #[error("{path} holds {what}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Its contents, and the expected ones.
        what: String,
    },
}

impl Dataset {
    /// Reads the four files of a folder. A folder with test images only is split by position: nine
    /// of ten are trained on.
    pub fn load(folder: &Path) -> Result<Self, DatasetError> {
        if !folder.is_dir() {
            return Err(DatasetError::NoFolder(folder.to_owned()));
        }
        let test = load_split(folder, files::TEST_IMAGES, files::TEST_LABELS)?;
        let kind = Kind::of_test_labels(&test.labels);
        if files::find(folder, files::TRAIN_IMAGES).is_some() {
            let train = load_split(folder, files::TRAIN_IMAGES, files::TRAIN_LABELS)?;
            return Ok(Self { kind, name: kind.to_string(), train, test });
        }
        let (train, test) = test.cut_at_nine_tenths();
        Ok(Self { kind, name: format!("{kind} t10k, split 9:1"), train, test })
    }
}

impl Split {
    /// The number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether it has no images.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The mean and the standard deviation of all pixels, as fractions of white.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "2^30 pixels, squared bytes: all below 2^53"
    )]
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        let sum: u64 = self.pixels.iter().map(|pixel| u64::from(*pixel)).sum();
        let squares: u64 = self.pixels.iter().map(|pixel| u64::from(*pixel).pow(2)).sum();
        let count = self.pixels.len() as f64;
        let mean = sum as f64 / count;
        let deviation = (squares as f64 / count - mean * mean).max(0.0).sqrt();
        (mean / 255.0, deviation / 255.0)
    }

    fn cut_at_nine_tenths(mut self) -> (Self, Self) {
        let first = self.len() * 9 / 10;
        let labels = self.labels.split_off(first);
        let pixels = self.pixels.split_off(first * SIDE * SIDE);
        (self, Self { pixels, labels })
    }
}

fn load_split(
    folder: &Path,
    images: &'static str,
    labels: &'static str,
) -> Result<Split, DatasetError> {
    let (images_path, images) = load(folder, images)?;
    let (labels_path, labels) = load(folder, labels)?;
    let content = |path, what| Err(DatasetError::Content { path, what });
    let [count, SIDE, SIDE] = images.dimensions[..] else {
        let what = format!("an array {:?}, expected images of {SIDE} by {SIDE}", images.dimensions);
        return content(images_path, what);
    };
    if count < 10 {
        return content(images_path, format!("{count} images, expected at least 10"));
    }
    if labels.dimensions != [count] {
        let what = format!("an array {:?}, expected {count} labels", labels.dimensions);
        return content(labels_path, what);
    }
    if let Some(label) = labels.data.iter().find(|label| **label >= CLASSES) {
        return content(labels_path, format!("the label {label}, expected 0 to 9"));
    }
    Ok(Split { pixels: images.data, labels: labels.data })
}

fn load(folder: &Path, name: &'static str) -> Result<(PathBuf, Idx), DatasetError> {
    let missing = || DatasetError::Missing { folder: folder.to_owned(), name };
    let path = files::find(folder, name).ok_or_else(missing)?;
    match Idx::read(&path) {
        Ok(idx) => Ok((path, idx)),
        Err(source) => Err(DatasetError::Idx { path, source }),
    }
}

#[cfg(test)]
mod tests;
