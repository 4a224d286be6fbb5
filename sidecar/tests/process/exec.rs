//! `exec`: the command's signals, its children, and what it prints.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use paceline_reporter::wire::{Progress, State};
use rustix::io::{ioctl_fionbio, ioctl_fionread};
use rustix::process::Signal;

use crate::program::{Bench, Running, append, line, wait_for};

/// A shell loop that waits for a file `end` in its folder, for two minutes at most.
const WAIT: &str = "for i in $(seq 12000); do [ ! -e end ] || break; sleep 0.01; done";
/// What is said once only children of the command hold its output.
const LEFT: &str = "still holds its output";

/// A script under `exec` in the bench's folder, with a file `said` for its messages.
fn under_exec(bench: &Bench, options: &[&str], script: &str) -> Command {
    let words = [&["exec"], options, &["--", "sh", "-c", script]].concat();
    let mut command = bench.command(&words);
    command.current_dir(bench.path("")).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(File::create(bench.path("said")).unwrap());
    command
}

fn said(bench: &Bench) -> String {
    fs::read_to_string(bench.path("said")).unwrap()
}

#[test]
fn child_that_outlives_the_command_is_read_to_its_end() {
    let bench = Bench::new();
    let status = bench.path("status.json");
    let script = format!("({WAIT}; printf %s '{}') & printf %s '{}'; exit 4", line(2), line(1));
    let mut command = under_exec(&bench, &["--status-file", status.to_str().unwrap()], &script);
    let mut running = Running(command.spawn().unwrap());
    wait_for(|| said(&bench).contains(LEFT).then_some(()));
    assert!(said(&bench).contains("has ended (exit status: 4), but process "), "{}", said(&bench));
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(4));
    let mut printed = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, line(1) + &line(2));
    let last: Progress = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!((last.state, last.eval.count), (State::Failed, 2));
}

#[test]
fn exit_code_is_known_where_ends_of_children_were_ignored() {
    let bench = Bench::new();
    let ignoring = format!("trap '' CHLD; exec {} exec -- sh -c 'exit 3'", crate::tty::PROGRAM);
    let mut command = Command::new("sh");
    command
        .args(["-c", &ignoring])
        .env("PACELINE_LISTEN", format!("unix:{}", bench.path("s").display()));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
}

#[test]
fn output_that_must_not_block_is_waited_for() {
    let bench = Bench::new();
    let (mut reader, writer) = io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    let mut command = under_exec(&bench, &[], "head -c 2000000 /dev/zero; exit 3");
    let mut running = Running(command.stdout(writer).spawn().unwrap());
    // The command's ends of the pipe are closed with it.
    drop(command);
    wait_for(|| (ioctl_fionread(&reader).unwrap() >= 60_000).then_some(()));
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed).unwrap();
    assert_eq!((printed.len(), running.0.wait().unwrap().code()), (2_000_000, Some(3)));
}

#[test]
fn command_gets_the_address_of_its_own_sidecar() {
    let bench = Bench::new();
    let command = |options: &[&str]| under_exec(&bench, options, "printf %s $PACELINE_REPORT_TO");
    let printed =
        |mut command: Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let socket = format!("unix:{}", bench.path("sidecar.sock").display());
    assert_eq!(printed(command(&[])), socket);
    let address = printed(command(&["--listen", "127.0.0.1:0"]));
    assert_ne!(address.parse::<SocketAddr>().unwrap().port(), 0);
    let mut disabled = command(&[]);
    disabled.env("PACELINE_DISABLED", "1");
    assert_eq!(printed(disabled), "none");
}

#[test]
fn children_that_outlive_the_command_get_the_signals() {
    let bench = Bench::new();
    let child = "trap 'echo asked; exit' TERM; while true; do sleep 0.05; done";
    let script = format!("sh -c \"{child}\" & exit 0");
    let mut running = Running(under_exec(&bench, &[], &script).spawn().unwrap());
    wait_for(|| said(&bench).contains(LEFT).then_some(()));
    running.signal(Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    let mut printed = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "asked\n");
}

#[test]
fn signals_that_programs_use_reach_the_command() {
    let signals = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::URG,
        Signal::XCPU,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::POWER,
        Signal::TERM,
    ];
    let bench = Bench::new();
    let numbers = signals.map(|signal| signal.as_raw().to_string()).join(" ");
    let script = format!(
        "for s in {numbers}; do trap \"echo got $s\" $s; done; echo ready; \
         while [ ! -e end ]; do sleep 0.01; done"
    );
    let mut running = Running(under_exec(&bench, &[], &script).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    for signal in signals {
        running.signal(signal);
        assert_eq!(lines.next().unwrap().unwrap(), format!("got {}", signal.as_raw()));
    }
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn signal_that_is_ignored_stays_ignored() {
    let bench = Bench::new();
    let script = "echo ready; while [ ! -e end ]; do sleep 0.01; done; echo ended";
    let sidecar = under_exec(&bench, &[], script);
    let mut command = Command::new("nohup");
    command.arg(sidecar.get_program()).args(sidecar.get_args()).current_dir(bench.path(""));
    command.envs(sidecar.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    running.signal(Signal::HUP);
    append(&bench.path("end"), "");
    assert_eq!(lines.next().unwrap().unwrap(), "ended");
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn last_line_of_a_flood_is_read() {
    let bench = Bench::new();
    let status = bench.path("status.json");
    let script = format!("yes '{}' | head -c 40000000; echo; printf %s '{}'", line(1), line(7));
    let mut command = under_exec(&bench, &["--status-file", status.to_str().unwrap()], &script);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    let last: Progress = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!(last.step, Some(7), "{last:?}");
}

#[test]
fn address_that_is_taken_is_an_error_before_the_command_starts() {
    let bench = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = under_exec(&bench, &["--listen", &address], "echo ran");
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let expected = format!("cannot listen on {address}: the address is taken");
    assert!(said(&bench).contains(&expected), "{}", said(&bench));
    let further = command.env("RANK", "1").env("LOCAL_RANK", "1").output().unwrap();
    assert_eq!((further.status.code(), further.stdout), (Some(0), b"ran\n".to_vec()));
    assert!(said(&bench).contains("listening on 127.0.0.1:72"), "{}", said(&bench));
}

#[test]
fn address_of_the_page_is_printed_once_unless_hidden() {
    let bench = Bench::new();
    let exec = |hidden: &str| {
        let mut command = under_exec(&bench, &["--listen", "127.0.0.1:0"], "echo ran");
        let output = command.env("PACELINE_HIDE_ADDRESS", hidden).output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), b"ran\n".to_vec()));
        said(&bench)
    };
    let shown = exec("0");
    let address = shown.strip_prefix("paceline-sidecar: loss and progress: http://127.0.0.1:");
    let port = address.and_then(|address| address.strip_suffix("/\n"));
    assert!(port.is_some_and(|port| port.parse::<u16>().is_ok()), "{shown}");
    assert_eq!(exec("1"), "");
}

/// Too little memory for a thread's stack is the same error as too many processes, and needs no rights to make.
#[test]
fn command_runs_unread_without_the_threads_for_it() {
    let bench = Bench::new();
    // The command writes past the sidecar, so that what it writes is never lost with a reader.
    let sidecar = bench.command(&["exec", "--", "sh", "-c", "echo ran >&3"]);
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3>&1 \"$0\" \"$@\" >/dev/null"]);
    command.arg(sidecar.get_program()).args(sidecar.get_args());
    command.envs(sidecar.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ran\n"[..]));
    let output = command.env("RUST_MIN_STACK", (1_u64 << 46).to_string()).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ran\n"[..]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot start a thread: ") && said.contains("raise the limit"), "{said}");
    assert!(said.ends_with("; the command runs without an endpoint\n"), "{said}");
    assert!(!bench.path("sidecar.sock").exists());
}

#[test]
fn command_without_its_dashes_is_refused_with_advice() {
    let bench = Bench::new();
    for words in [
        &["exec", "echo", "hi"][..],
        &["exec", "--job", "toy", "echo"],
        &["exec", "--tty", "echo", "--flag"],
    ] {
        let output = bench.run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("put `--` before the command"), "{words:?}: {said}");
        assert!(said.contains("exec -- echo"), "{words:?}: {said}");
    }
    let said = String::from_utf8(bench.run(&["exec", "--frob", "--", "echo"]).stderr).unwrap();
    assert!(said.contains("--frob") && !said.contains("put `--`"), "{said}");
}

#[test]
fn output_of_which_nothing_is_read_is_spoken_of_at_its_end() {
    let bench = Bench::new();
    let script = "for i in $(seq 30); do echo \"round $i: J = 0.$((90 - i))\"; done";
    assert!(under_exec(&bench, &[], script).status().unwrap().success());
    let expected = "output: 30 lines with numbers, none read as a loss: try --pattern '^round";
    assert!(said(&bench).contains(expected), "{}", said(&bench));
}
