//! The data set in a folder. The files of MNIST and of its drop-in relatives have the same names and
//! sizes; only their contents differ.

use std::fmt::{self, Display, Formatter};

use crate::files;
use crate::targets::Targets;

/// MD5 of the labels of MNIST's test images, without the file's header or compression.
const MNIST_LABELS: &str = "073c3904dfbd3e141ff8aa01cfde6b15";
/// The same for Fashion-MNIST.
const FASHION_MNIST_LABELS: &str = "8dea97a4e78c1bd1b5a6e8efbb870b6e";

/// A data set that the workloads know, or another one in the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Handwritten digits.
    Mnist,
    /// Articles of clothing.
    FashionMnist,
    /// Other images in files of the same form.
    Custom,
}

impl Kind {
    /// The data set that has these test labels.
    pub fn of_test_labels(labels: &[u8]) -> Self {
        match files::md5(labels).as_str() {
            MNIST_LABELS => Self::Mnist,
            FASHION_MNIST_LABELS => Self::FashionMnist,
            _ => Self::Custom,
        }
    }

    /// The targets of a known data set; images of unknown origin have none.
    pub fn targets(self, mnist: Targets, fashion_mnist: Targets) -> Targets {
        match self {
            Self::Mnist => mnist,
            Self::FashionMnist => fashion_mnist,
            Self::Custom => Targets::default(),
        }
    }
}

impl Display for Kind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Mnist => "MNIST",
            Self::FashionMnist => "Fashion-MNIST",
            Self::Custom => "custom IDX",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_labels_are_a_custom_data_set() {
        assert_eq!(Kind::of_test_labels(&[1, 2, 3]).to_string(), "custom IDX");
    }
}
