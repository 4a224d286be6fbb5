use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::{Audit, Entry, Rotation};
use super::*;

fn open(folder: &Path, rotation: Rotation) -> Audit {
    Audit::within(&StateFolder::open(folder).unwrap(), rotation).unwrap()
}

/// The paths of a log's files, oldest first.
fn paths(folder: &Path) -> Vec<PathBuf> {
    let files = files::all(&StateFolder::open(folder).unwrap()).unwrap();
    files.into_iter().map(|(path, _)| path).collect()
}

/// A log of eight entries in two files; the first of each file says that the head is kept.
fn log() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path(), Rotation { size: 900, kept: 8 });
    for left in 0..6 {
        log.write(&Entry::Ended { left });
    }
    drop(log);
    assert_eq!(paths(folder.path()).len(), 2);
    folder
}

/// The verdict after `tamper` has changed the lines of the older file.
fn after(tamper: impl Fn(&mut Vec<String>)) -> Verdict {
    let folder = log();
    let path = paths(folder.path()).remove(0);
    let mut lines: Vec<String> =
        fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    tamper(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    verify(folder.path(), None).unwrap()
}

fn only_break(verdict: &Verdict) -> (u64, &str) {
    assert_eq!(verdict.breaks.len(), 1, "{verdict:?}");
    (verdict.breaks[0].line, &verdict.breaks[0].what)
}

#[test]
fn tampering_is_found_at_its_line() {
    let (line, what) = (2, "its text does not match its hash");
    let changed = after(|lines| lines[1] = lines[1].replace("\"left\":0", "\"left\":7"));
    assert_eq!(only_break(&changed), (line, what));
    let removed = after(|lines| drop(lines.remove(1)));
    assert_eq!(only_break(&removed), (2, "entry 3 follows entry 1"));
    let swapped = after(|lines| lines.swap(1, 2));
    assert_eq!(swapped.broken, 3, "{swapped:?}");
    let doubled = after(|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(only_break(&doubled), (2, "entry 1 follows entry 1"));
    let foreign = after(|lines| lines.insert(1, "hello".to_owned()));
    assert!(only_break(&foreign).1.starts_with("it is not an entry"), "{foreign:?}");
    // With a forged hash the line itself is valid, and the next one no longer follows it.
    let forged = after(|lines| {
        let head = record::open(&lines[1]).unwrap();
        lines[1] = record::seal(2, head.at, &head.prev, &Entry::Ended { left: 7 }).unwrap().0;
    });
    assert_eq!(only_break(&forged), (3, "it does not name the hash of entry 2 before it"));
}

#[test]
fn missing_file_between_others_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 300, kept: 8 };
    let mut log = open(folder.path(), rotation);
    (0..9).for_each(|left| log.write(&Entry::Ended { left }));
    fs::remove_file(&paths(folder.path())[1]).unwrap();
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!(verdict.broken, 1, "{verdict:?}");
}

#[test]
fn hash_kept_elsewhere_reveals_a_rewritten_log() {
    let folder = log();
    let last = verify(folder.path(), None).unwrap().last.unwrap();
    assert!(verify(folder.path(), Some(&last.hash)).unwrap().holds());
    let other = log();
    let verdict = verify(other.path(), Some(&last.hash)).unwrap();
    assert_eq!((verdict.broken, verdict.anchored, verdict.holds()), (0, Some(false), false));
}

#[test]
fn missing_folder_is_an_error_and_empty_folder_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    assert!(verify(&folder.path().join("none"), None).is_err());
    assert_eq!(verify(folder.path(), None).unwrap(), Verdict::default());
}

fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// The only break of a log that was cut.
fn break_of_cut(folder: &Path) -> String {
    let verdict = verify(folder, None).unwrap();
    assert_eq!((verdict.holds(), verdict.end), (false, End::Broken), "{verdict:?}");
    only_break(&verdict).1.to_owned()
}

#[test]
fn whole_log_agrees_with_its_head() {
    let folder = log();
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!((verdict.holds(), verdict.end, verdict.entries), (true, End::Whole, 8));
}

#[test]
fn cut_tail_is_noticed() {
    let folder = log();
    let last = paths(folder.path()).pop().unwrap();
    let lines = lines_of(&last);
    fs::write(&last, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    assert_eq!(break_of_cut(folder.path()), "entries 8 to 8 are missing at the end of the log");
}

#[test]
fn emptied_or_removed_log_is_noticed() {
    let folder = log();
    fs::write(folder.path().join(files::CURRENT), "").unwrap();
    let what = break_of_cut(folder.path());
    assert!(what.ends_with("to 8 are missing at the end of the log"), "{what}");
    for path in paths(folder.path()) {
        fs::remove_file(path).unwrap();
    }
    assert!(read::exists(folder.path()));
    assert_eq!(
        break_of_cut(folder.path()),
        "entries 1 to 8 are missing at the beginning of the log"
    );
}

#[test]
fn log_that_cannot_be_read_is_not_taken_for_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!read::try_exists(folder.path()).unwrap());
    assert!(!read::try_exists(&folder.path().join("none")).unwrap());
    fs::create_dir(folder.path().join(files::CURRENT)).unwrap();
    let error = read::try_exists(folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn cut_beginning_is_noticed() {
    let folder = log();
    fs::remove_file(&paths(folder.path())[0]).unwrap();
    let what = break_of_cut(folder.path());
    assert!(what.starts_with("entries 1 to ") && what.ends_with("at the beginning of the log"));
}

#[test]
fn log_continued_after_a_cut_still_shows_the_cut() {
    let folder = log();
    let last = paths(folder.path()).pop().unwrap();
    let lines = lines_of(&last);
    fs::write(&last, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    for left in 0..2 {
        Audit::open(folder.path()).unwrap().write(&Entry::Ended { left });
        let verdict = verify(folder.path(), None).unwrap();
        assert_eq!((only_break(&verdict).1, verdict.end), ("entry 9 follows entry 7", End::Whole));
    }
    let other = log();
    let last = paths(other.path()).pop().unwrap();
    let mut lines = lines_of(&last);
    // A line of the same number in the place of the last one, with a valid hash.
    let end = lines.pop().map(|line| record::open(&line).unwrap()).unwrap();
    lines.push(record::seal(end.seq, end.at, &end.prev, &Entry::Ended { left: 7 }).unwrap().0);
    fs::write(&last, lines.join("\n") + "\n").unwrap();
    assert_eq!(break_of_cut(other.path()), "entry 8 is not the one that was written");
    Audit::open(other.path()).unwrap().write(&Entry::Ended { left: 0 });
    let verdict = verify(other.path(), None).unwrap();
    assert_eq!(only_break(&verdict).1, "it does not name the hash of entry 8 before it");
}

#[test]
fn removed_or_damaged_head_is_noticed_and_stays_so() {
    for damage in [None, Some("{}")] {
        let folder = log();
        let head = folder.path().join(chain_head::FILE);
        match damage {
            None => fs::remove_file(&head).unwrap(),
            Some(text) => fs::write(&head, text).unwrap(),
        }
        assert!(!break_of_cut(folder.path()).is_empty());
        Audit::open(folder.path()).unwrap().write(&Entry::Ended { left: 0 });
        let verdict = verify(folder.path(), None).unwrap();
        let what = only_break(&verdict).1;
        assert!(what.starts_with("audit.head was missing or unreadable here"), "{what}");
    }
}

#[test]
fn log_without_a_head_is_accepted_once() {
    let folder = tempfile::tempdir().unwrap();
    let (first, hash) = record::seal(1, 1.5, &Link::none(), &Entry::Ended { left: 0 }).unwrap();
    let (second, _) = record::seal(2, 2.5, &hash, &Entry::Ended { left: 1 }).unwrap();
    fs::write(folder.path().join(files::CURRENT), format!("{first}\n{second}\n")).unwrap();
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!((verdict.holds(), verdict.end), (true, End::Unknown));
    Audit::open(folder.path()).unwrap().write(&Entry::Ended { left: 2 });
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!((verdict.holds(), verdict.end, verdict.entries), (true, End::Whole, 4));
    fs::remove_file(folder.path().join(chain_head::FILE)).unwrap();
    assert!(!verify(folder.path(), None).unwrap().holds());
}

/// Rewrites a head as if the machine had been started since.
fn before_last_boot(folder: &Path, synced: u64) {
    let path = folder.join(chain_head::FILE);
    let mut head: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    head["boot"] = "another".into();
    head["synced"] = synced.into();
    fs::write(&path, head.to_string()).unwrap();
}

#[test]
fn entries_lost_with_the_machine_are_not_tampering() {
    for (synced, holds) in [(7, true), (8, false)] {
        let folder = log();
        let last = paths(folder.path()).pop().unwrap();
        let lines = lines_of(&last);
        fs::write(&last, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
        before_last_boot(folder.path(), synced);
        let verdict = verify(folder.path(), None).unwrap();
        assert_eq!(verdict.holds(), holds, "{verdict:?}");
        let lost = End::LostWithMachine { entries: 1 };
        assert_eq!(verdict.end, if holds { lost } else { End::Broken });
        Audit::open(folder.path()).unwrap().write(&Entry::Ended { left: 0 });
        assert_eq!(verify(folder.path(), None).unwrap().holds(), holds);
        let records = read::last(folder.path(), 2).unwrap();
        let missed = records[0].entry == Entry::Missed { count: 1 };
        assert_eq!(missed, holds, "{records:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_byte_is_always_noticed(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let folder = log();
        let path = paths(folder.path()).remove(1);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(&path, bytes).unwrap();
        let verdict = verify(folder.path(), None).unwrap();
        prop_assert!(!verdict.holds() || verdict.torn, "{verdict:?}");
    }

    #[test]
    fn file_with_any_bytes_is_read_and_continued(
        bytes in prop::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..400,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(files::CURRENT), &bytes).unwrap();
        let before = verify(folder.path(), None).unwrap();
        prop_assert_eq!((before.entries, before.end), (0, End::Unknown));
        let mut log = Audit::open(folder.path()).unwrap();
        log.write(&Entry::Ended { left: 3 });
        let last = read::last(folder.path(), 1).unwrap();
        prop_assert_eq!(&last[0].entry, &Entry::Ended { left: 3 });
        let after = verify(folder.path(), None).unwrap();
        prop_assert!(!after.torn);
        prop_assert!(after.broken <= before.broken);
    }
}
