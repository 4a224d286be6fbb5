use std::fs;

use tch::Device;

use super::augmentation::{SHIFT, crop};
use super::*;

/// One image with this many channels and this side, whose pixels all differ.
fn picture(channels: i64, side: i64) -> Tensor {
    let pixels = Tensor::arange(channels * side * side, (Kind::Int64, Device::Cpu));
    (pixels.remainder(251) + 1).to_kind(Kind::Uint8).view([1, channels, side, side])
}

fn equal(one: &Tensor, other: &Tensor) -> bool {
    one.equal(other)
}

fn columns(range: impl Iterator<Item = i64>) -> Tensor {
    Tensor::from_slice(&range.collect::<Vec<_>>()).view([1, SIDE])
}

#[test]
fn crop_takes_given_rows_and_columns() {
    let padded = with_margin(&picture(3, SIDE), SHIFT);
    assert_eq!(padded.size(), [1, 3, 40, 40]);
    let middle = crop(&padded, &columns(4..36), &columns(4..36));
    assert!(equal(&middle, &picture(3, SIDE)));
    let mirrored = crop(&padded, &columns(4..36), &columns((4..36).rev()));
    assert!(equal(&mirrored, &picture(3, SIDE).flip([3])));
    let corner = crop(&padded, &columns(0..32), &columns(8..40));
    assert!(equal(&corner, &padded.narrow(2, 0, 32).narrow(3, 8, 32)));
}

#[test]
fn shift_and_mirroring_depend_on_seed_alone() {
    let pictures = picture(1, 28).repeat([64, 1, 1, 1]);
    let varied = |seed, augmentation| {
        tch::manual_seed(seed);
        vary(&pictures, augmentation)
    };
    let flipped = varied(1, Augmentation::CropAndFlip);
    assert!(equal(&flipped, &varied(1, Augmentation::CropAndFlip)));
    assert!(!equal(&flipped, &varied(2, Augmentation::CropAndFlip)));
    // Pixels grow from left to right, except in mirrored images.
    let mirrored = |images: &Tensor| {
        let row = images.select(1, 0).select(1, 16).to_kind(Kind::Int64);
        row.select(1, 10).gt_tensor(&row.select(1, 11)).sum(Kind::Int64).int64_value(&[])
    };
    assert_eq!(mirrored(&varied(1, Augmentation::Crop)), 0);
    assert!((16..48).contains(&mirrored(&flipped)), "{}", mirrored(&flipped));
}

#[test]
fn gray_images_become_normalized_color_images() {
    let folder = tempfile::tempdir().unwrap();
    for (prefix, grays) in [("train", [0_u8, 255].repeat(10)), ("t10k", vec![51; 10])] {
        let count = u8::try_from(grays.len()).unwrap();
        let labels = (0..count).map(|label| label % 10);
        let write = |name: &str, header: &[u8], bytes: Vec<u8>| {
            fs::write(folder.path().join(format!("{prefix}-{name}")), [header, &bytes].concat())
        };
        let pixels = grays.iter().flat_map(|gray| [*gray; 784]).collect();
        let header = [0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28];
        write("images-idx3-ubyte", &header, pixels).unwrap();
        write("labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, count], labels.collect()).unwrap();
    }
    let data = ColorData::load(DataArgs { data: Some(folder.path().to_owned()) }).unwrap();
    assert_eq!((data.name(), data.augmentation), ("custom IDX", Augmentation::Crop));
    assert_eq!(data.job(NonZeroUsize::MIN).targets, Targets::default());
    let (images, labels) = data.train.batch(&[3, 2]);
    assert_eq!(
        (images.size(), Vec::<i64>::try_from(labels).unwrap()),
        (vec![2, 3, 32, 32], vec![3, 2])
    );
    // Half of the pixels are black and half white: the mean is gray, the deviation as far as either.
    let value = |image, row| images.double_value(&[image, 2, row, 16]).to_string();
    assert_eq!([value(0, 16), value(1, 16), value(0, 1)], ["1", "-1", "-1"]);
    let (images, _) = data.train.varied(&[3, 2, 1], data.augmentation);
    assert_eq!(images.size(), [3, 3, 32, 32]);
    assert_eq!(
        data.test.chunks(4).map(|(images, _)| images.size()[0]).collect::<Vec<_>>(),
        [4, 4, 2]
    );
}

#[test]
fn the_files_of_cifar_10_are_found_first() {
    let folder = tempfile::tempdir().unwrap();
    let names = (1..=5).map(|number| format!("data_batch_{number}.bin"));
    for name in names.chain(["test_batch.bin".to_owned()]) {
        let image =
            |label: u8| [vec![label], vec![200; 1024], vec![100; 1024], vec![0; 1024]].concat();
        fs::write(folder.path().join(name), [image(7), image(8)].concat()).unwrap();
    }
    let load = || ColorData::load(DataArgs { data: Some(folder.path().to_owned()) });
    let data = load().unwrap();
    assert_eq!((data.name(), data.augmentation), ("CIFAR-10", Augmentation::CropAndFlip));
    assert_eq!((data.train.count(), data.test.count()), (10, 2));
    assert_eq!(
        Vec::<f64>::try_from(data.train.mean.view([3]).to_kind(Kind::Double)).unwrap(),
        [200.0, 100.0, 0.0]
    );
    let (images, labels) = data.test.batch(&[1]);
    assert!(equal(&images, &images.zeros_like()));
    assert_eq!(labels.int64_value(&[0]), 8);
    fs::remove_file(folder.path().join("test_batch.bin")).unwrap();
    assert!(load().unwrap_err().is::<BadInput>());
}
