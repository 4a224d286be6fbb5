//! The engine's frames of an attached container's output.
//!
//! Without a terminal, each piece has a header of eight bytes: its stream (1 is stdout, 2 stderr),
//! three zeros and its length in bytes (big endian). With a terminal the headers are absent.

use paceline_lines::terminal::wrapping::Stream;

/// Bytes of a header.
const HEADER: usize = 8;
/// The stream of a piece that was written to stderr.
const STDERR: u8 = 2;

/// Splits a stream of frames into pieces, however it was cut on its way. Holds one header at most.
#[derive(Debug)]
pub(super) struct Frames {
    tty: bool,
    header: Vec<u8>,
    stream: Stream,
    /// Bytes that are still to come of the piece that has begun.
    left: u32,
}

impl Frames {
    /// The output of a container with or without a terminal.
    pub(super) fn new(tty: bool) -> Self {
        Self { tty, header: Vec::with_capacity(HEADER), stream: Stream::Stdout, left: 0 }
    }

    /// Gives the pieces in `bytes` to `take`, in order. A piece may come in several parts.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(Stream, &[u8])) {
        if self.tty {
            take(Stream::Stdout, bytes);
            return;
        }
        while !bytes.is_empty() {
            if self.left == 0 {
                bytes = self.read_header(bytes);
                continue;
            }
            let end = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (part, rest) = bytes.split_at(end);
            self.left = self.left.saturating_sub(u32::try_from(part.len()).unwrap_or(u32::MAX));
            bytes = rest;
            take(self.stream, part);
        }
    }

    /// Takes as much of a header as there is; the bytes behind it.
    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (part, rest) = bytes.split_at((HEADER - self.header.len()).min(bytes.len()));
        self.header.extend_from_slice(part);
        if let Ok([stream, _, _, _, length @ ..]) = <[u8; HEADER]>::try_from(&*self.header) {
            self.stream = if stream == STDERR { Stream::Stderr } else { Stream::Stdout };
            self.left = u32::from_be_bytes(length);
            self.header.clear();
        }
        rest
    }
}
