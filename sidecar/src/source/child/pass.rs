//! The threads that pass output through, and the one that reads it.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use paceline_lines::terminal::wrapping::Stream;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};

use super::flow::Flow;
use super::queue::{Next, Queue, Writer};
use super::start_thread;
use super::terminal::Terminal;
use crate::job::Job;
use crate::merger::SourceId;
use crate::source::text::Text;

/// The capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// An incomplete line is read after this much silence.
const SILENCE: Duration = Duration::from_millis(40);

/// An output of the command.
pub(super) struct Output {
    pub(super) stream: Stream,
    pub(super) from: Box<dyn Read + Send>,
    /// The terminal in which the command draws this output, if it has one.
    pub(super) terminal: Option<Arc<Terminal>>,
}

/// What a thread holds while it passes an output through.
pub(super) type Open = Sender<()>;

/// Starts a thread that passes an output through.
pub(super) fn pass(output: Output, writer: Writer, flow: &Arc<Flow>, open: Open) -> io::Result<()> {
    let flow = Arc::clone(flow);
    start_thread("pass output", move || {
        match output.stream {
            Stream::Stdout => copy(output, io::stdout(), "standard output", &writer, &flow),
            Stream::Stderr => copy(output, io::stderr(), "standard error", &writer, &flow),
        }
        drop(open);
    })?;
    Ok(())
}

/// Copies bytes as they arrive. Parsing them never delays this.
fn copy(output: Output, ours: impl AsFd, name: &str, writer: &Writer, flow: &Flow) {
    let Output { stream, mut from, terminal } = output;
    let mut buffer = vec![0; CHUNK];
    let (mut failing, mut hung_up) = (false, false);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A terminal whose last user has closed it.
            Err(_) => return,
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        if hung_up {
            flow.arrived(read);
            flow.lose(1 + writer.push(stream, bytes, false));
            continue;
        }
        let written = flow.forward(|| write_all(&ours, bytes));
        match &written {
            // A full disk may get room again. The job keeps training meanwhile.
            Err(error) => {
                flow.lose(1);
                if !failing {
                    flow.fail(name, error);
                }
                failing = true;
            }
            Ok(()) if failing => {
                flow.set_failure(None);
                failing = false;
            }
            Ok(()) => {}
        }
        flow.arrived(read);
        flow.lose(writer.push(stream, bytes, written.is_ok()));
        // The reader of our output has gone. Returning closes the command's pipe, so that the command
        // gets the same error. A terminal stays open as long as anyone has it: it hangs up instead, and a
        // command that goes on all the same must not wait for a reader.
        if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            let Some(terminal) = &terminal else { return };
            terminal.hang_up();
            hung_up = true;
        }
    }
}

/// Writes all bytes, also where another process has set the output not to block.
fn write_all(to: &impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(to, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what the passing threads put into a queue.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) job: Arc<Job>,
    pub(super) source: SourceId,
    pub(super) text: Text,
    pub(super) queue: Arc<Queue>,
    pub(super) flow: Arc<Flow>,
}

impl Listener {
    /// Reads to the end of the queue.
    pub(super) fn run(mut self) {
        let mut works = true;
        loop {
            // Without an incomplete line there is nothing to flush early.
            let timeout = self.text.is_pending().then_some(SILENCE).or_else(|| self.text.due_in());
            let next = self.queue.next(timeout.filter(|_| works));
            if works && !self.take(&next) {
                // A bug in our parser must not stop the job.
                works = false;
                let failure = "cannot read output: the parser has failed";
                self.flow.set_failure(Some(failure.to_owned()));
            }
            if let Next::Text { pieces, .. } = &next
                && !works
            {
                self.flow.lose(*pieces);
            }
            self.flow.report(&self.job, self.source);
            if next == Next::End {
                return;
            }
        }
    }

    /// Returns whether the parser works.
    fn take(&mut self, next: &Next) -> bool {
        let text = &mut self.text;
        catch_unwind(AssertUnwindSafe(|| match next {
            Next::Text { gap, stream, bytes, .. } => {
                if *gap > 0 {
                    text.gap(*stream, *gap);
                }
                text.feed_from(*stream, bytes);
            }
            Next::Silence => text.flush(),
            Next::End => text.finish(),
        }))
        .is_ok()
    }
}
