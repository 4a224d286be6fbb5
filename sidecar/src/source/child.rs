//! A job that runs as our child: its output passes through unchanged, and is read on the way.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::{Handle, Signals};

use crate::desk::Kind;
use crate::grammar::Patterns;
use crate::job::Job;
use crate::source::text::Text;

/// What is passed on to the child.
const SIGNALS: [i32; 9] =
    [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT];
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
    let mut threads = Vec::new();
    if let Some(output) = child.stdout.take() {
        threads.extend(pass(job, "stdout", output, io::stdout, patterns)?);
    }
    if let Some(output) = child.stderr.take() {
        threads.extend(pass(job, "stderr", output, io::stderr, patterns)?);
    }
    let status = child.wait();
    // A grandchild may hold the pipes open for ever: what the child itself wrote is read by now or
    // soon.
    for thread in threads {
        finish(thread);
    }
    forwarder.close();
    status
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
            if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
                // It may have ended just now.
                kill_process(pid, signal).ok();
            }
        }
    })?;
    Ok(handle)
}

/// Passes an output through on one thread and reads it on another.
fn pass<W: Write + Send + 'static>(
    job: &Arc<Job>,
    name: &str,
    output: impl Read + Send + 'static,
    ours: fn() -> W,
    patterns: &Patterns,
) -> io::Result<[JoinHandle<()>; 2]> {
    let source = job.add(Kind::Text, name);
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let text = Text::new(Arc::clone(job), source, patterns.clone());
    let reader = thread::Builder::new().name(format!("read {name}"));
    let reader = reader.spawn(move || read(text, &receiver))?;
    let lost = Arc::clone(job);
    let copier = thread::Builder::new().name(format!("pass {name}"));
    let copier = copier.spawn(move || {
        copy(output, ours(), &sender, || lost.describe(source, |known| known.errors += 1));
    })?;
    Ok([copier, reader])
}

/// Copies as bytes come. Reading them never holds this up.
fn copy(
    mut output: impl Read,
    mut ours: impl Write,
    reader: &SyncSender<Vec<u8>>,
    lost: impl Fn(),
) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        // Nobody reads our output any more: the child is to feel it as if it wrote there itself.
        if ours.write_all(bytes).and_then(|()| ours.flush()).is_err() {
            return;
        }
        if reader.try_send(bytes.to_vec()).is_err() {
            lost();
        }
    }
}

fn read(mut text: Text, bytes: &Receiver<Vec<u8>>) {
    loop {
        let next = bytes.recv_timeout(SILENCE);
        // Whatever is wrong with what a program prints, or with how it is read, is not the job's.
        let read = catch_unwind(AssertUnwindSafe(|| match &next {
            Ok(bytes) => text.feed(bytes),
            Err(RecvTimeoutError::Timeout) => text.flush(),
            Err(RecvTimeoutError::Disconnected) => text.finish(),
        }));
        if read.is_err() || matches!(next, Err(RecvTimeoutError::Disconnected)) {
            return;
        }
    }
}

/// Waits for a thread, for a second at the most.
fn finish(thread: JoinHandle<()>) {
    for _ in 0..100 {
        if thread.is_finished() {
            return drop(thread.join());
        }
        thread::park_timeout(Duration::from_millis(10));
    }
}
