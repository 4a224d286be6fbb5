//! Runs a job as a child process. Its output passes through unchanged and is read on the way.

mod family;
mod flow;
mod pass;
mod queue;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::process::Pid;

use crate::grammar::Patterns;
use crate::job::Job;
use crate::merger::Kind;
use crate::source::text::Text;
use crate::terminal::wrapping::Stream;
use flow::Flow;
use pass::{Listener, Output, pass};
use queue::Queue;
use signals::Target;
use terminal::{Borrowed, Terminal};

pub use terminal::{ENTER, enter};

/// Runs a command to its end and returns its exit status. Reads on while processes that it has left
/// behind hold its output. With `in_terminal`, the command gets a terminal of its own.
pub fn run(
    job: &Arc<Job>,
    command: &[OsString],
    patterns: &Patterns,
    in_terminal: bool,
) -> io::Result<ExitStatus> {
    // Before the child exists, so that no signal is missed.
    let signals = signals::register()?;
    family::adopt();
    let Started { pid, outputs, terminal } =
        if in_terminal { start_in_terminal(command)? } else { start(command)? };
    let target = Arc::new(Target::new(pid));
    let forwarder = signals::forward(
        signals,
        Arc::clone(&target),
        terminal.as_ref().map(|borrowed| Arc::clone(borrowed.terminal())),
    )?;
    let source = job.add(Kind::Text, "output");
    let (queue, flow) = (Arc::<Queue>::default(), Arc::<Flow>::default());
    let (open, closed) = mpsc::channel();
    for output in outputs {
        pass(output, queue.writer(), &flow, open.clone())?;
    }
    drop(open);
    let text = Text::new(Arc::clone(job), source, patterns.clone());
    let (read_from, flow_read) = (Arc::clone(&queue), Arc::clone(&flow));
    let listener =
        Listener { job: Arc::clone(job), source, text, queue: read_from, flow: flow_read };
    let listener =
        thread::Builder::new().name("read output".to_owned()).spawn(move || listener.run())?;
    if let Some(borrowed) = &terminal {
        borrowed.terminal().pass_keys()?;
    }
    let status = family::wait_for(pid);
    target.set_ended();
    if let Ok(status) = status {
        family::wait_for_outputs(&closed, &flow, &target, status);
    }
    // What waits is bounded, so reading it ends soon. A panic of the reader has been printed.
    queue.close();
    drop(listener.join());
    forwarder.close();
    flow.report(job, source);
    drop(terminal);
    status
}

/// A command that has started.
struct Started {
    pid: Pid,
    outputs: Vec<Output>,
    terminal: Option<Borrowed>,
}

fn start(command: &[OsString]) -> io::Result<Started> {
    let (program, arguments) = command.split_first().ok_or(ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = unbuffered(&mut command).spawn()?;
    let mut outputs = Vec::new();
    if let Some(from) = child.stdout.take() {
        outputs.push(Output { stream: Stream::Stdout, from: Box::new(from) });
    }
    if let Some(from) = child.stderr.take() {
        outputs.push(Output { stream: Stream::Stderr, from: Box::new(from) });
    }
    Ok(Started { pid: pid(child.id())?, outputs, terminal: None })
}

fn start_in_terminal(command: &[OsString]) -> io::Result<Started> {
    let (terminal, theirs) = Terminal::open()?;
    let borrowed = Borrowed::new(terminal);
    let terminal = borrowed.terminal();
    let child = unbuffered(&mut terminal.command(command, &theirs)?).spawn()?;
    let outputs = vec![Output { stream: Stream::Stdout, from: Box::new(terminal.output()?) }];
    Ok(Started { pid: pid(child.id())?, outputs, terminal: Some(borrowed) })
}

/// Python otherwise buffers its output to a pipe.
fn unbuffered(command: &mut Command) -> &mut Command {
    command.env("PYTHONUNBUFFERED", "1")
}

fn pid(id: u32) -> io::Result<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// The exit code that a shell would return.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
