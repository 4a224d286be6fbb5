//! `watch` in a terminal, beside a job that `exec` runs.

use std::process::Stdio;

use rustix::process::Signal;
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::program::{Bench, Running};
use crate::tty::{PROGRAM, User};

/// What leaves the alternate screen.
const LEAVES: &str = "\u{1b}[?1049l";

/// A job that prints two losses, and waits as long as the folder of the test exists.
fn job(bench: &Bench) -> Running {
    let script = format!(
        "printf 'iter 1: loss 2.5, time 20ms\\niter 2: loss 1.5, time 20ms\\n'; while [ -e {} ]; do \
         sleep 0.05; done",
        bench.path("").display()
    );
    let mut command = bench.command(&["exec", "--job", "toy", "--", "sh", "-c", &script]);
    let running = Running(command.stdout(Stdio::null()).spawn().unwrap());
    bench.until(|progress| progress.eval.count == 2);
    running
}

/// A user who watches the job, and the modes of the terminal before.
fn watching(bench: &Bench) -> (User, String) {
    let address = format!("unix:{}", bench.path("sidecar.sock").display());
    // The size is set before `watch` asks for it.
    let script = format!("read -r _; exec {PROGRAM} watch {address}");
    let mut user = User::runs(bench, &["sh", "-c", &script]);
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&user.theirs, size).unwrap();
    let before = modes(&user);
    user.types("\r");
    // Only cells that change are drawn, so these words stand where nothing was.
    for word in ["sound", "smoothed,", "20.00", "Checkpoint"] {
        user.sees(word);
    }
    assert_ne!(modes(&user), before, "keys are read one by one");
    (user, before)
}

fn modes(user: &User) -> String {
    format!("{:?}", tcgetattr(&user.theirs).unwrap().local_modes)
}

#[test]
fn watched_job_is_drawn_and_q_gives_the_terminal_back() {
    let bench = Bench::new();
    let running = job(&bench);
    let (mut user, before) = watching(&bench);
    running.signal(Signal::TERM);
    // The end of the job stays on the screen.
    user.sees("Failed");
    user.types("q");
    assert_eq!(user.program.0.wait().unwrap().code(), Some(0));
    user.sees(LEAVES);
    assert_eq!(modes(&user), before);
}

#[test]
fn watch_that_gets_a_signal_gives_the_terminal_back() {
    let bench = Bench::new();
    let _running = job(&bench);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (mut user, before) = watching(&bench);
        user.program.signal(signal);
        assert_eq!(user.program.0.wait().unwrap().code(), Some(0), "{signal:?}");
        user.sees(LEAVES);
        assert_eq!(modes(&user), before);
    }
}

#[test]
fn watch_of_nothing_names_the_address_and_ends_with_1() {
    let bench = Bench::new();
    let address = format!("unix:{}", bench.path("sidecar.sock").display());
    let output = bench.run(&["watch", &address]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(said.contains(&format!("cannot watch {address}: ")), "{said}");
    let wrong = bench.run(&["watch", "nowhere"]);
    assert_eq!(wrong.status.code(), Some(2));
    let folder = bench.run(&["watch", "--folder", "/no/such/folder"]);
    assert_eq!(folder.status.code(), Some(2));
    let empty = bench.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(empty.status.code(), Some(2));
}
