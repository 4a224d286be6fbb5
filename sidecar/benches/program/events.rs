//! Event files in the form of TensorBoard's writers: one event per scalar.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `steps` of so many tags into a new file of `folder` and returns its size. Half of the
/// tags are losses.
pub(crate) fn write(folder: &Path, tags: u32, steps: u16) -> io::Result<u64> {
    fs::create_dir_all(folder)?;
    let path = folder.join("events.out.tfevents.1767261600.host");
    let mut file = BufWriter::new(File::create(&path)?);
    file.write_all(&record(&[time(0), field(3, b"brain.Event:2")].concat()))?;
    for step in 1..=steps {
        for tag in 0..tags {
            let name = if tag % 2 == 0 { "loss" } else { "grad_norm" };
            let name = format!("layer_{tag}/{name}");
            let float = (1.0 / f32::from(step)).to_le_bytes();
            let value = [field(1, name.as_bytes()), [&[0x15], &float[..]].concat()].concat();
            let number = [vec![0x10], varint(step.into())].concat();
            file.write_all(&record(&[time(step), number, field(5, &field(1, &value))].concat()))?;
        }
    }
    file.flush()?;
    Ok(fs::metadata(path)?.len())
}

/// A length, its checksum, the data, their checksum.
fn record(data: &[u8]) -> Vec<u8> {
    let size = u64::try_from(data.len()).unwrap_or_default().to_le_bytes();
    [&size[..], &masked(&size), data, &masked(data)].concat()
}

/// The masked checksum of the format, so that data may contain checksums.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// When an event was written.
fn time(step: u16) -> Vec<u8> {
    [&[0x09], &(1_767_261_600.0 + f64::from(step)).to_le_bytes()[..]].concat()
}

/// A field that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = varint(u64::try_from(bytes.len()).unwrap_or_default());
    [&[number << 3 | 2], &length[..], bytes].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
    bytes
}
