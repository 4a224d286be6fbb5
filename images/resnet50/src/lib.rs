//! ResNet-50, the images that `resnet50` trains it on, and the measurement of its inference.

mod images;
pub mod inference;
mod model;

pub use images::{Augmentation, ColorData, ColorImages};
pub use model::{ResNet50, Stem};
