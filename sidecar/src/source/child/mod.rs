//! Runs a job as a child process. Its output passes through unchanged and is read on the way.

mod family;
mod flow;
mod pass;
mod queue;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use paceline_grammar::Patterns;
use paceline_lines::terminal::wrapping::Stream;
use rustix::process::Pid;

use crate::job::Job;
use crate::merger::Kind;
use crate::shortage::is_shortage;
use crate::source::text::Text;
use flow::Flow;
use pass::{Listener, Output, pass};
use queue::Queue;
use signals::Target;
use terminal::{Borrowed, Terminal};

/// The variable that tells the command's Python package where to send its reports. `PACELINE_LISTEN` would be
/// the address of a reporter in the command's own code, too.
const REPORT_TO: &str = "PACELINE_REPORT_TO";
/// Its value where this sidecar has no endpoint. Without it reports would go to another job's sidecar.
const NOWHERE: &str = "none";

pub use signals::heed_children;
pub use terminal::{ENTER, enter};

/// Runs a command to its end and returns its exit status, or why it did not start. Reads on while
/// processes that it has left behind hold its output. With `in_terminal`, the command gets a terminal of
/// its own.
///
/// # Errors
/// If its output cannot be read, for want of processes, open files or memory. It has not started then.
pub fn run(
    job: &Arc<Job>,
    command: &[OsString],
    patterns: &Patterns,
    in_terminal: bool,
) -> io::Result<io::Result<ExitStatus>> {
    // Before the child exists, so that no signal is missed.
    let signals = signals::register()?;
    let Prepared { command, outputs, terminal } =
        if in_terminal { prepare_in_terminal(command)? } else { prepare(command)? };
    // All threads start before the command: without one of them it would be lost at its next line.
    let (begin, begun) = mpsc::channel();
    let forwarder = signals::forward(
        signals,
        begun,
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
    let listener = start_thread("read output", move || listener.run())?;
    if let Some(borrowed) = &terminal {
        borrowed.terminal().pass_keys()?;
    }
    let status = match spawn(command, &report_to(job)) {
        Err(error) if is_shortage(&error) => return Err(error),
        Err(error) => Err(error),
        Ok(pid) => {
            let target = Arc::new(Target::new(pid));
            begin.send(Arc::clone(&target)).ok();
            let status = family::wait_for(pid);
            target.set_ended();
            if let Ok(status) = status {
                family::wait_for_outputs(&closed, &flow, &target, status);
            }
            status
        }
    };
    // What waits is bounded, so reading it ends soon. A panic of the reader has been printed.
    queue.close();
    drop(listener.join());
    forwarder.close();
    flow.report(job, source);
    drop(terminal);
    Ok(status)
}

/// Becomes a command. Returns only if that fails.
pub fn become_command(command: &[OsString]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return ErrorKind::InvalidInput.into();
    };
    // What it leaves behind goes to the first process, as without us.
    family::disown();
    Command::new(program).args(arguments).env(REPORT_TO, NOWHERE).exec()
}

/// A command that can be started.
struct Prepared {
    /// It holds the command's ends of the outputs.
    command: Command,
    outputs: Vec<Output>,
    terminal: Option<Borrowed>,
}

fn prepare(command: &[OsString]) -> io::Result<Prepared> {
    let (program, arguments) = command.split_first().ok_or(ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    let (stdout, their_stdout) = io::pipe()?;
    let (stderr, their_stderr) = io::pipe()?;
    command.args(arguments).stdout(their_stdout).stderr(their_stderr);
    let outputs = vec![
        Output { stream: Stream::Stdout, from: Box::new(stdout), terminal: None },
        Output { stream: Stream::Stderr, from: Box::new(stderr), terminal: None },
    ];
    Ok(Prepared { command, outputs, terminal: None })
}

fn prepare_in_terminal(command: &[OsString]) -> io::Result<Prepared> {
    let (terminal, theirs) = Terminal::open()?;
    let borrowed = Borrowed::new(terminal);
    let terminal = borrowed.terminal();
    let command = terminal.command(command, &theirs)?;
    let from = Box::new(terminal.output()?);
    let drawn_in = Some(Arc::clone(terminal));
    let outputs = vec![Output { stream: Stream::Stdout, from, terminal: drawn_in }];
    Ok(Prepared { command, outputs, terminal: Some(borrowed) })
}

/// The address to which the command's own reports go.
fn report_to(job: &Job) -> String {
    job.address().map_or_else(|| NOWHERE.to_owned(), |address| address.to_string())
}

/// Starts the command.
fn spawn(mut command: Command, report_to: &str) -> io::Result<Pid> {
    family::adopt();
    // Python otherwise buffers its output to a pipe.
    let child = command.env("PYTHONUNBUFFERED", "1").env(REPORT_TO, report_to).spawn();
    // The outputs end once no process holds their other ends, and we hold them as well.
    drop(command);
    let pid = i32::try_from(child?.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Starts a thread that the command needs.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let failed = |error: io::Error| {
        let why = format!("cannot start a thread: {error}; raise the limit of processes or memory");
        io::Error::new(error.kind(), why)
    };
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(failed)
}

/// The exit code that a shell would return.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
