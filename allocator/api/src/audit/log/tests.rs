use std::fs;
use std::path::{Path, PathBuf};

use super::super::verify::verify;
use super::super::{read, record};
use super::*;

fn note(text: &str) -> Entry {
    Entry::Restored { container: "4f2a".to_owned(), how: text.to_owned() }
}

fn current(folder: &Path) -> PathBuf {
    folder.join(files::CURRENT)
}

fn text(folder: &Path) -> String {
    fs::read_to_string(current(folder)).unwrap()
}

fn open_with(folder: &Path, rotation: Rotation) -> Audit {
    Audit::within(&StateFolder::open(folder).unwrap(), rotation).unwrap()
}

/// All entries but those that say that the head is kept.
fn entries(folder: &Path) -> Vec<(u64, Entry)> {
    let all = read::last(folder, 1000).unwrap().into_iter();
    all.filter(|line| !matches!(line.entry, Entry::HeadKept { .. }))
        .map(|line| (line.seq, line.entry))
        .collect()
}

#[test]
fn chain_continues_from_run_to_run() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["one", "two"] {
        let mut log = Audit::open(folder.path()).unwrap();
        log.write(&note(run));
        log.write(&Entry::Ended { left: 0 });
    }
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds() && !verdict.torn, "{verdict:?}");
    assert_eq!((verdict.files, verdict.entries, verdict.first), (1, 5, Some(1)));
    assert_eq!(entries(folder.path())[2], (4, note("two")));
}

#[test]
fn full_file_is_set_aside_and_next_one_names_its_last_hash() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 600, kept: 2 };
    let mut log = open_with(folder.path(), rotation);
    for number in 0..20 {
        log.write(&note(&number.to_string()));
    }
    let files = files::all(&StateFolder::open(folder.path()).unwrap()).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    let last = verdict.last.as_ref().map(|last| last.seq).unwrap();
    assert_eq!(entries(folder.path()).last(), Some(&(last, note("19"))));
    assert!(verdict.first > Some(1), "the oldest are removed: {verdict:?}");
    let older = fs::read_to_string(&files[1].0).unwrap();
    let before = record::open(older.lines().last().unwrap()).unwrap();
    let after = record::open(text(folder.path()).lines().next().unwrap()).unwrap();
    assert_eq!(after.prev, before.hash);
    // A run that begins while the new file is still empty continues the chain as well.
    fs::rename(current(folder.path()), folder.path().join(files::set_aside(last))).unwrap();
    open_with(folder.path(), rotation).write(&note("later"));
    assert!(verify(folder.path(), None).unwrap().holds());
    assert_eq!(entries(folder.path()).last(), Some(&(last + 2, note("later"))));
}

#[test]
fn incomplete_last_line_is_removed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Audit::open(folder.path()).unwrap();
    log.write(&note("whole"));
    log.write(&note("cut short"));
    drop(log);
    let whole = text(folder.path());
    let file = File::options().write(true).open(current(folder.path())).unwrap();
    file.set_len(u64::try_from(whole.len()).unwrap() - 10).unwrap();
    assert!(verify(folder.path(), None).unwrap().torn);
    let mut log = Audit::open(folder.path()).unwrap();
    assert!(!verify(folder.path(), None).unwrap().torn);
    log.write(&note("after"));
    let second = whole.lines().nth(2).unwrap().len();
    let torn = Entry::Torn { bytes: u64::try_from(second - 9).unwrap() };
    // The entry that was cut short had been written: the chain shows that it is missing.
    assert_eq!(entries(folder.path()), [(2, note("whole")), (4, torn), (5, note("after"))]);
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!((verdict.broken, &*verdict.breaks[0].what), (1, "entry 4 follows entry 2"));
}

#[test]
fn two_writers_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 2000, kept: 100 };
    std::thread::scope(|scope| {
        for who in ["a", "b"] {
            let mut log = open_with(folder.path(), rotation);
            scope.spawn(move || (0..50).for_each(|n| log.write(&note(&format!("{who}{n}")))));
        }
    });
    let verdict = verify(folder.path(), None).unwrap();
    assert!(verdict.holds(), "{verdict:?}");
    assert_eq!(entries(folder.path()).len(), 100);
}

/// As by a process that was stopped in the middle of an entry.
#[test]
fn lock_that_another_process_holds_delays_no_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let mut log = Audit::open(&path).unwrap();
    log.write(&note("before"));
    let holder = File::options().write(true).open(path.join(LOCK)).unwrap();
    holder.lock().unwrap();
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for number in 0..2000 {
            log.write(&note(&number.to_string()));
        }
        // As a restore opens the log before its first limit.
        let opened = Audit::open(&path).unwrap();
        drop(sender.send((log, opened)));
    });
    // Each entry's own wait would add up to minutes.
    let (mut log, mut opened) = done.recv_timeout(Duration::from_secs(30)).expect("it waits");
    assert_eq!(entries(folder.path()), [(2, note("before"))]);
    drop(holder);
    log.write(&note("after"));
    opened.write(&note("of the other one"));
    let expected =
        [note("before"), Entry::Missed { count: 2000 }, note("after"), note("of the other one")];
    assert_eq!(entries(folder.path()), (2..).zip(expected).collect::<Vec<_>>());
    assert!(verify(folder.path(), None).unwrap().holds());
}

/// A line that its writer was writing when it was killed: the head does not name it.
#[test]
fn line_cut_short_by_a_kill_leaves_the_chain_whole() {
    let folder = tempfile::tempdir().unwrap();
    Audit::open(folder.path()).unwrap().write(&note("whole"));
    let mut file = File::options().append(true).open(current(folder.path())).unwrap();
    file.write_all(b"{\"seq\":3,\"at\"").unwrap();
    Audit::open(folder.path()).unwrap().write(&note("after"));
    let torn = Entry::Torn { bytes: 13 };
    assert_eq!(entries(folder.path()), [(2, note("whole")), (3, torn), (4, note("after"))]);
    assert!(verify(folder.path(), None).unwrap().holds());
}

#[test]
fn entry_whose_head_was_not_written_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    Audit::open(folder.path()).unwrap().write(&note("one"));
    let head = fs::read(folder.path().join(chain_head::FILE)).unwrap();
    Audit::open(folder.path()).unwrap().write(&note("two"));
    // Its writer was killed between the entry and the head.
    fs::write(folder.path().join(chain_head::FILE), head).unwrap();
    assert!(verify(folder.path(), None).unwrap().holds());
    Audit::open(folder.path()).unwrap().write(&note("three"));
    let expected = [note("one"), note("two"), note("three")];
    assert_eq!(entries(folder.path()), (2..).zip(expected).collect::<Vec<_>>());
    assert!(verify(folder.path(), None).unwrap().holds());
}

#[test]
fn lost_entries_are_counted_and_reported_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Audit::open(&path).unwrap();
    log.write(&note("before"));
    // A folder in the file's place makes every write fail.
    let aside = folder.path().join("aside");
    fs::rename(current(&path), &aside).unwrap();
    fs::create_dir(current(&path)).unwrap();
    log.write(&note("lost"));
    log.write(&note("lost, too"));
    fs::remove_dir(current(&path)).unwrap();
    fs::rename(&aside, current(&path)).unwrap();
    log.write(&note("after"));
    log.write(&note("and on"));
    let expected = [note("before"), Entry::Missed { count: 2 }, note("after"), note("and on")];
    assert_eq!(entries(&path), (2..).zip(expected).collect::<Vec<_>>());
    assert!(verify(&path, None).unwrap().holds());
}

#[test]
fn files_removed_during_a_run_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut log = Audit::open(&path).unwrap();
    log.write(&note("one"));
    fs::remove_file(path.join(chain_head::FILE)).unwrap();
    log.write(&note("two"));
    assert!(verify(&path, None).unwrap().holds());
    fs::remove_dir_all(&path).unwrap();
    log.write(&note("three"));
    let verdict = verify(&path, None).unwrap();
    assert!(!verdict.holds(), "the first entries are missing: {verdict:?}");
    assert_eq!(entries(&path).last().map(|(_, entry)| entry), Some(&note("three")));
}

#[test]
fn entry_longer_than_a_line_is_the_only_one_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Audit::open(folder.path()).unwrap();
    log.write(&note(&"x".repeat(files::MAX_LINE)));
    log.write(&note("short"));
    let expected = [(2, Entry::Missed { count: 1 }), (3, note("short"))];
    assert_eq!(entries(folder.path()), expected);
}
