//! Encodes event files as the frameworks do, for tests.

use paceline_tfevents::record::masked;

/// A record around `data`.
pub(crate) fn record(data: &[u8]) -> Vec<u8> {
    let size = u64::try_from(data.len()).unwrap().to_le_bytes();
    [&size[..], &masked(&size), data, &masked(data)].concat()
}

pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A field of wire type 0.
pub(crate) fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

/// A field of wire type 1.
pub(crate) fn double(field: u64, number: f64) -> Vec<u8> {
    [varint(field << 3 | 1), number.to_le_bytes().to_vec()].concat()
}

/// A field of wire type 5.
pub(crate) fn float(field: u64, number: f32) -> Vec<u8> {
    [varint(field << 3 | 5), number.to_le_bytes().to_vec()].concat()
}

/// A field of wire type 2.
pub(crate) fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(u64::try_from(bytes.len()).unwrap()), bytes.to_vec()].concat()
}

/// A value as torch and tensorboardX write it.
pub(crate) fn simple(tag: &str, value: f32) -> Vec<u8> {
    [bytes(1, tag.as_bytes()), float(2, value)].concat()
}

/// A value as TensorFlow 2 writes it.
pub(crate) fn tensor(tag: &str, value: f32) -> Vec<u8> {
    let tensor = [number(1, 1), bytes(2, &[]), bytes(4, &value.to_le_bytes())].concat();
    with_plugin(tag, &tensor, "scalars")
}

pub(crate) fn with_plugin(tag: &str, tensor: &[u8], plugin: &str) -> Vec<u8> {
    let metadata = bytes(1, &bytes(1, plugin.as_bytes()));
    [bytes(1, tag.as_bytes()), bytes(8, tensor), bytes(9, &metadata)].concat()
}

/// An event. A step of 0 is left out, as it is on the wire.
pub(crate) fn event(wall_time: f64, step: u64, values: &[Vec<u8>]) -> Vec<u8> {
    let summary: Vec<u8> = values.iter().flat_map(|value| bytes(1, value)).collect();
    let step = if step == 0 { Vec::new() } else { number(2, step) };
    [double(1, wall_time), step, bytes(5, &summary)].concat()
}

/// The first record of a file.
pub(crate) fn version(wall_time: f64) -> Vec<u8> {
    record(&[double(1, wall_time), bytes(3, b"brain.Event:2")].concat())
}

/// A record that marks a restart of the training at `step`.
pub(crate) fn start(wall_time: f64, step: u64) -> Vec<u8> {
    record(&[double(1, wall_time), number(2, step), bytes(7, &number(1, 1))].concat())
}

/// The records of `steps` of one tag, one second per step.
pub(crate) fn series(tag: &str, steps: std::ops::Range<u64>, offset: f32) -> Vec<u8> {
    let record_of = |step: u64| {
        let seconds = u32::try_from(step).unwrap();
        let value = f32::from(u16::try_from(step).unwrap()) + offset;
        record(&event(1.7e9 + f64::from(seconds), step, &[simple(tag, value)]))
    };
    steps.flat_map(record_of).collect()
}
