//! The fields of a protobuf message.

/// A message that is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protobuf message")]
pub struct Malformed;

/// The contents of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// Goes over the fields of a message in the order in which they stand.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let low = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if low.checked_shl(shift).is_none_or(|bits| bits >> shift != low) {
                return None;
            }
            number |= low << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn field(&mut self) -> Option<(u64, Content<'a>)> {
        let key = self.varint()?;
        let content = match key & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(self.chunk()?),
            2 => {
                let size = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(size)?;
                self.0 = rest;
                Content::Bytes(bytes)
            }
            5 => Content::Fixed32(self.chunk()?),
            _ => return None,
        };
        Some((key >> 3, content))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Content<'a>), Malformed>;

    /// After a malformed field nothing more comes.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Malformed))
    }
}
