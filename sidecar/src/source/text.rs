//! A stream of text that is read for a job.

use std::sync::Arc;

use paceline_reporter::wire::Source;

use crate::desk::SourceId;
use crate::grammar::{Detector, Patterns, Reader};
use crate::job::Job;
use crate::terminal::wrapping::Stream;

/// Text on its way to a job.
#[derive(Debug)]
pub struct Text {
    job: Arc<Job>,
    source: SourceId,
    patterns: Patterns,
    reader: Reader,
    bytes: u64,
    /// What the readers before this one have read.
    earlier: (u64, u64),
    /// Something was read that may not have ended.
    pending: bool,
}

impl Text {
    /// The text of a source.
    pub fn new(job: Arc<Job>, source: SourceId, patterns: Patterns) -> Self {
        let reader = Reader::new(Detector::new(patterns.clone()));
        Self { job, source, patterns, reader, bytes: 0, earlier: (0, 0), pending: false }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut listening = self.job.listen(self.source);
        self.reader.feed(bytes, &mut |observation| listening.take(observation));
        drop(listening);
        self.fed(bytes);
    }

    /// Takes the next bytes of one of a program's two outputs, which belong together: a trainer
    /// prints its losses to one and the bar with their step to the other.
    pub fn feed_from(&mut self, stream: Stream, bytes: &[u8]) {
        let mut listening = self.job.listen(self.source);
        self.reader.feed_from(stream, bytes, &mut |observation| listening.take(observation));
        drop(listening);
        self.fed(bytes);
    }

    fn fed(&mut self, bytes: &[u8]) {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.pending = true;
        self.describe();
    }

    /// Reads what has not ended, since nothing has come for a moment.
    pub fn flush(&mut self) {
        if self.pending {
            self.pending = false;
            let mut listening = self.job.listen(self.source);
            self.reader.flush(&mut |observation| listening.take(observation));
            drop(listening);
            self.describe();
        }
    }

    /// Whether something was read that may not have ended.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// What comes next does not continue what came before.
    pub fn restart(&mut self) {
        self.finish();
        let counts = self.reader.detector().counts();
        self.earlier.0 += counts.lines;
        self.earlier.1 += counts.unread;
        self.reader = Reader::new(Detector::new(self.patterns.clone()));
    }

    /// The text has ended.
    pub fn finish(&mut self) {
        let mut listening = self.job.listen(self.source);
        self.reader.finish(&mut |observation| listening.take(observation));
        drop(listening);
        self.describe();
    }

    fn describe(&self) {
        let detector = self.reader.detector();
        let (counts, matched) = (detector.counts(), detector.matched());
        self.job.describe(self.source, |known: &mut Source| {
            known.up = true;
            known.bytes = self.bytes;
            known.lines = self.earlier.0 + counts.lines;
            known.errors = self.earlier.1 + counts.unread;
            known.confidence = matched.map(|matched| matched.confidence).or(known.confidence);
            if let Some(matched) = matched.filter(|m| known.grammar.as_deref() != Some(m.name)) {
                known.grammar = Some(matched.name.to_owned());
            }
        });
    }
}
