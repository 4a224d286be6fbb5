use std::fs;

use proptest::prelude::*;

use super::*;

/// Records with these labels, whose pixels follow from label and position.
fn encode(labels: &[u8]) -> Vec<u8> {
    labels.iter().flat_map(|label| [*label].into_iter().chain(pixels(*label))).collect()
}

fn pixels(label: u8) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).cycle().take(PIXELS).map(move |position| position.wrapping_mul(label + 1))
}

/// A folder with all six files, each of one record with a label of its own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, label) in TRAIN.iter().chain([&TEST]).zip(1..) {
        fs::write(folder.path().join(name), encode(&[label])).unwrap();
    }
    folder
}

fn refusal(folder: &Path) -> String {
    let name = folder.display().to_string();
    Cifar10::load(folder).unwrap_err().to_string().replace(&name, "FOLDER")
}

proptest! {
    #[test]
    fn records_round_trip(labels in prop::collection::vec(0..CLASSES, 1..5)) {
        let split = parse(&encode(&labels)).unwrap();
        prop_assert!(split.pixels.into_iter().eq(labels.iter().flat_map(|label| pixels(*label))));
        prop_assert_eq!(split.labels, labels);
    }

    #[test]
    fn truncated_file_is_refused(count in 1_usize..4, cut in 1..RECORD) {
        let bytes = encode(&vec![3; count]);
        prop_assert!(parse(&bytes[..bytes.len() - cut]).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_whole_records(bytes in prop::collection::vec(0..12_u8, 0..2 * RECORD)) {
        if let Ok(split) = parse(&bytes) {
            prop_assert_eq!(split.labels.len() * RECORD, bytes.len());
            prop_assert!(split.labels.iter().all(|label| *label < CLASSES));
        }
    }
}

#[test]
fn five_files_are_for_training_and_one_for_tests() {
    let folder = folder();
    let Cifar10 { train, test } = Cifar10::load(folder.path()).unwrap();
    assert_eq!(train.labels, [1, 2, 3, 4, 5]);
    assert_eq!(test.labels, [6]);
    assert_eq!(train.pixels.len(), 5 * PIXELS);
}

#[test]
fn archive_folder_is_found_below_named_folder() {
    let folder = folder();
    assert_eq!(Cifar10::find(folder.path()).unwrap(), folder.path());
    let above = tempfile::tempdir().unwrap();
    assert_eq!(Cifar10::find(above.path()), None);
    fs::rename(folder.path(), above.path().join(FOLDER)).unwrap();
    assert_eq!(Cifar10::find(above.path()).unwrap(), above.path().join(FOLDER));
}

#[test]
fn error_names_file_and_defect() {
    let folder = folder();
    let path = folder.path().join(TRAIN[2]);
    fs::write(&path, [1; 100]).unwrap();
    let of = "FOLDER/data_batch_3.bin is not a CIFAR-10 file: ";
    assert_eq!(
        refusal(folder.path()),
        format!("{of}its size of 100 bytes is not a multiple of 3073")
    );
    fs::write(&path, []).unwrap();
    assert_eq!(
        refusal(folder.path()),
        format!("{of}its size of 0 bytes is not a multiple of 3073")
    );
    fs::write(&path, encode(&[17])).unwrap();
    assert_eq!(refusal(folder.path()), format!("{of}it has the label 17, expected 0 to 9"));
    fs::remove_file(&path).unwrap();
    assert!(refusal(folder.path()).starts_with("cannot read FOLDER/data_batch_3.bin: "));
}
