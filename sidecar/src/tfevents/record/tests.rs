use proptest::prelude::*;

use super::super::encode;
use super::*;

/// All records of `bytes`, fed in pieces of the given sizes.
fn read(bytes: &[u8], pieces: &[usize]) -> (Vec<Vec<u8>>, Outcome, Records) {
    let mut records = Records::default();
    let mut data = Vec::new();
    let mut outcome = Outcome::Going;
    let mut rest = bytes;
    let mut sizes = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() && outcome == Outcome::Going {
        let (piece, left) = rest.split_at(sizes.next().unwrap().min(rest.len()));
        outcome = records.feed(piece, &mut |record| data.push(record.to_vec()));
        assert!(records.held.len() <= usize::try_from(MAX_RECORD_LEN).unwrap() + AROUND);
        rest = left;
    }
    (data, outcome, records)
}

/// The first record of a file, and a scalar of 0.99 at step 77 as TensorFlow 2 wrote it.
fn known() -> Vec<u8> {
    let accuracy = encode::tensor("accuracy", 0.99);
    let scalar = encode::event(f64::from_bits(0x41d7_d699_3db7_05c4), 77, &[accuracy]);
    [encode::version(f64::from_bits(0x41d7_d699_3880_0000)), encode::record(&scalar)].concat()
}

#[test]
fn checksums_are_those_of_tensorflow() {
    let known = known();
    assert_eq!(known[..12], *b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22");
    assert_eq!(known[12..36], *b"\x09\0\0\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2");
    assert_eq!(known[36..40], *b"\x12\x4b\x36\xab");
    assert_eq!(known[40..52], *b"\x32\0\0\0\0\0\0\0\x24\x19\x56\xec");
    assert_eq!(known[102..], *b"\xa5\x5b\x64\x33");
}

#[test]
fn records_are_read_for_any_split() {
    let bytes = known();
    let (whole, outcome, records) = read(&bytes, &[]);
    assert_eq!((whole.len(), outcome), (2, Outcome::Going));
    assert_eq!(records.offset(), length(bytes.len()));
    for cut in 0..=bytes.len() {
        assert_eq!(read(&bytes, &[cut]).0, whole, "cut at {cut}");
        let truncated = read(&bytes[..cut], &[]);
        assert_eq!(truncated.1, Outcome::Going);
        assert_eq!(truncated.2.position(), length(cut));
        // A new reader resumes after the last whole record.
        let mut again = Records::at(truncated.2.offset());
        let mut data = truncated.0;
        let from = usize::try_from(again.offset()).unwrap();
        again.feed(&bytes[from..], &mut |record| data.push(record.to_vec()));
        assert_eq!(data, whole, "resumed at {cut}");
    }
}

#[test]
fn damaged_data_loses_one_record() {
    let mut bytes = [encode::record(b"first"), encode::record(b"second")].concat();
    bytes[13] ^= 1;
    let (data, outcome, records) = read(&bytes, &[]);
    assert_eq!((data, outcome), (vec![b"second".to_vec()], Outcome::Going));
    assert_eq!(records.met(), Met { whole: 1, damaged: 1, oversized: 0 });
}

#[test]
fn damaged_length_ends_the_file() {
    let mut bytes = [encode::record(b"first"), encode::record(b"second")].concat();
    let second = encode::record(b"first").len();
    bytes[second] ^= 1;
    let (data, outcome, mut records) = read(&bytes, &[]);
    assert_eq!((data.len(), outcome), (1, Outcome::Broken));
    assert_eq!(records.offset(), length(second));
    assert_eq!(records.feed(b"", &mut |_| panic!()), Outcome::Broken);
}

#[test]
fn zeros_are_read_again_until_they_are_written() {
    let whole = [encode::record(b"first"), encode::record(b"a second that is longer")].concat();
    for written in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[written..].fill(0);
        bytes.extend([0; 100]);
        let mut data = Vec::new();
        let mut records = Records::default();
        let outcome = records.feed(&bytes, &mut |record| data.push(record.to_vec()));
        assert_eq!(outcome, Outcome::Unwritten, "{written} bytes written");
        let from = usize::try_from(records.position()).unwrap();
        records.feed(&whole[from..], &mut |record| data.push(record.to_vec()));
        // A partly written checksum looks like a wrong one.
        let ends = [16 + 5, whole.len()];
        let begun = ends.iter().any(|end| (end - 3..*end).contains(&written));
        assert_eq!(data.len(), if begun { 1 } else { 2 }, "{written} bytes written");
    }
}

#[test]
fn oversized_record_is_skipped_without_being_held() {
    let large = vec![7; usize::try_from(MAX_RECORD_LEN).unwrap() + 1];
    let bytes =
        [encode::record(b"first"), encode::record(&large), encode::record(b"last")].concat();
    let (data, outcome, records) = read(&bytes, &[100_000, 3, 1, 1_000_000]);
    assert_eq!((data, outcome), (vec![b"first".to_vec(), b"last".to_vec()], Outcome::Going));
    assert_eq!(records.met(), Met { whole: 2, damaged: 0, oversized: 1 });

    let mut records = Records::default();
    let mut data = Vec::new();
    records.feed(&bytes[..200], &mut |record| data.push(record.to_vec()));
    assert_eq!(records.position(), 200);
    records.jump();
    let from = usize::try_from(records.position()).unwrap();
    records.feed(&bytes[from..], &mut |record| data.push(record.to_vec()));
    assert_eq!(data, [b"first".to_vec(), b"last".to_vec()]);
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..10),
        flip in prop::option::of(any::<prop::sample::Index>()),
        pieces in prop::collection::vec(0_usize..40, 0..50),
    ) {
        let mut bytes: Vec<u8> = data.iter().flat_map(|data| encode::record(data)).collect();
        if let Some(at) = flip.filter(|_| !bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] ^= 0x10;
        } else {
            prop_assert_eq!(&read(&bytes, &[]).0, &data);
        }
        let (whole, split) = (read(&bytes, &[]), read(&bytes, &pieces));
        prop_assert_eq!((whole.0, whole.1), (split.0, split.1));
        prop_assert_eq!((whole.2.offset(), whole.2.met()), (split.2.offset(), split.2.met()));
    }

    #[test]
    fn random_bytes_are_not_held(noise in prop::collection::vec(any::<u8>(), 0..2000)) {
        let (_, _, records) = read(&noise, &[]);
        prop_assert!(records.held.capacity() <= 4096);
    }
}
