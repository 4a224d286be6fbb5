//! CIFAR-10's binary files: records of a label and of 32 by 32 pixels in red, then in green, then in
//! blue, row by row.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::dataset::{CLASSES, Split};

/// The folder that its archive unpacks to.
const FOLDER: &str = "cifar-10-batches-bin";
/// The files with images to train on.
const TRAIN: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];
/// The file with images to test on.
const TEST: &str = "test_batch.bin";
/// The bytes of an image.
const PIXELS: usize = 3 * 32 * 32;
/// A label and an image.
const RECORD: usize = 1 + PIXELS;
/// The largest file that is read, in bytes: thirty times the size of CIFAR-10's own.
const MAX_BYTES: u64 = 1 << 30;

/// Color images to train on, and others to test on.
#[derive(Clone, Debug)]
pub struct Cifar10 {
    /// The images to train on.
    pub train: Split,
    /// The images to test on.
    pub test: Split,
}

/// The reason why a folder does not hold CIFAR-10.
#[derive(Debug, thiserror::Error)]
pub enum CifarError {
    /// A file could not be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file has other contents.
    #[error("{path} is not a CIFAR-10 file: {what}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
}

impl Cifar10 {
    /// The folder with the files: the given one, or the one below it that the archive unpacks to.
    pub fn find(folder: &Path) -> Option<PathBuf> {
        let places = [folder.to_owned(), folder.join(FOLDER)];
        places.into_iter().find(|place| place.join(TRAIN[0]).exists())
    }

    /// Reads the six files of a folder.
    pub fn load(folder: &Path) -> Result<Self, CifarError> {
        let mut train = Split::default();
        for name in TRAIN {
            let Split { pixels, labels } = read(&folder.join(name))?;
            train.pixels.extend(pixels);
            train.labels.extend(labels);
        }
        Ok(Self { train, test: read(&folder.join(TEST))? })
    }
}

fn read(path: &Path) -> Result<Split, CifarError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(cause) => Err(CifarError::Read { path: path.to_owned(), cause }),
        Ok(_) => parse(&bytes).map_err(|what| CifarError::Content { path: path.to_owned(), what }),
    }
}

fn parse(bytes: &[u8]) -> Result<Split, String> {
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_BYTES) {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if records.is_empty() || !rest.is_empty() {
        return Err(format!("its size of {} bytes is not a multiple of {RECORD}", bytes.len()));
    }
    let mut split = Split::default();
    split.pixels.reserve(records.len() * PIXELS);
    for [label, pixels @ ..] in records {
        if *label >= CLASSES {
            return Err(format!("it has the label {label}, expected 0 to 9"));
        }
        split.labels.push(*label);
        split.pixels.extend(pixels);
    }
    Ok(split)
}

#[cfg(test)]
mod tests;
