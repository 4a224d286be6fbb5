//! Output that waits to be read: bounded, so that a flood never delays the command.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paceline_lines::terminal::wrapping::Stream;

/// The most bytes that wait.
const MAX_BYTES: usize = 2 << 20;
/// The most entries that wait. It bounds the memory of short entries.
const MAX_ENTRIES: usize = 4096;
/// Pieces of one stream are joined up to this length.
const MAX_JOINED: usize = 4096;

/// Pieces that wait. When there are too many, the oldest are dropped: the last lines of a flood are
/// the newest, and those that count.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Bytes that were dropped before the next entry of standard output, and of standard error.
    gaps: [u64; 2],
    writers: usize,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    stream: Stream,
    bytes: Vec<u8>,
    /// The number of its pieces that count as dropped if they are not read.
    pieces: u64,
}

/// What the reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next bytes of a stream.
    Text {
        /// Bytes that were dropped before them.
        gap: u64,
        stream: Stream,
        bytes: Vec<u8>,
        /// The number of pieces in them that count as dropped if they are not read.
        pieces: u64,
    },
    /// Nothing came within the timeout.
    Silence,
    /// All writers are gone, or the queue was closed.
    End,
}

/// One writer; the queue ends with the last one.
#[derive(Debug)]
pub(super) struct Writer(Arc<Queue>);

impl Queue {
    /// Adds a writer.
    pub(super) fn writer(self: &Arc<Self>) -> Writer {
        self.state().writers += 1;
        Writer(Arc::clone(self))
    }

    /// Takes the next entry. Waits for it, without a timeout as long as there are writers.
    pub(super) fn next(&self, timeout: Option<Duration>) -> Next {
        let mut state = self.state();
        loop {
            if let Some(Entry { stream, bytes, pieces }) = state.entries.pop_front() {
                state.bytes -= bytes.len();
                let gap = std::mem::take(gap_of(&mut state.gaps, stream));
                return Next::Text { gap, stream, bytes, pieces };
            }
            if state.is_over() {
                return Next::End;
            }
            let Some(timeout) = timeout else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.changed.wait_timeout(state, timeout);
            let (after, result) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            if result.timed_out() && state.entries.is_empty() && !state.is_over() {
                return Next::Silence;
            }
        }
    }

    /// Ends the queue after what waits now, although there are writers.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.closed || self.writers == 0
    }
}

impl Writer {
    /// Adds a piece and returns how many pieces were dropped for it. A piece that was not
    /// `forwarded` has been counted as dropped before.
    pub(super) fn push(&self, stream: Stream, bytes: &[u8], forwarded: bool) -> u64 {
        let mut state = self.0.state();
        let pieces = u64::from(forwarded);
        if state.closed {
            return pieces;
        }
        let mut dropped = 0;
        while (state.bytes + bytes.len() > MAX_BYTES || state.entries.len() >= MAX_ENTRIES)
            && let Some(oldest) = state.entries.pop_front()
        {
            state.bytes -= oldest.bytes.len();
            *gap_of(&mut state.gaps, oldest.stream) += count(oldest.bytes.len());
            dropped += oldest.pieces;
        }
        state.bytes += bytes.len();
        match state.entries.back_mut() {
            Some(last) if last.stream == stream && last.bytes.len() + bytes.len() <= MAX_JOINED => {
                last.bytes.extend_from_slice(bytes);
                last.pieces += pieces;
            }
            _ => state.entries.push_back(Entry { stream, bytes: bytes.to_vec(), pieces }),
        }
        drop(state);
        self.0.changed.notify_one();
        dropped
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.state().writers -= 1;
        self.0.changed.notify_all();
    }
}

fn gap_of(gaps: &mut [u64; 2], stream: Stream) -> &mut u64 {
    let [stdout, stderr] = gaps;
    match stream {
        Stream::Stdout => stdout,
        Stream::Stderr => stderr,
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(next: Next) -> (u64, Vec<u8>, u64) {
        let Next::Text { gap, bytes, pieces, .. } = next else { panic!("{next:?}") };
        (gap, bytes, pieces)
    }

    #[test]
    fn oldest_pieces_are_dropped_and_the_newest_are_kept() {
        let queue = Arc::<Queue>::default();
        let writer = queue.writer();
        let piece = vec![b'x'; MAX_BYTES / 4];
        let dropped: u64 = (0..4).map(|_| writer.push(Stream::Stdout, &piece, true)).sum();
        assert_eq!(dropped, 0);
        assert_eq!(writer.push(Stream::Stdout, b"the last line\n", true), 1);
        drop(writer);
        let gap = count(piece.len());
        assert_eq!(text(queue.next(None)), (gap, piece.clone(), 1));
        for _ in 0..2 {
            assert_eq!(text(queue.next(None)), (0, piece.clone(), 1));
        }
        assert_eq!(text(queue.next(None)), (0, b"the last line\n".to_vec(), 1));
        assert_eq!(queue.next(None), Next::End);
    }

    #[test]
    fn gap_is_of_the_stream_whose_bytes_were_dropped() {
        let queue = Arc::<Queue>::default();
        let writer = queue.writer();
        writer.push(Stream::Stderr, &vec![b'x'; MAX_BYTES / 2], true);
        writer.push(Stream::Stdout, &vec![b'y'; MAX_BYTES / 2], true);
        writer.push(Stream::Stderr, b"end", true);
        assert_eq!(text(queue.next(None)).0, 0);
        assert_eq!(text(queue.next(None)).0, count(MAX_BYTES / 2));
    }

    #[test]
    fn short_pieces_are_joined_and_their_number_is_bounded() {
        let queue = Arc::<Queue>::default();
        let writer = queue.writer();
        for _ in 0..3 {
            writer.push(Stream::Stdout, b"line\n", true);
        }
        assert_eq!(text(queue.next(None)), (0, b"line\n".repeat(3), 3));
        // Pieces of alternating streams cannot be joined.
        let streams = [Stream::Stdout, Stream::Stderr];
        let each = (0..MAX_ENTRIES).flat_map(|_| streams);
        let dropped: u64 = each.map(|stream| writer.push(stream, b"x", true)).sum();
        assert_eq!(dropped, count(MAX_ENTRIES));
    }

    #[test]
    fn piece_that_was_not_forwarded_is_not_counted_again() {
        let queue = Arc::<Queue>::default();
        let writer = queue.writer();
        writer.push(Stream::Stdout, &vec![b'x'; MAX_BYTES], false);
        assert_eq!(writer.push(Stream::Stdout, b"x", true), 0);
        assert_eq!(
            queue.next(Some(Duration::ZERO)),
            Next::Text {
                gap: count(MAX_BYTES),
                stream: Stream::Stdout,
                bytes: b"x".to_vec(),
                pieces: 1,
            }
        );
        assert_eq!(queue.next(Some(Duration::ZERO)), Next::Silence);
    }

    #[test]
    fn closed_queue_ends_after_what_waits() {
        let queue = Arc::<Queue>::default();
        let writer = queue.writer();
        writer.push(Stream::Stdout, b"before", true);
        queue.close();
        assert_eq!(writer.push(Stream::Stdout, b"after", true), 1);
        assert_eq!(text(queue.next(None)).1, b"before");
        assert_eq!(queue.next(None), Next::End);
    }
}
