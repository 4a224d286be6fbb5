//! The files that a job leaves.

mod client;

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use client::wait_until;
use paceline_reporter::Reporter;
use paceline_wire::{Activity, Progress, State};

fn read(path: &Path) -> Option<Progress> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn wait_for(path: &Path, is_there: impl Fn(&Progress) -> bool) -> Progress {
    let mut found = None;
    wait_until("a progress", || {
        found = read(path).filter(&is_there);
        found.is_some()
    });
    found.expect("it was waited for")
}

#[test]
fn losses_that_a_device_still_computes_are_in_the_last_progress() {
    let folder = tempfile::tempdir().unwrap();
    let status = folder.path().join("status.json");
    let builder = Reporter::builder("vae").status_file(&status).listen("127.0.0.1:0");
    let reporter = builder.end_timeout(Duration::from_secs(60)).start().unwrap();
    for loss in [3.0, 5.0, 7.0] {
        reporter.batch().loss_later(move || {
            thread::park_timeout(Duration::from_millis(30));
            loss
        });
    }
    reporter.finish();
    drop(reporter);
    let last = wait_for(&status, |progress| progress.state == State::Finished);
    assert_eq!((last.step, last.eval.sum, last.dropped), (Some(3), 15.0, 0));
}

#[test]
fn loss_that_is_never_known_is_counted_and_delays_the_end_by_a_bounded_time() {
    let folder = tempfile::tempdir().unwrap();
    let status = folder.path().join("status.json");
    let builder = Reporter::builder("vae").status_file(&status).listen("127.0.0.1:0");
    let reporter = builder.start().unwrap();
    let (known, unknown) = mpsc::channel();
    reporter.batch().loss_later(move || unknown.recv().unwrap_or(1.0));
    reporter.finish();
    drop(reporter);
    let last = wait_for(&status, |progress| progress.state == State::Finished);
    assert_eq!((last.eval.count, last.dropped), (0, 1));
    drop(known);
}

#[test]
fn the_last_progress_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [status, termination] =
        ["status.json", "termination-log"].map(|name| folder.path().join(name));
    let builder = Reporter::builder("vae").status_file(&status).termination_log(&termination);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    reporter.report(3.0);
    let first = wait_for(&status, |progress| progress.step == Some(1));
    assert_eq!((first.state, first.eval.value), (State::Running, Some(3.0)));
    reporter.report(5.0);
    reporter.finish();
    drop(reporter);
    for path in [&status, &termination] {
        let last = wait_for(path, |progress| progress.state == State::Finished);
        assert_eq!((last.step, last.eval.sum), (Some(2), 8.0));
    }
    assert!(fs::metadata(&termination).unwrap().len() <= 4096);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no half-written file is left");
}

#[test]
fn status_file_shows_an_evaluation_that_reports_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let status = folder.path().join("status.json");
    let builder = Reporter::builder("vae").status_file(&status).listen("127.0.0.1:0");
    let reporter = builder.start().unwrap();
    reporter.report(3.0);
    wait_for(&status, |progress| progress.signals.activity == Activity::Training);
    let evaluation = reporter.evaluating();
    wait_for(&status, |progress| progress.signals.activity == Activity::Evaluating);
    drop(evaluation);
    wait_for(&status, |progress| progress.signals.activity == Activity::Training);
    reporter.validation(2.0);
    wait_for(&status, |progress| progress.validation.is_some());
}

#[test]
fn unwritable_file_does_not_fail_the_job() {
    let builder = Reporter::builder("vae").status_file("/no/such/folder/status.json");
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    reporter.report(1.0);
}

#[cfg(unix)]
#[test]
fn pipes_and_links_in_the_place_of_files_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let [status, new, termination] =
        ["status.json", "status.json.new", "termination-log"].map(|name| folder.path().join(name));
    for pipe in [&new, &termination] {
        let made = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(made.success());
    }
    let builder = Reporter::builder("vae").status_file(&status).termination_log(&termination);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    reporter.report(3.0);
    wait_for(&status, |progress| progress.step == Some(1));
    let other = folder.path().join("other");
    fs::write(&other, "another file").unwrap();
    std::os::unix::fs::symlink(&other, &new).unwrap();
    reporter.report(5.0);
    reporter.finish();
    drop(reporter);
    wait_for(&status, |progress| progress.state == State::Finished);
    assert_eq!(fs::read_to_string(&other).unwrap(), "another file");
}

#[cfg(unix)]
#[test]
fn termination_log_may_be_a_pipe_that_is_read() {
    use std::io::{BufRead, BufReader};

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("termination-log");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    // For writing as well, so that opening it waits for no other end.
    let reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let builder = Reporter::builder("vae").termination_log(&pipe);
    let reporter = builder.listen("127.0.0.1:0").start().unwrap();
    reporter.report(3.0);
    reporter.finish();
    drop(reporter);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    assert!(line.contains("\"job\":\"vae\""), "{line}");
}
