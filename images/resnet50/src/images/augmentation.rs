//! Augmentation of training images: a crop of each, at a random place, and mirroring.

use tch::{Device, Kind, Tensor};

use super::SIDE;

/// The largest shift of a training image, in either direction.
pub(super) const SHIFT: i64 = 4;

/// The augmentation of training images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// They are moved.
    Crop,
    /// They are moved, and half of them, by chance, are mirrored.
    CropAndFlip,
}

/// Images with a black margin, which makes them as large as needed, and larger by `more` on each
/// side.
pub(super) fn with_margin(pixels: &Tensor, more: i64) -> Tensor {
    let side = pixels.size().last().copied().unwrap_or(SIDE);
    let margin = (SIDE - side) / 2 + more;
    if margin == 0 { pixels.shallow_clone() } else { pixels.constant_pad_nd([margin; 4]) }
}

/// Images that are moved and mirrored by libtorch's generator.
pub(super) fn vary(pixels: &Tensor, augmentation: Augmentation) -> Tensor {
    let pixels = with_margin(pixels, SHIFT);
    let count = pixels.size().first().copied().unwrap_or_default();
    let integers = (Kind::Int64, Device::Cpu);
    let place = || Tensor::randint(2 * SHIFT + 1, [count, 1], integers);
    let (top, left) = (place(), place());
    let mirrored = match augmentation {
        Augmentation::Crop => Tensor::zeros([count, 1], integers),
        Augmentation::CropAndFlip => Tensor::randint(2, [count, 1], integers),
    };
    let upright = Tensor::arange(SIDE, integers).unsqueeze(0);
    let columns = &upright + &mirrored * (SIDE - 1 - &upright * 2);
    crop(&pixels, &(top + upright), &(left + columns))
}

/// For each image, the pixels in its rows and columns.
pub(super) fn crop(pixels: &Tensor, rows: &Tensor, columns: &Tensor) -> Tensor {
    let size = pixels.size();
    let [count, channels, _, width] = size[..] else { return pixels.shallow_clone() };
    let rows = rows.view([count, 1, SIDE, 1]).expand([count, channels, SIDE, width], false);
    let columns = columns.view([count, 1, 1, SIDE]).expand([count, channels, SIDE, SIDE], false);
    pixels.gather(2, &rows, false).gather(3, &columns, false)
}
