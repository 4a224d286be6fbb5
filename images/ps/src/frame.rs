//! The wire format: frames with a head and a body, all numbers little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `PLPS` |
//! | 1 | version of this form: 1 |
//! | 1 | kind |
//! | 2 | 0 |
//! | 8 | a number, by kind |
//! | 4 | bytes of the body |
//! | … | the body: numbers of single precision, unless said otherwise |
//!
//! | kind | from | number | body | answer |
//! |---|---|---|---|---|
//! | 1 hello | worker | the model's fingerprint | parameters of the whole model (8 bytes), which part of how many is meant (2 and 2 bytes) | welcome |
//! | 2 welcome | server | version | 1 byte: whether first parameters are wanted | |
//! | 3 start | worker | 0 | first parameters | parameters |
//! | 4 pull | worker | 0 | none | parameters |
//! | 5 push | worker | the loss, as the bits of a double | gradient | parameters, done |
//! | 6 parameters | server | version | parameters | |
//! | 7 done | server | version | parameters; no more gradients are wanted | |
//! | 8 refused | server | 0 | why, in words; the connection ends | |

use std::io::{self, Read, Write};

use crate::slices::Slice;

const MAGIC: [u8; 4] = *b"PLPS";
const VERSION: u8 = 1;
const HEAD: usize = 20;
/// No model has more parameters: a body has at most 1 GiB.
pub const MAX_PARAMETERS: usize = 1 << 28;
/// A hello's body.
const HELLO: usize = 12;
/// The longest text of a refusal, in bytes; the rest is cut off.
const MAX_WORDS: usize = 1000;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A worker names its model.
    Hello,
    /// The server accepts the worker.
    Welcome,
    /// First parameters.
    Start,
    /// A worker asks for parameters.
    Pull,
    /// A gradient.
    Push,
    /// Parameters.
    Parameters,
    /// The last parameters.
    Done,
    /// The worker is refused.
    Refused,
}

const KINDS: [Kind; 8] = [
    Kind::Hello,
    Kind::Welcome,
    Kind::Start,
    Kind::Pull,
    Kind::Push,
    Kind::Parameters,
    Kind::Done,
    Kind::Refused,
];

/// A frame without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its kind.
    pub kind: Kind,
    /// Its meaning depends on the kind.
    pub number: u64,
    /// The length of the body in bytes.
    pub length: usize,
}

/// The reason why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other end speaks another protocol.
    #[error("not a parameter server or worker")]
    Magic,
    /// The other end is of another release.
    #[error("invalid frame version {0}: expected 1")]
    Version(u8),
    /// The kind is unknown.
    #[error("invalid frame kind {0}: expected 1 to 8")]
    Kind(u8),
    /// The body has another length than expected.
    #[error("invalid frame body of {0} bytes")]
    Length(usize),
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl Head {
    /// Reads a head.
    pub fn parse(bytes: &[u8; HEAD]) -> Result<Self, FrameError> {
        let [a, b, c, d, version, kind, _, _, rest @ ..] = *bytes;
        if [a, b, c, d] != MAGIC {
            return Err(FrameError::Magic);
        }
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let place = usize::from(kind).checked_sub(1);
        let known = place.and_then(|place| KINDS.get(place)).ok_or(FrameError::Kind(kind))?;
        let [n0, n1, n2, n3, n4, n5, n6, n7, l0, l1, l2, l3] = rest;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > 4 * MAX_PARAMETERS {
            return Err(FrameError::Length(length));
        }
        let number = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        Ok(Self { kind: *known, number, length })
    }

    /// Waits for a frame's head.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; HEAD];
        from.read_exact(&mut bytes)?;
        Ok(Self::parse(&bytes)?)
    }

    fn put(self, into: &mut Vec<u8>) {
        let kind = KINDS.iter().zip(1_u8..).find(|(kind, _)| **kind == self.kind);
        into.clear();
        into.extend_from_slice(&MAGIC);
        into.extend_from_slice(&[VERSION, kind.map_or(0, |(_, place)| place), 0, 0]);
        into.extend_from_slice(&self.number.to_le_bytes());
        into.extend_from_slice(&u32::try_from(self.length).unwrap_or(u32::MAX).to_le_bytes());
    }
}

/// A buffer to write frames in and to read them into, whose memory is reused.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// A frame of numbers.
    pub fn numbers(&mut self, kind: Kind, number: u64, body: &[f32]) -> &[u8] {
        Head { kind, number, length: 4 * body.len() }.put(&mut self.0);
        self.0.extend(body.iter().flat_map(|one| one.to_le_bytes()));
        &self.0
    }

    /// A frame of bytes.
    pub fn bytes(&mut self, kind: Kind, number: u64, body: &[u8]) -> &[u8] {
        Head { kind, number, length: body.len() }.put(&mut self.0);
        self.0.extend_from_slice(body);
        &self.0
    }

    /// The frame that was written last.
    pub fn frame(&self) -> &[u8] {
        &self.0
    }

    /// The text of a refusal.
    pub fn words(&mut self, words: &str) -> &[u8] {
        let end = words.floor_char_boundary(MAX_WORDS);
        self.bytes(Kind::Refused, 0, words.get(..end).unwrap_or_default().as_bytes())
    }

    /// Reads the body of a frame that must have exactly this many numbers.
    pub fn read_numbers(
        &mut self,
        from: &mut impl Read,
        head: Head,
        into: &mut [f32],
    ) -> io::Result<()> {
        if head.length != 4 * into.len() {
            return Err(FrameError::Length(head.length).into());
        }
        self.read(from, head.length)?;
        for (number, bytes) in into.iter_mut().zip(self.0.as_chunks::<4>().0) {
            *number = f32::from_le_bytes(*bytes);
        }
        Ok(())
    }

    /// Reads a text.
    pub fn read_words(&mut self, from: &mut impl Read, head: Head) -> io::Result<String> {
        self.read(from, head.length.min(MAX_WORDS))?;
        Ok(String::from_utf8_lossy(&self.0).into_owned())
    }

    fn read(&mut self, from: &mut impl Read, length: usize) -> io::Result<()> {
        self.0.resize(length, 0);
        from.read_exact(&mut self.0)
    }
}

/// What a worker sends about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The fingerprint of the names and shapes of the model's parameters.
    pub fingerprint: u64,
    /// The number of parameters of the whole model.
    pub parameters: usize,
    /// The part of them that it expects from this server.
    pub slice: Slice,
}

impl Hello {
    /// Writes it as a frame.
    pub fn send(self, to: &mut impl Write, buffer: &mut Buffer) -> io::Result<()> {
        let mut body = u64::try_from(self.parameters).unwrap_or(u64::MAX).to_le_bytes().to_vec();
        body.extend_from_slice(&self.slice.index().to_le_bytes());
        body.extend_from_slice(&self.slice.count().to_le_bytes());
        to.write_all(buffer.bytes(Kind::Hello, self.fingerprint, &body))
    }

    /// Waits for one.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let head = Head::read(from)?;
        if head.kind != Kind::Hello || head.length != HELLO {
            return Err(FrameError::Length(head.length).into());
        }
        let mut body = [0; HELLO];
        from.read_exact(&mut body)?;
        let [p0, p1, p2, p3, p4, p5, p6, p7, i0, i1, o0, o1] = body;
        let parameters = u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]);
        let parameters = usize::try_from(parameters).unwrap_or(usize::MAX);
        let slice = Slice::new(u16::from_le_bytes([i0, i1]), u16::from_le_bytes([o0, o1]));
        match slice {
            Some(slice) if parameters <= MAX_PARAMETERS => {
                Ok(Self { fingerprint: head.number, parameters, slice })
            }
            _ => Err(FrameError::Length(parameters).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frame_has_documented_layout() {
        let mut buffer = Buffer::default();
        let frame = buffer.numbers(Kind::Push, 258, &[1.0]);
        assert_eq!(&frame[..8], b"PLPS\x01\x05\0\0");
        assert_eq!(&frame[8..], [2, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn invalid_heads_are_distinguished() {
        let good: [u8; HEAD] = Buffer::default().bytes(Kind::Pull, 0, &[]).try_into().unwrap();
        let with = |place: usize, byte| {
            let mut bytes = good;
            bytes[place] = byte;
            Head::parse(&bytes)
        };
        assert_eq!(with(0, b'G'), Err(FrameError::Magic));
        assert_eq!(with(4, 2), Err(FrameError::Version(2)));
        assert_eq!(with(5, 0), Err(FrameError::Kind(0)));
        assert_eq!(with(5, 9), Err(FrameError::Kind(9)));
        assert_eq!(with(19, 0xff), Err(FrameError::Length(0xff00_0000)));
    }

    #[test]
    fn body_of_other_length_is_refused() {
        let mut buffer = Buffer::default();
        let frame = buffer.numbers(Kind::Parameters, 7, &[1.0, 2.0]).to_vec();
        let read = |count: usize| {
            let (mut from, mut into) = (&frame[..], vec![0.0; count]);
            let head = Head::read(&mut from).unwrap();
            Buffer::default().read_numbers(&mut from, head, &mut into).map(|()| into)
        };
        assert_eq!(read(2).unwrap(), [1.0, 2.0]);
        assert!(read(1).is_err() && read(3).is_err());
    }

    proptest! {
        #[test]
        fn hello_round_trips(fingerprint: u64, parameters in 0..MAX_PARAMETERS, of in 1_u16..9) {
            let hello = Hello { fingerprint, parameters, slice: Slice::new(of - 1, of).unwrap() };
            let mut frame = Vec::new();
            hello.send(&mut frame, &mut Buffer::default()).unwrap();
            prop_assert_eq!(Hello::read(&mut &frame[..]).unwrap(), hello);
        }

        #[test]
        fn noise_is_refused(noise: Vec<u8>) {
            prop_assert!(Hello::read(&mut &noise[..]).is_err() || noise.starts_with(&MAGIC));
        }
    }
}
