use std::fs;
use std::sync::LazyLock;

use paceline_reporter::wire::Validation;
use proptest::prelude::*;
use regex::Regex;

use super::*;
use crate::forward::tests;

/// The filter of Katib's collector where none is set.
const FILTER: &str = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)";

/// What Katib's collector reads: the time, the names and the values of each line.
fn collected(text: &str) -> Vec<(String, Vec<(String, f64)>)> {
    static COMPILED: LazyLock<Regex> = LazyLock::new(|| Regex::new(FILTER).unwrap());
    let filter = &*COMPILED;
    let line = |line: &str| {
        let (time, _) = line.split_once(' ').unwrap();
        humantime::parse_rfc3339(time).unwrap();
        let pairs = filter
            .captures_iter(line)
            .map(|found| (found[1].trim().to_owned(), found[2].trim().parse::<f64>().unwrap()));
        (time.to_owned(), pairs.collect())
    };
    text.lines().map(line).collect()
}

fn reading(count: u64, loss: f64) -> Progress {
    let mut progress = tests::progress(1.0);
    progress.now = 1_767_225_600.25;
    (progress.eval.count, progress.eval.value) = (count, Some(loss));
    progress.step = Some(count);
    progress
}

fn send(target: &mut Katib, progress: Progress) -> Result<Outcome, String> {
    target.send(&Item::Reading { progress: progress.into(), is_last: false }, &Ending::new())
}

#[test]
fn collector_reads_what_was_reported_and_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.log");
    let mut target = Katib::new(path.clone());
    assert_eq!(send(&mut target, tests::progress(1.0)), Ok(Outcome::Nothing));
    assert_eq!(send(&mut target, reading(1, 0.5)), Ok(Outcome::Sent));
    assert_eq!(send(&mut target, reading(1, 0.5)), Ok(Outcome::Nothing));
    let mut validated = reading(1, 0.5);
    let held_out = Validation { value: -7.5e-7, best: 0.0, count: 1, updated_at: 1.0 };
    validated.validation = Some(held_out);
    assert_eq!(send(&mut target, validated), Ok(Outcome::Sent));
    let read = collected(&fs::read_to_string(&path).unwrap());
    let pair = |name: &str, value| (name.to_owned(), value);
    assert_eq!(read[0].0, "2026-01-01T00:00:00.250Z");
    assert_eq!(read[0].1, [pair("loss", 0.5), pair("step", 1.0)]);
    assert_eq!(read[1].1, [pair("validation_loss", -7.5e-7), pair("step", 1.0)]);
}

#[test]
fn loss_of_an_earlier_process_is_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.log");
    let mut target = Katib::new(path.clone());
    target.resume(&reading(7, 0.5));
    assert_eq!(send(&mut target, reading(7, 0.5)), Ok(Outcome::Nothing));
    assert_eq!(send(&mut target, reading(8, 0.25)), Ok(Outcome::Sent));
    assert_eq!(collected(&fs::read_to_string(&path).unwrap()).len(), 1);
}

#[test]
fn loss_that_is_not_finite_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.log");
    let mut target = Katib::new(path.clone());
    assert_eq!(send(&mut target, reading(1, f64::NAN)), Ok(Outcome::Nothing));
    assert!(!path.exists());
}

#[test]
fn file_survives_rotation_and_a_cut_line_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rotated) = (folder.path().join("metrics.log"), folder.path().join("metrics.log.1"));
    let mut target = Katib::new(path.clone());
    send(&mut target, reading(1, 0.5)).unwrap();
    fs::rename(&path, &rotated).unwrap();
    send(&mut target, reading(2, 0.25)).unwrap();
    let read = |path| collected(&fs::read_to_string(path).unwrap());
    assert_eq!((read(&rotated).len(), read(&path).len()), (1, 1));
    fs::write(&path, "2026-01-01T00:00:00Z lo").unwrap();
    send(&mut target, reading(3, 0.125)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(collected(text.lines().last().unwrap())[0].1[0], ("loss".to_owned(), 0.125));
}

#[test]
fn full_file_folder_and_pipe_are_errors_and_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.log");
    let mut target = Katib { max_file: 60, ..Katib::new(path.clone()) };
    send(&mut target, reading(1, 0.5)).unwrap();
    let error = send(&mut target, reading(2, 0.5)).unwrap_err();
    assert!(error.ends_with("it is full with 60 bytes; rotate it"), "{error}");
    fs::remove_file(&path).unwrap();
    // It is tried again with the next reading.
    assert_eq!(send(&mut target, reading(3, 0.5)), Ok(Outcome::Sent));
    let mut target = Katib::new(folder.path().into());
    assert!(send(&mut target, reading(1, 0.5)).unwrap_err().starts_with("cannot write "));
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let mut target = Katib::new(pipe);
    let error = send(&mut target, reading(1, 0.5)).unwrap_err();
    assert!(error.ends_with("it is not a regular file"), "{error}");
}

proptest! {
    #[test]
    fn any_finite_loss_is_collected_as_it_was(loss in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
        static READING: LazyLock<Progress> = LazyLock::new(|| reading(1, 0.0));
        let mut progress = READING.clone();
        progress.eval.value = Some(loss);
        let text = line(&progress, (0, 0)).unwrap();
        let read = collected(&text);
        prop_assert_eq!(read[0].1[0].1.to_bits(), loss.to_bits());
        prop_assert_eq!(read[0].1.len(), 2);
    }
}
