//! Lines of a log that are not read although they have numbers.

use paceline_grammar::{Detector, Fate, Patterns, Reader, Traced};
use paceline_lines::terminal::wrapping::Stream;

use super::numbers::numbers;

/// The most lines that are kept.
const MAX_LINES: usize = 200;
/// The most lines that are looked at.
const MAX_SEEN: usize = 4000;
/// Longer lines are not kept.
const MAX_LEN: usize = 1000;

/// A bounded sample of a log's lines with numbers that no grammar reads.
#[derive(Debug)]
pub struct Sample {
    reader: Reader,
    seen: usize,
    lines: Vec<String>,
}

impl Sample {
    /// An empty sample.
    pub fn new(patterns: Patterns) -> Self {
        let mut reader = Reader::new(Detector::new(patterns));
        reader.keep_trace();
        Self { reader, seen: 0, lines: Vec::new() }
    }

    /// Takes the next bytes of a log, or of one of a program's two outputs.
    pub fn feed(&mut self, stream: Option<Stream>, bytes: &[u8]) {
        if self.is_full() {
            return;
        }
        match stream {
            Some(stream) => self.reader.feed_from(stream, bytes, &mut |_| {}),
            None => self.reader.feed(bytes, &mut |_| {}),
        }
        let traced = self.reader.trace();
        self.seen += traced.len();
        let lines = traced.into_iter().filter(is_unread_report).map(|traced| traced.text);
        self.lines.extend(lines.take(MAX_LINES.saturating_sub(self.lines.len())));
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= MAX_LINES || self.seen >= MAX_SEEN
    }
}

/// Whether a line has numbers and was not read.
pub(super) fn is_unread_report(traced: &Traced) -> bool {
    matches!(traced.fate, Fate::Unknown | Fate::Mention)
        && traced.text.len() <= MAX_LEN
        && !numbers(&traced.text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unread_lines_with_numbers_are_kept_up_to_a_limit() {
        let mut sample = Sample::new(Patterns::default());
        sample.feed(None, b"loading\nobj 1.5 at 3\niter 1: loss 2.5, time 20.00ms\nobj 1.4 at 4\n");
        assert_eq!(sample.lines(), ["obj 1.5 at 3", "obj 1.4 at 4"]);
        let many = "obj 1.25 at 5\n".repeat(1000);
        sample.feed(Some(Stream::Stderr), many.as_bytes());
        assert_eq!(sample.lines().len(), MAX_LINES);
    }
}
