//! From bytes to observations.

use super::Detector;
use crate::observation::Observation;
use crate::terminal::wrapping::{Stream, unwrap};
use crate::terminal::{Line, Screen};

/// Reads the bytes of one stream, also those of a container runtime's log file.
#[derive(Debug, Default)]
pub struct Reader {
    screen: Screen,
    /// What a program wrote to its two outputs.
    inner: Inner,
    detector: Detector,
}

#[derive(Debug, Default)]
struct Inner {
    stdout: Screen,
    stderr: Screen,
    used: bool,
}

impl Reader {
    /// A reader of lines that `detector` reads.
    pub fn new(detector: Detector) -> Self {
        Self { detector, ..Self::default() }
    }

    /// Takes the next bytes and hands what they say to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Observation)) {
        let Self { screen, inner, detector } = self;
        screen.feed(bytes, &mut |line| inner.line(line, detector, sink));
    }

    /// Takes the next bytes that a program wrote to one of its two outputs. Lines of both are read
    /// as they end, and each output may go on in the middle of a line of the other.
    ///
    /// Where the Hugging Face trainer prints losses, their step is in a bar on the other output.
    /// Where both have brought bytes, standard output is to be fed first.
    pub fn feed_from(&mut self, stream: Stream, bytes: &[u8], sink: &mut impl FnMut(&Observation)) {
        let Self { inner, detector, .. } = self;
        inner.screen(stream).feed(bytes, &mut |line| read(line, None, detector, sink));
    }

    /// Reads what can be read of a line or frame that has not ended, for when the source has been
    /// quiet for some milliseconds.
    pub fn flush(&mut self, sink: &mut impl FnMut(&Observation)) {
        let Self { screen, inner, detector } = self;
        if inner.used {
            inner.stdout.flush(&mut |line| read(line, None, detector, sink));
            inner.stderr.flush(&mut |line| read(line, None, detector, sink));
        } else {
            screen.flush(&mut |line| read(line, None, detector, sink));
        }
        detector.flush().iter().for_each(sink);
    }

    /// Reads what is pending as a line, for when the source has ended in good order.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Observation)) {
        let Self { screen, inner, detector } = self;
        screen.finish(&mut |line| inner.line(line, detector, sink));
        inner.stdout.finish(&mut |line| read(line, None, detector, sink));
        inner.stderr.finish(&mut |line| read(line, None, detector, sink));
        detector.flush().iter().for_each(sink);
    }

    /// What reads the lines, to ask what it has found out.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// How many bytes of lines that are too long were dropped. Such lines are not read.
    pub fn cut(&self) -> u64 {
        self.screen.cut() + self.inner.stdout.cut() + self.inner.stderr.cut()
    }
}

impl Inner {
    fn screen(&mut self, stream: Stream) -> &mut Screen {
        self.used = true;
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// A line as it stands in the stream.
    fn line(
        &mut self,
        line: Line<'_>,
        detector: &mut Detector,
        sink: &mut impl FnMut(&Observation),
    ) {
        let Some(piece) = unwrap(line.text) else { return read(line, None, detector, sink) };
        let screen = self.screen(piece.stream);
        let mut sink = |line: Line<'_>| read(line, piece.at, detector, &mut *sink);
        screen.feed(piece.text.as_bytes(), &mut sink);
        if piece.newline {
            screen.feed(b"\n", &mut sink);
        }
    }
}

fn read(
    line: Line<'_>,
    at: Option<f64>,
    detector: &mut Detector,
    sink: &mut impl FnMut(&Observation),
) {
    // The end of a number may have been cut off.
    if line.cut > 0 {
        return;
    }
    let Some(found) = detector.read(line.text, line.end) else { return };
    match at {
        Some(_) if found.at.is_none() => sink(&Observation { at, ..found.clone() }),
        _ => sink(found),
    }
}

#[cfg(test)]
mod tests;
