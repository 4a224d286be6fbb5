//! A job that runs as our child: its output passes through unchanged, and is read on the way.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::{Handle, Signals};

use crate::desk::{Kind, SourceId};
use crate::grammar::Patterns;
use crate::job::Job;
use crate::source::text::Text;
use crate::terminal::wrapping::Stream;

/// What is passed on to the child.
const SIGNALS: [i32; 9] =
    [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT];
/// What a terminal's keys and size make.
const TERMINAL: [i32; 4] = [SIGINT, SIGQUIT, SIGWINCH, SIGTSTP];
/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;
/// So many chunks may wait to be read; what comes then passes through unread, and is counted.
const MOST_WAITING: usize = 64;
/// A line that has not ended is read after this silence.
const SILENCE: Duration = Duration::from_millis(40);

/// Runs a command to its end; how it ended.
pub fn run(job: &Arc<Job>, command: &[OsString], patterns: &Patterns) -> io::Result<ExitStatus> {
    let (program, arguments) = command.split_first().ok_or(ErrorKind::InvalidInput)?;
    // Before there is a child, so that no signal is missed.
    let signals = Signals::new(SIGNALS)?;
    let mut child = Command::new(program)
        .args(arguments)
        // Python would hold its lines back in a pipe otherwise.
        .env("PYTHONUNBUFFERED", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let forwarder = forward(signals, &child)?;
    let source = job.add(Kind::Text, "output");
    let text = Text::new(Arc::clone(job), source, patterns.clone());
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let flow = Arc::new(Flow::default());
    let way = Way { sender, flow: Arc::clone(&flow) };
    let mut threads = Vec::new();
    if let Some(output) = child.stdout.take() {
        threads.push(pass(Stream::Stdout, output, io::stdout, way.clone())?);
    }
    if let Some(output) = child.stderr.take() {
        threads.push(pass(Stream::Stderr, output, io::stderr, way)?);
    }
    let reader = thread::Builder::new().name("read output".to_owned());
    let account = Account { job: Arc::clone(job), source, flow: Arc::clone(&flow), told: None };
    threads.push(reader.spawn(move || read(text, &receiver, account))?);
    let status = wait(&mut child);
    for thread in threads {
        finish(thread, &flow);
    }
    forwarder.close();
    status
}

/// Waits for the child's end. The first process of a container inherits the orphans of all others,
/// and waits for them as well: they would stay as zombies otherwise.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    if std::process::id() != 1 {
        return child.wait();
    }
    let ours = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == ours => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The exit code that a shell would give.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Passes our signals on to the child.
fn forward(mut signals: Signals, child: &Child) -> io::Result<Handle> {
    let handle = signals.handle();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            // The terminal has told its whole foreground, the child included: twice is once too
            // often for a job that takes a second Ctrl-C for impatience.
            if TERMINAL.contains(&signal) && is_in_foreground() {
                continue;
            }
            if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
                // It may have ended just now.
                kill_process(pid, signal).ok();
            }
        }
    })?;
    Ok(handle)
}

/// The way of what is passed through to those who read it.
#[derive(Clone, Debug)]
struct Way {
    sender: SyncSender<(Stream, Vec<u8>)>,
    flow: Arc<Flow>,
}

/// How bytes pass through. Those who pass them on never wait for the job's own lock, which whoever
/// reads a flood of them holds most of the time.
#[derive(Debug, Default)]
struct Flow {
    bytes: AtomicU64,
    /// Threads that wait for whoever reads our output.
    writing: AtomicUsize,
    /// Pieces that were not passed on, or not read.
    lost: AtomicU64,
    /// Why pieces are not passed on, for as long as that is so.
    failure: Mutex<Option<String>>,
}

impl Flow {
    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    fn losses(&self) -> (u64, Option<String>) {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.lost.load(Ordering::Relaxed), failure)
    }
}

/// Tells the job what the flow has lost.
#[derive(Debug)]
struct Account {
    job: Arc<Job>,
    source: SourceId,
    flow: Arc<Flow>,
    told: Option<(u64, Option<String>)>,
}

impl Account {
    fn settle(&mut self) {
        let losses = Some(self.flow.losses());
        if self.told != losses {
            self.told.clone_from(&losses);
            if let Some((lost, failure)) = losses {
                self.job.describe(self.source, |known| {
                    known.dropped = lost;
                    known.error = failure;
                });
            }
        }
    }
}

/// Whether we are what a terminal's keys reach.
fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Passes an output through on a thread of its own.
fn pass<W: Write + Send + 'static>(
    stream: Stream,
    output: impl Read + Send + 'static,
    ours: fn() -> W,
    way: Way,
) -> io::Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("pass output".to_owned());
    thread.spawn(move || copy(stream, output, ours(), &way))
}

/// Copies as bytes come. Reading them never holds this up.
fn copy(stream: Stream, mut output: impl Read, mut ours: impl Write, way: &Way) {
    let mut buffer = vec![0; CHUNK];
    let mut failing = false;
    loop {
        let read = match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        way.flow.writing.fetch_add(1, Ordering::Relaxed);
        let written = ours.write_all(bytes).and_then(|()| ours.flush());
        way.flow.writing.fetch_sub(1, Ordering::Relaxed);
        match written {
            // Nobody reads our output any more: the child is to feel it as if it wrote there itself.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return,
            // A disk that is full may have room again. The job trains on meanwhile.
            Err(error) => {
                way.flow.lose();
                way.flow.set_failure(Some(format!("not passed on: {error}")));
                failing = true;
            }
            Ok(()) if failing => {
                way.flow.set_failure(None);
                failing = false;
            }
            Ok(()) => {}
        }
        way.flow.bytes.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
        if way.sender.try_send((stream, bytes.to_vec())).is_err() {
            way.flow.lose();
        }
    }
}

fn read(mut text: Text, bytes: &Receiver<(Stream, Vec<u8>)>, mut account: Account) {
    loop {
        // With nothing that could go on, there is nothing to be early for.
        let next = if text.is_pending() {
            bytes.recv_timeout(SILENCE)
        } else {
            bytes.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        // Whatever is wrong with what a program prints, or with how it is read, is not the job's.
        let read = catch_unwind(AssertUnwindSafe(|| match &next {
            Ok((stream, bytes)) => text.feed_from(*stream, bytes),
            Err(RecvTimeoutError::Timeout) => text.flush(),
            Err(RecvTimeoutError::Disconnected) => text.finish(),
        }));
        account.settle();
        if read.is_err() || matches!(next, Err(RecvTimeoutError::Disconnected)) {
            return;
        }
    }
}

/// Waits for a thread whose child has ended: as long as bytes pass, however slowly they are read,
/// and for a second of silence at the most, since a grandchild may hold a pipe open for ever.
fn finish(thread: JoinHandle<()>, flow: &Flow) {
    let (mut silent, mut passed) = (0, flow.bytes.load(Ordering::Relaxed));
    while silent < 100 && !thread.is_finished() {
        thread::park_timeout(Duration::from_millis(10));
        let bytes = flow.bytes.load(Ordering::Relaxed);
        let flows = bytes != passed || flow.writing.load(Ordering::Relaxed) > 0;
        silent = if flows { 0 } else { silent + 1 };
        passed = bytes;
    }
    if thread.is_finished() {
        drop(thread.join());
    }
}
