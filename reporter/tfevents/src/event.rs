//! The messages of TensorFlow's `event.proto` and `summary.proto`, as far as they are written.

/// The version of the format: the first event of every file.
const VERSION: &str = "brain.Event:2";
/// The program that wrote the file, for `source_metadata`.
const WRITER: &str = "paceline";
/// The status of a session that starts.
const START: u64 = 1;

/// One value of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar<'a> {
    /// Its name; TensorBoard groups names by what stands before a slash.
    pub tag: &'a str,
    /// The value. The file keeps it in single precision.
    pub value: f64,
}

/// The first event of a file. `wall_time` is in Unix seconds.
pub fn version(wall_time: f64) -> Vec<u8> {
    let mut event = Message::at(wall_time, 0);
    event.bytes(3, VERSION.as_bytes());
    let mut source = Message::default();
    source.bytes(1, WRITER.as_bytes());
    event.bytes(10, &source.0);
    event.0
}

/// The event that makes values of this and of later steps, written before, obsolete.
pub fn start(wall_time: f64, step: u64) -> Vec<u8> {
    let mut event = Message::at(wall_time, step);
    let mut session = Message::default();
    session.number(1, START);
    event.bytes(7, &session.0);
    event.0
}

/// An event with values.
pub fn scalars(wall_time: f64, step: u64, scalars: &[Scalar<'_>]) -> Vec<u8> {
    let mut summary = Message::default();
    for scalar in scalars {
        let mut value = Message::default();
        value.bytes(1, scalar.tag.as_bytes());
        value.float(2, single(scalar.value));
        summary.bytes(1, &value.0);
    }
    let mut event = Message::at(wall_time, step);
    event.bytes(5, &summary.0);
    event.0
}

/// The nearest number in single precision. What is finite stays finite.
fn single(value: f64) -> f32 {
    let value =
        if value.is_finite() { value.clamp(f32::MIN.into(), f32::MAX.into()) } else { value };
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "the format has single precision, and the range was checked"
    )]
    let single = value as f32;
    single
}

/// The bytes of a message of protocol buffers.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    /// An event of this time, in Unix seconds, and step.
    fn at(wall_time: f64, step: u64) -> Self {
        let mut event = Self::default();
        event.key(1, 1);
        event.0.extend_from_slice(&wall_time.to_le_bytes());
        // The format's steps are signed.
        event.number(2, step.min(i64::MAX.unsigned_abs()));
        event
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, 0);
        self.varint(number);
    }

    fn float(&mut self, field: u64, number: f32) {
        self.key(field, 5);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(bytes);
    }

    /// A field's number with the way in which its value is written.
    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while let (low, true) = (number.to_le_bytes()[0] | 0x80, number >= 0x80) {
            self.0.push(low);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_encoded_as_protocol_buffers() {
        let event = scalars(1.5, 300, &[Scalar { tag: "loss", value: 0.25 }]);
        let mut expected = vec![0x09];
        expected.extend(1.5_f64.to_le_bytes());
        expected.extend([0x10, 0xac, 0x02, 0x2a, 13, 0x0a, 11, 0x0a, 4]);
        expected.extend(b"loss");
        expected.push(0x15);
        expected.extend(0.25_f32.to_le_bytes());
        assert_eq!(event, expected);
    }

    #[test]
    fn finite_value_stays_finite() {
        for value in [1e300, -1e300, f64::MAX, f64::MIN] {
            assert!(single(value).is_finite());
        }
        assert!(single(f64::NAN).is_nan());
        assert!(single(f64::INFINITY).is_infinite());
    }
}
