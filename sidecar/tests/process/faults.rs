//! What goes wrong around a sidecar: the job does not feel it, and what can be reported is.

use std::fs::{self, File};
use std::process::Stdio;

use paceline_reporter::wire::{Progress, State};

use crate::program::{Bench, Running, append, line};

/// What a shell does until its folder has a file `end`, but not for ever.
const WAIT: &str = "for i in $(seq 12000); do [ ! -e end ] || break; sleep 0.01; done";

/// Every write to it fails as on a full disk.
fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_command_goes_on_when_its_output_finds_no_room() {
    let bench = Bench::new();
    let script = format!("printf %s '{}{}'; {WAIT}; exit 3", line(1), line(2));
    let mut command = bench.command(&["exec", "--", "sh", "-c", &script]);
    command.current_dir(bench.path("")).stdout(full_disk());
    let mut running = Running(command.spawn().unwrap());
    let read = bench.until(|progress| progress.eval.count == 2);
    let source = &read.sidecar.unwrap().sources[0];
    assert_eq!(source.dropped, 1);
    assert!(source.error.as_ref().unwrap().contains("No space left"), "{source:?}");
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
}

#[test]
fn a_sidecar_whose_own_words_find_no_room_still_serves() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let mut command = bench.command(&["--log", log.to_str().unwrap()]);
    let _running = Running(command.stderr(full_disk()).spawn().unwrap());
    append(&log, &line(1));
    bench.until(|progress| progress.eval.count == 1);
}

#[test]
fn a_log_that_is_deleted_is_gone_on_with_when_there_is_a_new_one() {
    let bench = Bench::new();
    let log = bench.path("train.log");
    let _running = Running(bench.command(&["--log", log.to_str().unwrap()]).spawn().unwrap());
    append(&log, &line(1));
    bench.until(|progress| progress.eval.count == 1);
    fs::remove_file(&log).unwrap();
    let is_up = |progress: &Progress| {
        progress.sidecar.as_ref().unwrap().sources.first().is_some_and(|source| source.up)
    };
    bench.until(|progress| !is_up(progress));
    append(&log, &line(2));
    let read = bench.until(|progress| progress.step == Some(2));
    assert!(is_up(&read));
    assert_eq!(read.eval.count, 2);
}

#[test]
fn a_command_that_is_killed_has_failed() {
    let bench = Bench::new();
    let status = bench.path("status.json");
    let script = format!("printf %s '{}'; {WAIT}; kill -9 $$", line(1));
    let words = ["exec", "--status-file", status.to_str().unwrap(), "--", "sh", "-c", &script];
    let mut command = bench.command(&words);
    command.current_dir(bench.path("")).stdout(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    bench.until(|progress| progress.eval.count == 1);
    append(&bench.path("end"), "");
    assert_eq!(running.0.wait().unwrap().code(), Some(137));
    let last: Progress = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    assert_eq!((last.state, last.eval.count), (State::Failed, 1));
}
