use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::{Audit, Entry, Rotation, read};
use super::*;

/// A log of five entries in two files.
fn log() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 700, kept: 8 };
    let mut log = Audit::open_with(folder.path(), rotation).unwrap();
    for left in 0..5 {
        log.write(&Entry::Ended { left });
    }
    drop(log);
    assert_eq!(files::all(folder.path()).unwrap().len(), 2);
    folder
}

/// The verdict once the lines of the file that is written were handled so.
fn after(tamper: impl Fn(&mut Vec<String>)) -> Verdict {
    let folder = log();
    let path = files::older(folder.path()).unwrap().remove(0);
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
fn each_way_of_tampering_is_found_where_it_was_done() {
    let (line, what) = (2, "its text does not have the hash that it names");
    let changed = after(|lines| lines[1] = lines[1].replace("\"left\":1", "\"left\":7"));
    assert_eq!(only_break(&changed), (line, what));
    let removed = after(|lines| drop(lines.remove(1)));
    assert_eq!(only_break(&removed), (2, "entry 3 follows entry 1"));
    let swapped = after(|lines| lines.swap(1, 2));
    assert_eq!(swapped.broken, 3, "{swapped:?}");
    let doubled = after(|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(only_break(&doubled), (2, "entry 1 follows entry 1"));
    let foreign = after(|lines| lines.insert(1, "hello".to_owned()));
    assert!(only_break(&foreign).1.starts_with("it is no entry"), "{foreign:?}");
    // With a hash made anew the line itself is whole, and the one after it no longer follows.
    let forged = after(|lines| {
        let head = record::open(&lines[1]).unwrap();
        lines[1] = record::seal(2, head.at, &head.prev, &Entry::Ended { left: 7 }).unwrap().0;
    });
    assert_eq!(only_break(&forged), (3, "entry 2 is not the one that it follows"));
}

#[test]
fn a_file_that_is_gone_from_between_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: 300, kept: 8 };
    let mut log = Audit::open_with(folder.path(), rotation).unwrap();
    (0..9).for_each(|left| log.write(&Entry::Ended { left }));
    fs::remove_file(&files::older(folder.path()).unwrap()[1]).unwrap();
    let verdict = verify(folder.path(), None).unwrap();
    assert_eq!(verdict.broken, 1, "{verdict:?}");
}

#[test]
fn a_hash_kept_elsewhere_tells_of_a_log_that_was_written_anew() {
    let folder = log();
    let last = verify(folder.path(), None).unwrap().last.unwrap();
    assert!(verify(folder.path(), Some(&last.hash)).unwrap().holds());
    let other = log();
    let verdict = verify(other.path(), Some(&last.hash)).unwrap();
    assert_eq!((verdict.broken, verdict.anchored, verdict.holds()), (0, Some(false), false));
}

#[test]
fn no_log_is_an_error_and_an_empty_folder_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    assert!(verify(&folder.path().join("none"), None).is_err());
    assert_eq!(verify(folder.path(), None).unwrap(), Verdict::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_byte_can_be_changed_unnoticed(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let folder = log();
        let (path, _) = files::all(folder.path()).unwrap().remove(1);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(&path, bytes).unwrap();
        let verdict = verify(folder.path(), None).unwrap();
        prop_assert!(!verdict.holds() || verdict.torn, "{verdict:?}");
    }

    #[test]
    fn whatever_stands_in_a_file_is_read_and_gone_on_from(
        bytes in prop::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..400,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(files::current(folder.path()), &bytes).unwrap();
        let before = verify(folder.path(), None).unwrap();
        prop_assert_eq!(before.entries, 0);
        let mut log = Audit::open(folder.path()).unwrap();
        log.write(&Entry::Ended { left: 3 });
        let last = read::last(folder.path(), 1).unwrap();
        prop_assert_eq!(&last[0].entry, &Entry::Ended { left: 3 });
        let after = verify(folder.path(), None).unwrap();
        prop_assert!(!after.torn);
        prop_assert!(after.broken <= before.broken);
    }
}
