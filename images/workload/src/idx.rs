//! IDX files: the format in which MNIST and its relatives are published, plain or compressed.
//!
//! Two zero bytes, the element type, the number of dimensions, the dimensions as 32-bit big-endian
//! numbers, then the elements. Only unsigned bytes (type 8) are read: all these data sets are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The element type of unsigned bytes.
const UNSIGNED_BYTE: u8 = 8;
/// More dimensions than any data set has; it bounds the claims of a header.
const MAX_DIMENSIONS: u8 = 4;
/// The largest file that is read, in bytes: twenty times the largest of MNIST's.
const MAX_BYTES: u64 = 1 << 30;
/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An array of bytes with its dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The dimensions, outermost first.
    pub dimensions: Vec<usize>,
    /// The elements; as many as the product of the dimensions.
    pub data: Vec<u8>,
}

/// The reason why a file is not an array of bytes.
#[derive(Debug, thiserror::Error)]
pub enum IdxError {
    /// The file could not be read or decompressed.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The first two bytes are not zero.
    #[error("not an IDX file")]
    Magic,
    /// The elements are not unsigned bytes.
    #[error("elements of type {0}, expected unsigned bytes (8)")]
    ElementType(u8),
    /// No dimension, or more than a data set can have.
    #[error("{0} dimensions, expected 1 to {MAX_DIMENSIONS}")]
    Dimensions(u8),
    /// The header claims more than the limit.
    #[error("the header claims more than {MAX_BYTES} bytes")]
    TooLarge,
    /// The file ends before its last element.
    #[error("{got} bytes of data, but the header claims {claimed}")]
    Truncated {
        /// The size in the header.
        claimed: u64,
        /// The actual size.
        got: usize,
    },
    /// The file continues after its last element.
    #[error("more data than the header claims")]
    TrailingData,
}

impl Idx {
    /// Reads a file, compressed by gzip or not.
    pub fn read(path: &Path) -> Result<Self, IdxError> {
        let mut file = BufReader::new(File::open(path)?);
        if file.fill_buf()?.starts_with(&GZIP) {
            Self::parse(MultiGzDecoder::new(file))
        } else {
            Self::parse(file)
        }
    }

    /// Reads an array. Memory grows with the actual data, not with the header's claim.
    pub fn parse(mut source: impl Read) -> Result<Self, IdxError> {
        let [zero, zero_too, element_type, rank] = read_four(&mut source)?;
        if (zero, zero_too) != (0, 0) {
            return Err(IdxError::Magic);
        }
        if element_type != UNSIGNED_BYTE {
            return Err(IdxError::ElementType(element_type));
        }
        if !(1..=MAX_DIMENSIONS).contains(&rank) {
            return Err(IdxError::Dimensions(rank));
        }
        let mut dimensions = Vec::new();
        let mut claimed = 1_u64;
        for _ in 0..rank {
            let dimension = u32::from_be_bytes(read_four(&mut source)?);
            claimed = claimed.checked_mul(dimension.into()).ok_or(IdxError::TooLarge)?;
            dimensions.push(usize::try_from(dimension).map_err(|_| IdxError::TooLarge)?);
        }
        if claimed > MAX_BYTES {
            return Err(IdxError::TooLarge);
        }
        let mut data = Vec::new();
        let got = source.by_ref().take(claimed).read_to_end(&mut data)?;
        if u64::try_from(got).is_ok_and(|got| got < claimed) {
            return Err(IdxError::Truncated { claimed, got });
        }
        if source.read(&mut [0])? > 0 {
            return Err(IdxError::TrailingData);
        }
        Ok(Self { dimensions, data })
    }
}

fn read_four(source: &mut impl Read) -> Result<[u8; 4], IdxError> {
    let mut bytes = [0; 4];
    match source.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(IdxError::Magic),
        result => result.map(|()| bytes).map_err(IdxError::Io),
    }
}

#[cfg(test)]
mod tests;
