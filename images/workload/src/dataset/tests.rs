use std::fs;

use tempfile::TempDir;

use super::*;

fn array(dimensions: &[u32], data: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(dimensions.len()).unwrap()];
    file.extend(dimensions.iter().flat_map(|dimension| dimension.to_be_bytes()));
    file.extend(data);
    file
}

/// Images of one shade each, which is their position, labelled by its last digit.
fn write_split(folder: &TempDir, prefix: &str, count: u8) {
    let pixels: Vec<u8> = (0..count).flat_map(|image| [image; SIDE * SIDE]).collect();
    let labels: Vec<u8> = (0..count).map(|image| image % CLASSES).collect();
    let images = array(&[count.into(), 28, 28], &pixels);
    fs::write(folder.path().join(format!("{prefix}-images-idx3-ubyte")), images).unwrap();
    let labels = array(&[count.into()], &labels);
    fs::write(folder.path().join(format!("{prefix}-labels-idx1-ubyte")), labels).unwrap();
}

fn refusal(folder: &TempDir) -> String {
    let text = Dataset::load(folder.path()).unwrap_err().to_string();
    text.replace(folder.path().to_str().unwrap(), "DIR")
}

#[test]
fn four_files_make_two_splits() {
    let folder = tempfile::tempdir().unwrap();
    write_split(&folder, "train", 30);
    write_split(&folder, "t10k", 20);
    let data = Dataset::load(folder.path()).unwrap();
    assert_eq!((data.train.len(), data.test.len()), (30, 20));
    assert_eq!(data.name, "custom IDX");
    assert_eq!(data.train.pixels[SIDE * SIDE * 7], 7);
    assert_eq!(data.train.labels[17], 7);
}

#[test]
fn test_images_alone_are_split_nine_to_one_by_position() {
    let folder = tempfile::tempdir().unwrap();
    write_split(&folder, "t10k", 20);
    let data = Dataset::load(folder.path()).unwrap();
    assert_eq!(data.name, "custom IDX t10k, split 9:1");
    assert_eq!((data.train.len(), data.test.len()), (18, 2));
    assert_eq!(data.train.pixels.len(), 18 * SIDE * SIDE);
    assert_eq!(data.test.labels, [8, 9]);
    assert_eq!(data.test.pixels[0], 18);
}

#[test]
fn missing_or_wrong_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Dataset::load(&folder.path().join("missing")).unwrap_err().to_string();
    assert!(missing.ends_with("missing is not a folder of images"), "{missing}");
    assert_eq!(refusal(&folder), "DIR has no t10k-images-idx3-ubyte, compressed or not");
    write_split(&folder, "t10k", 20);
    let write = |name: &str, file: &[u8]| fs::write(folder.path().join(name), file).unwrap();

    write(files::TEST_LABELS, &array(&[20], &[10; 20]));
    assert_eq!(refusal(&folder), "DIR/t10k-labels-idx1-ubyte holds the label 10, expected 0 to 9");
    write(files::TEST_LABELS, &array(&[19], &[0; 19]));
    assert_eq!(
        refusal(&folder),
        "DIR/t10k-labels-idx1-ubyte holds an array [19], expected 20 labels"
    );
    write(files::TEST_IMAGES, &array(&[1, 32, 32], &[0; 1024]));
    assert_eq!(
        refusal(&folder),
        "DIR/t10k-images-idx3-ubyte holds an array [1, 32, 32], expected images of 28 by 28"
    );
    write(files::TEST_IMAGES, &array(&[1, 28, 28], &[0; 784]));
    assert_eq!(refusal(&folder), "DIR/t10k-images-idx3-ubyte holds 1 images, expected at least 10");
    write(files::TEST_LABELS, b"<html>");
    assert_eq!(refusal(&folder), "DIR/t10k-labels-idx1-ubyte is not an array of bytes");
}

#[test]
fn half_black_half_white_has_mean_and_deviation_of_half() {
    let split = Split { pixels: [0, 255].repeat(392), labels: vec![0] };
    assert_eq!(split.mean_and_deviation(), (0.5, 0.5));
}
