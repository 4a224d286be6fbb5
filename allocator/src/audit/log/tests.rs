use std::fs;
use std::path::Path;

use super::super::verify::verify;
use super::super::{read, record};
use super::*;

fn said(text: &str) -> Entry {
    Entry::Restored { container: "4f2a".to_owned(), how: text.to_owned() }
}

fn text(folder: &Path) -> String {
    fs::read_to_string(files::current(folder)).unwrap()
}

fn entries(folder: &Path) -> Vec<(u64, Entry)> {
    read::last(folder, 1000).unwrap().into_iter().map(|line| (line.seq, line.entry)).collect()
}

#[test]
fn the_chain_goes_on_from_run_to_run() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["one", "two"] {
        let mut log = Audit::open(folder.path()).unwrap();
        log.write(&said(run));
        log.write(&Entry::Ended { left: 0 });
    }
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds() && !verdict.torn, "{verdict:?}");
    assert_eq!((verdict.files, verdict.entries, verdict.first), (1, 4, Some(1)));
    assert_eq!(entries(folder.path())[2], (3, said("two")));
}

#[test]
fn a_full_file_is_set_aside_and_the_next_names_its_last_hash() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 600, kept: 2 };
    let mut log = Audit::open_with(folder.path(), rotation).unwrap();
    for number in 0..20 {
        log.write(&said(&number.to_string()));
    }
    let files = files::all(folder.path()).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    assert_eq!(verdict.last.as_ref().map(|last| last.seq), Some(20));
    assert!(verdict.first > Some(1), "the oldest are removed: {verdict:?}");
    let older = fs::read_to_string(&files[1].0).unwrap();
    let before = record::open(older.lines().last().unwrap()).unwrap();
    let after = record::open(text(folder.path()).lines().next().unwrap()).unwrap();
    assert_eq!(after.prev, before.hash);
    // A run that begins when nothing stands in the new file yet goes on all the same.
    fs::rename(files::current(folder.path()), files::set_aside(folder.path(), 20)).unwrap();
    Audit::open_with(folder.path(), rotation).unwrap().write(&said("later"));
    assert!(verify(folder.path(), None).unwrap().holds());
    assert_eq!(entries(folder.path()).last(), Some(&(21, said("later"))));
}

#[test]
fn a_line_that_was_cut_short_is_taken_off_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Audit::open(folder.path()).unwrap();
    log.write(&said("whole"));
    log.write(&said("cut short"));
    drop(log);
    let whole = text(folder.path());
    let file = File::options().write(true).open(files::current(folder.path())).unwrap();
    file.set_len(u64::try_from(whole.len()).unwrap() - 10).unwrap();
    assert!(verify(folder.path(), None).unwrap().torn);
    let mut log = Audit::open(folder.path()).unwrap();
    assert!(!verify(folder.path(), None).unwrap().torn);
    log.write(&said("after"));
    let second = whole.lines().nth(1).unwrap().len();
    let torn = Entry::Torn { bytes: u64::try_from(second - 9).unwrap() };
    assert_eq!(entries(folder.path()), [(1, said("whole")), (2, torn), (3, said("after"))]);
    assert!(verify(folder.path(), None).unwrap().holds());
}

#[test]
fn two_writers_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 2000, kept: 100 };
    std::thread::scope(|scope| {
        for who in ["a", "b"] {
            let mut log = Audit::open_with(folder.path(), rotation).unwrap();
            scope.spawn(move || (0..50).for_each(|n| log.write(&said(&format!("{who}{n}")))));
        }
    });
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    assert_eq!(verdict.entries, 100);
}

#[test]
fn what_could_not_be_written_is_counted_and_told_of_once_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Audit::open(&path).unwrap();
    log.write(&said("before"));
    // A file in its folder's place: whatever the cause, nothing can be written.
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    fs::write(&path, "").unwrap();
    log.write(&said("lost"));
    log.write(&said("lost, too"));
    fs::remove_file(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    log.write(&said("after"));
    log.write(&said("and on"));
    let expected = [said("before"), Entry::Missed { count: 2 }, said("after"), said("and on")];
    assert_eq!(entries(&path), (1..).zip(expected).collect::<Vec<_>>());
    assert!(verify(&path, None).unwrap().holds());
}

#[test]
fn an_entry_longer_than_a_line_may_be_is_missing_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Audit::open(folder.path()).unwrap();
    log.write(&said(&"x".repeat(files::LONGEST)));
    log.write(&said("short"));
    let expected = [(1, Entry::Missed { count: 1 }), (2, said("short"))];
    assert_eq!(entries(folder.path()), expected);
}
