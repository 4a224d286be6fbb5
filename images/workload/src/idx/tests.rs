use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

/// The file that holds an array.
fn encode(dimensions: &[u32], data: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, UNSIGNED_BYTE, u8::try_from(dimensions.len()).unwrap()];
    for dimension in dimensions {
        file.extend(dimension.to_be_bytes());
    }
    file.extend(data);
    file
}

fn arrays() -> impl Strategy<Value = (Vec<u32>, Vec<u8>)> {
    prop::collection::vec(0_u32..7, 1..=4).prop_flat_map(|dimensions| {
        let length = usize::try_from(dimensions.iter().product::<u32>()).unwrap();
        (Just(dimensions), prop::collection::vec(any::<u8>(), length))
    })
}

fn read(file: &[u8]) -> Result<Idx, IdxError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    std::fs::write(&path, file).unwrap();
    Idx::read(&path)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

proptest! {
    #[test]
    fn array_round_trips((dimensions, data) in arrays()) {
        let parsed = Idx::parse(encode(&dimensions, &data).as_slice()).unwrap();
        prop_assert!(parsed.dimensions.iter().map(|d| u32::try_from(*d).unwrap()).eq(dimensions));
        prop_assert_eq!(parsed.data, data);
    }

    #[test]
    fn truncated_plain_file_is_refused((dimensions, data) in arrays(), part in 0.0..1.0) {
        let file = encode(&dimensions, &data);
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a part below 1 of a small length"
        )]
        let kept = (file.len() as f64 * part) as usize;
        prop_assert!(Idx::parse(&file[..kept]).is_err());
    }

    #[test]
    fn arbitrary_file_is_refused_or_consistent(file in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(idx) = Idx::parse(file.as_slice()) {
            prop_assert_eq!(idx.dimensions.iter().product::<usize>(), idx.data.len());
        }
    }

    #[test]
    fn header_claim_reserves_no_memory(
        rank in 0_u8..8,
        rest in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        let mut file = vec![0, 0, UNSIGNED_BYTE, rank];
        file.extend(&rest);
        if let Ok(idx) = Idx::parse(file.as_slice()) {
            prop_assert!(idx.data.capacity() <= 4096);
        }
    }
}

#[test]
fn compressed_file_reads_as_plain() {
    let plain = encode(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    assert_eq!(read(&plain).unwrap(), read(&gzip(&plain)).unwrap());
}

#[test]
fn truncated_compressed_file_is_refused() {
    let mut file = gzip(&encode(&[2, 3], &[1, 2, 3, 4, 5, 6]));
    file.truncate(file.len() - 9);
    assert!(read(&file).is_err());
}

#[test]
fn each_wrong_header_has_own_error() {
    let refusal = |file: &[u8]| Idx::parse(file).unwrap_err().to_string();
    assert_eq!(refusal(b"<html>"), "not an IDX file");
    assert_eq!(refusal(&[0, 0, 13, 1]), "elements of type 13, expected unsigned bytes (8)");
    assert_eq!(refusal(&[0, 0, 8, 0]), "0 dimensions, expected 1 to 4");
    assert_eq!(refusal(&[0, 0, 8, 255]), "255 dimensions, expected 1 to 4");
    assert_eq!(refusal(&encode(&[3], &[1])), "1 bytes of data, but the header claims 3");
    assert_eq!(refusal(&encode(&[1], &[1, 2])), "more data than the header claims");
    let huge = encode(&[u32::MAX, u32::MAX, u32::MAX], &[]);
    assert_eq!(refusal(&huge), "the header claims more than 1073741824 bytes");
    assert_eq!(refusal(&encode(&[1 << 20, 1 << 20], &[])), refusal(&huge));
}
