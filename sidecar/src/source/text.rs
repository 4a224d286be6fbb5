//! A text stream of a job.

use std::sync::Arc;
use std::time::Duration;

use paceline_grammar::{Detector, Patterns, Reader};
use paceline_lines::terminal::wrapping::Stream;
use paceline_reporter::wire::Source;

use super::unread::Unread;
use crate::job::{Age, Job};
use crate::merger::SourceId;
use crate::say::say;

/// Parses text and passes its observations to a job.
#[derive(Debug)]
pub struct Text {
    job: Arc<Job>,
    source: SourceId,
    patterns: Patterns,
    reader: Reader,
    bytes: u64,
    /// Lines and unread lines of earlier readers.
    earlier: (u64, u64),
    /// Whether the last line may be incomplete.
    pending: bool,
    /// Until a loss is read, or it was said that none is.
    unread: Option<Box<Unread>>,
    /// When the next bytes were written.
    age: Age,
    /// Whether the last bytes were recalled.
    recalls: bool,
}

impl Text {
    /// The text of a source.
    pub fn new(job: Arc<Job>, source: SourceId, patterns: Patterns) -> Self {
        let reader = Reader::new(Detector::new(patterns.clone()));
        let unread = Some(Box::new(Unread::new(patterns.clone())));
        Self {
            job,
            source,
            patterns,
            reader,
            bytes: 0,
            earlier: (0, 0),
            pending: false,
            unread,
            age: Age::New,
            recalls: false,
        }
    }

    /// Sets when the next bytes were written.
    pub fn set_age(&mut self, age: Age) {
        self.age = age;
    }

    /// Takes bytes that an earlier sidecar has reported, to know where the next ones belong.
    pub fn recall(&mut self, bytes: &[u8]) {
        self.recalls = true;
        let mut lock = self.job.lock_for(self.source, Age::Reported);
        self.reader.feed(bytes, &mut |observation| lock.take(observation));
    }

    /// The same of one of a program's two outputs.
    pub fn recall_from(&mut self, stream: Stream, bytes: &[u8]) {
        self.recalls = true;
        let mut lock = self.job.lock_for(self.source, Age::Reported);
        self.reader.feed_from(stream, bytes, &mut |observation| lock.take(observation));
    }

    /// An incomplete line at the end of what was recalled has been reported as well.
    fn end_recall(&mut self) {
        if std::mem::take(&mut self.recalls) {
            let mut lock = self.job.lock_for(self.source, Age::Reported);
            self.reader.flush(&mut |observation| lock.take(observation));
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.end_recall();
        let mut lock = self.job.lock_for(self.source, self.age);
        self.reader.feed(bytes, &mut |observation| lock.take(observation));
        drop(lock);
        self.fed(None, bytes);
    }

    /// Takes the next bytes of one of a program's two outputs. They are read together, because a
    /// trainer may print losses to one and the bar with their step to the other.
    pub fn feed_from(&mut self, stream: Stream, bytes: &[u8]) {
        self.end_recall();
        let mut lock = self.job.lock_for(self.source, self.age);
        self.reader.feed_from(stream, bytes, &mut |observation| lock.take(observation));
        drop(lock);
        self.fed(Some(stream), bytes);
    }

    /// `bytes` bytes of one of a program's two outputs are missing before the next ones.
    pub fn gap(&mut self, stream: Stream, bytes: u64) {
        self.reader.gap(stream, bytes);
    }

    fn fed(&mut self, stream: Option<Stream>, bytes: &[u8]) {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.pending = true;
        if let Some(unread) = &mut self.unread {
            unread.feed(stream, bytes, self.job.clock().elapsed());
        }
        self.describe();
        self.watch();
    }

    /// Reads an incomplete line after a moment of silence.
    pub fn flush(&mut self) {
        if self.pending {
            self.pending = false;
            let mut lock = self.job.lock_for(self.source, self.age);
            self.reader.flush(&mut |observation| lock.take(observation));
            drop(lock);
            self.describe();
        }
        self.watch();
    }

    /// Whether the last line may be incomplete.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// How long from now it may take until [`Text::flush`] has something to say, although nothing
    /// comes.
    pub fn due_in(&self) -> Option<Duration> {
        self.unread.as_ref()?.due_in(self.job.clock().elapsed())
    }

    /// The next bytes do not continue the previous ones.
    pub fn restart(&mut self) {
        self.end_line();
        self.earlier = self.counts();
        self.reader = Reader::new(Detector::new(self.patterns.clone()));
    }

    /// Reads the last line at the end of the text.
    pub fn finish(&mut self) {
        self.end_line();
        self.speak();
    }

    fn end_line(&mut self) {
        self.end_recall();
        let mut lock = self.job.lock_for(self.source, self.age);
        self.reader.finish(&mut |observation| lock.take(observation));
        drop(lock);
        self.describe();
    }

    /// Says in time that no loss is read.
    fn watch(&mut self) {
        let Some(unread) = &self.unread else { return };
        if self.reader.detector().counts().losses > 0 {
            self.unread = None;
        } else if unread.due_in(self.job.clock().elapsed()).is_some_and(|due| due.is_zero()) {
            self.speak();
        }
    }

    /// Says that no loss is read, unless another source reports one.
    fn speak(&mut self) {
        let Some(unread) = self.unread.take() else { return };
        let has_read = self.reader.detector().counts().losses > 0 || self.job.has_loss();
        if let Some(hint) = unread.hint().filter(|_| !has_read) {
            let name = self.job.describe(self.source, |known| {
                known.hint = Some(hint.clone());
                known.name.clone()
            });
            say(format_args!("{}: {hint}", name.unwrap_or_default()));
        }
    }

    /// The lines so far, and those of them that were not read.
    fn counts(&self) -> (u64, u64) {
        let counts = self.reader.detector().counts();
        let (lines, unread) = self.earlier;
        let cut = self.reader.cut_lines();
        (lines + counts.lines + cut, unread + counts.unread + cut)
    }

    fn describe(&self) {
        let matched = self.reader.detector().matched();
        let (lines, errors) = self.counts();
        let reads = self.reader.detector().counts().losses > 0;
        self.job.describe(self.source, |known: &mut Source| {
            known.up = true;
            known.bytes = self.bytes;
            known.lines = lines;
            known.errors = errors;
            if reads {
                known.hint = None;
            }
            known.confidence = matched.map(|matched| matched.confidence).or(known.confidence);
            if let Some(matched) = matched.filter(|m| known.grammar.as_deref() != Some(m.name)) {
                known.grammar = Some(matched.name.to_owned());
            }
        });
    }
}
