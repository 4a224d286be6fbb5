//! Parses server-sent events as far as an endpoint uses them: bytes in, data out. The memory is
//! bounded whatever comes.

use std::collections::VecDeque;

/// Parses events from bytes as they come.
#[derive(Debug)]
pub(super) struct Lines {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The data of the event that has not ended yet.
    data: Option<Vec<u8>>,
    ended: VecDeque<Vec<u8>>,
    most: usize,
}

/// A line or an event is longer than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    /// A parser of lines and events of at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { line: Vec::new(), data: None, ended: VecDeque::new(), most }
    }

    /// Takes in the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.extend_line(line)?;
            bytes = rest.get(1..).unwrap_or_default();
            self.end_line()?;
        }
        self.extend_line(bytes)
    }

    /// The data of the next complete event.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        self.ended.pop_front()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.most {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), TooLong> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if line.is_empty() {
            self.ended.extend(self.data.take());
        } else if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let data = self.data.get_or_insert_default();
            if !data.is_empty() {
                data.push(b'\n');
            }
            if data.len() + value.len() > self.most {
                return Err(TooLong);
            }
            data.extend_from_slice(value);
        }
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(100);
        for piece in pieces {
            lines.take(piece).unwrap();
        }
        std::iter::from_fn(|| lines.next()).map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_parsed_however_their_bytes_are_split() {
        let text = b"data: {\"a\": 1}\n\n: a comment\nevent: progress\ndata:{}\r\n\r\ndata: lost";
        let expected = ["{\"a\": 1}", "{}"];
        assert_eq!(read(&[text]), expected);
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&single), expected);
    }

    #[test]
    fn data_lines_are_joined_and_events_without_data_skipped() {
        assert_eq!(read(&[b"data: a\ndata: b\n\nid: 7\n\n"]), ["a\nb"]);
    }

    #[test]
    fn endless_line_or_event_is_too_long() {
        let mut lines = Lines::new(100);
        assert_eq!(lines.take(&[b'x'; 101]), Err(TooLong));
        let mut lines = Lines::new(100);
        let line = b"data: 0123456789\n";
        assert!((0..20).any(|_| lines.take(line) == Err(TooLong)));
    }

    proptest! {
        #[test]
        fn parser_never_panics_and_its_memory_is_bounded(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            let mut lines = Lines::new(64);
            for piece in &pieces {
                if lines.take(piece).is_err() {
                    break;
                }
                prop_assert!(lines.line.len() <= 64);
                prop_assert!(lines.data.as_ref().is_none_or(|data| data.len() <= 64));
            }
        }
    }
}
