//! From bytes to observations.

use paceline_lines::observation::Observation;
use paceline_lines::terminal::wrapping::{Stream, may_be_wrapped, unwrap};
use paceline_lines::terminal::{End, Line, LineSplitter};

use super::{Detector, Traced};

/// Reads the bytes of one stream, also of a container runtime's log file.
#[derive(Debug, Default)]
pub struct Reader {
    splitter: LineSplitter,
    /// The two outputs of a program.
    inner: Inner,
    detector: Detector,
}

#[derive(Debug, Default)]
struct Inner {
    stdout: LineSplitter,
    stderr: LineSplitter,
    used: bool,
}

impl Reader {
    /// Creates a reader that passes lines to `detector`.
    pub fn new(detector: Detector) -> Self {
        Self { detector, ..Self::default() }
    }

    /// Takes the next bytes and passes their observations to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Observation)) {
        let Self { splitter, inner, detector } = self;
        splitter.feed(bytes, &mut |line| inner.line(line, detector, sink));
    }

    /// Takes the next bytes of one of a program's two outputs. The lines of both are read in the
    /// order in which they end.
    ///
    /// The Hugging Face trainer prints losses to one output, and their step is in a bar on the
    /// other. If both have new bytes, feed standard output first.
    pub fn feed_from(&mut self, stream: Stream, bytes: &[u8], sink: &mut impl FnMut(&Observation)) {
        let Self { inner, detector, .. } = self;
        inner.splitter(stream).feed(bytes, &mut |line| read(line, None, detector, sink));
    }

    /// `bytes` bytes of one of a program's two outputs are missing. The line around them is not read.
    pub fn gap(&mut self, stream: Stream, bytes: u64) {
        self.inner.splitter(stream).gap(bytes);
    }

    /// Reads an incomplete line or frame as far as possible. For use when the source has been quiet
    /// for some milliseconds.
    pub fn flush(&mut self, sink: &mut impl FnMut(&Observation)) {
        let Self { splitter, inner, detector } = self;
        if inner.used {
            inner.stdout.flush(&mut |line| read(line, None, detector, sink));
            inner.stderr.flush(&mut |line| read(line, None, detector, sink));
        } else {
            splitter.flush(&mut |line| read(line, None, detector, sink));
        }
        flush(detector, sink);
    }

    /// Reads the pending text as a complete line. For use when the source has ended.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Observation)) {
        let Self { splitter, inner, detector } = self;
        splitter.finish(&mut |line| inner.line(line, detector, sink));
        inner.stdout.finish(&mut |line| read(line, None, detector, sink));
        inner.stderr.finish(&mut |line| read(line, None, detector, sink));
        flush(detector, sink);
    }

    /// The detector that reads the lines.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The number of lines that are not read because they are too long or incomplete.
    pub fn cut_lines(&self) -> u64 {
        let splitters = [&self.splitter, &self.inner.stdout, &self.inner.stderr];
        splitters.iter().map(|splitter| splitter.cut_lines()).sum()
    }

    /// Keeps what is made of each line, for [`Reader::trace`].
    pub fn keep_trace(&mut self) {
        self.detector.keep_trace();
    }

    /// Takes what was made of the lines since the last call.
    pub fn trace(&mut self) -> Vec<Traced> {
        self.detector.take_trace()
    }

    /// The number of dropped bytes of lines that are too long. Such lines are not read.
    pub fn cut(&self) -> u64 {
        self.splitter.cut() + self.inner.stdout.cut() + self.inner.stderr.cut()
    }
}

impl Inner {
    fn splitter(&mut self, stream: Stream) -> &mut LineSplitter {
        self.used = true;
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// Reads a line of the stream, which may be wrapped by a container runtime.
    fn line(
        &mut self,
        line: Line<'_>,
        detector: &mut Detector,
        sink: &mut impl FnMut(&Observation),
    ) {
        if !may_be_wrapped(line.text) {
            return read(line, None, detector, sink);
        }
        let Some(piece) = unwrap(line.text) else { return read(line, None, detector, sink) };
        let splitter = self.splitter(piece.stream);
        let mut sink = |line: Line<'_>| read(line, piece.at, detector, &mut *sink);
        splitter.feed(piece.text.as_bytes(), &mut sink);
        if piece.newline {
            splitter.feed(b"\n", &mut sink);
        }
    }
}

/// Maximum nesting of the objects of log collectors.
const MAX_DEPTH: usize = 3;

/// Takes all observations that were waiting for another line.
fn flush(detector: &mut Detector, sink: &mut impl FnMut(&Observation)) {
    while let Some(found) = detector.flush() {
        sink(&found);
    }
}

fn read(
    line: Line<'_>,
    at: Option<f64>,
    detector: &mut Detector,
    sink: &mut impl FnMut(&Observation),
) {
    if let Some(message) = one(line, at, detector, sink, true) {
        nested(&message, at, detector, sink, 1);
    }
}

/// Reads the text in an object of a log collector: it has prefixes, colours and frames of its own.
fn nested(
    message: &str,
    at: Option<f64>,
    detector: &mut Detector,
    sink: &mut impl FnMut(&Observation),
    depth: usize,
) {
    let mut splitter = LineSplitter::new();
    let mut line = |line: Line<'_>| {
        if let Some(message) = one(line, at, detector, &mut *sink, depth < MAX_DEPTH) {
            nested(&message, at, detector, &mut *sink, depth + 1);
        }
    };
    splitter.feed(message.as_bytes(), &mut line);
    splitter.finish(&mut line);
}

/// Reads a line. Returns the text in it if it is an object of a log collector; `may_nest`: such a text
/// is read.
#[inline]
fn one(
    line: Line<'_>,
    at: Option<f64>,
    detector: &mut Detector,
    sink: &mut impl FnMut(&Observation),
    may_nest: bool,
) -> Option<String> {
    // The end of a number may have been cut off.
    if line.cut > 0 {
        return None;
    }
    let keeps_trace = detector.keeps_trace();
    let unread = if keeps_trace { detector.counts().unread } else { 0 };
    let mut passed = 0;
    let mut pass = |found: &Observation| {
        passed += 1;
        match at {
            Some(_) if found.at.is_none() => sink(&Observation { at, ..found.clone() }),
            _ => sink(found),
        }
    };
    if let Some(found) = detector.read(line.text, line.end) {
        pass(found);
    }
    if let Some(found) = detector.further() {
        pass(&found);
    }
    let message = detector.message().filter(|_| may_nest);
    // Of an object of a log collector, the text in it is recorded.
    if message.is_none() && keeps_trace && line.end != End::Flush {
        detector.record(line.text, unread, passed);
    }
    message
}

#[cfg(test)]
mod tests;
