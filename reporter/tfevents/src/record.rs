//! The records of an event file: a length, its checksum, that many bytes, their checksum.

/// The masked CRC32C of the format: rotated and shifted, so that data may contain its own
/// checksums.
pub fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// Appends a record with this data.
pub fn append(to: &mut Vec<u8>, data: &[u8]) {
    let size = u64::try_from(data.len()).unwrap_or(u64::MAX).to_le_bytes();
    for part in [&size[..], &masked(&size), data, &masked(data)] {
        to.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_that_of_the_format() {
        // CRC-32C's check value, from its specification, before the mask.
        let plain = u32::from_le_bytes(masked(b"123456789")).wrapping_sub(0xa282_ead8);
        assert_eq!(plain.rotate_left(15), 0xe306_9283);
    }

    #[test]
    fn record_frames_its_data() {
        let mut all = Vec::new();
        append(&mut all, b"abc");
        assert_eq!(all.len(), 8 + 4 + 3 + 4);
        assert_eq!(all[..8], 3_u64.to_le_bytes());
        assert_eq!(all[8..12], masked(&3_u64.to_le_bytes()));
        assert_eq!(&all[12..15], b"abc");
        assert_eq!(all[15..], masked(b"abc"));
    }
}
