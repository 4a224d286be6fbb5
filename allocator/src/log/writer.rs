//! Writes lines on a thread of its own, so that a reader that does not read blocks nothing else.
//!
//! Lines wait in a bounded buffer. If that is full, a line is lost, and the number of lost lines is
//! written once there is room. The crate `tracing-appender` would bound lines and not bytes, and would
//! keep that number to itself.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes that wait to be written.
const MAX_WAITING: usize = 1024 * 1024;
/// How long the program waits at its end until all lines are written.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A line that says how many were lost.
pub type Note = Box<dyn Fn(u64) -> String + Send>;

/// The lines on their way to a file or terminal.
#[derive(Clone, Debug)]
pub struct LineWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when lines are waiting.
    filled: Condvar,
    /// Notified when all lines are written.
    drained: Condvar,
}

struct State {
    waiting: Vec<u8>,
    lost: u64,
    /// Whether the thread has taken lines that are not written yet.
    writing: bool,
    note: Note,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl LineWriter {
    /// Starts the thread that writes to `out`. It ends with the program.
    pub fn start(out: impl Write + Send + 'static, note: Note) -> io::Result<Self> {
        let state = State { waiting: Vec::new(), lost: 0, writing: false, note };
        let shared = Shared {
            state: Mutex::new(state),
            filled: Condvar::default(),
            drained: Condvar::default(),
        };
        let writer = Self(Arc::new(shared));
        let shared = Arc::clone(&writer.0);
        std::thread::Builder::new()
            .name("paceline-log".to_owned())
            .spawn(move || write_all(&shared, out))?;
        Ok(writer)
    }

    /// Changes the form of the line about lost lines.
    pub fn set_note(&self, note: Note) {
        self.0.lock().note = note;
    }

    /// Waits until all lines are written, but not for longer than `timeout`.
    pub fn flush(&self, timeout: Duration) {
        let (state, is_left) = (self.0.lock(), |state: &mut State| !state.is_drained());
        // The state does not matter any more: the program ends.
        drop(self.0.drained.wait_timeout_while(state, timeout, is_left));
    }
}

impl Write for LineWriter {
    /// Takes a whole line, or loses it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.waiting.len() + line.len() > MAX_WAITING {
            state.lost += 1;
        } else {
            state.waiting.extend_from_slice(line);
        }
        drop(state);
        self.0.filled.notify_one();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_drained(&self) -> bool {
        self.waiting.is_empty() && self.lost == 0 && !self.writing
    }
}

/// Writes lines as they come. A line whose reader is gone, for example on a closed terminal, is lost.
fn write_all(shared: &Shared, mut out: impl Write) {
    let mut lines = Vec::new();
    loop {
        let mut state = shared.lock();
        state.writing = false;
        while state.is_drained() {
            shared.drained.notify_all();
            state = shared.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut lines, &mut state.waiting);
        let lost = std::mem::take(&mut state.lost);
        if lost > 0 {
            lines.extend_from_slice((state.note)(lost).as_bytes());
        }
        state.writing = true;
        drop(state);
        drop(out.write_all(&lines).and_then(|()| out.flush()));
        lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    fn note() -> Note {
        Box::new(|lost| format!("lost {lost}\n"))
    }

    #[test]
    fn unread_pipe_blocks_no_writer_and_lost_lines_are_counted() {
        let (reader, unread) = pipe().unwrap();
        let mut writer = LineWriter::start(unread, note()).unwrap();
        let line = format!("{}\n", "x".repeat(999));
        let lines = 4 * MAX_WAITING / line.len();
        for _ in 0..lines {
            writer.write_all(line.as_bytes()).unwrap();
        }
        writer.flush(Duration::from_millis(1));
        let (mut read, mut lost) = (0, 0);
        for text in BufReader::new(reader).lines() {
            let text = text.unwrap();
            match text.strip_prefix("lost ") {
                Some(count) => lost += count.parse::<usize>().unwrap(),
                None => read += 1,
            }
            if read + lost == lines {
                break;
            }
        }
        assert!(read >= MAX_WAITING / line.len() && lost > 0, "{read} {lost}");
    }

    #[test]
    fn flush_waits_for_a_reader_that_reads() {
        let (reader, written) = pipe().unwrap();
        let mut writer = LineWriter::start(written, note()).unwrap();
        for number in 0..1000 {
            writer.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        writer.flush(Duration::from_mins(1));
        let lines = BufReader::new(reader).lines().take(1000).map(Result::unwrap);
        assert!(lines.eq((0..1000).map(|number: u32| number.to_string())));
    }

    #[test]
    fn lines_for_a_closed_reader_are_dropped() {
        let (reader, written) = pipe().unwrap();
        drop(reader);
        let mut writer = LineWriter::start(written, note()).unwrap();
        writer.write_all(b"unread\n").unwrap();
        writer.flush(Duration::from_mins(1));
        assert!(writer.0.lock().is_drained());
    }
}
