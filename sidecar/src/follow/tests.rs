use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A log and its follower.
struct Log {
    folder: tempfile::TempDir,
    follower: Follower,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let follower = Follower::new(folder.path().join("logs/train.log"));
        let log = Self { folder, follower };
        assert_eq!(log.path("").file_name().unwrap(), "logs");
        log
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    fn main(&self) -> PathBuf {
        self.path("train.log")
    }

    fn append(&self, name: &str, text: &str) {
        append(&self.path(name), text.as_bytes());
    }

    /// The new text, with a word in brackets for each break.
    fn read(&mut self) -> String {
        let mut text = Vec::new();
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => text.extend_from_slice(bytes),
            Piece::Break(why) => write!(text, "[{why:?}]").unwrap(),
            Piece::Recalled(_) | Piece::CaughtUp => {}
        };
        while self.follower.poll(&mut take).unwrap().more {}
        String::from_utf8(text).unwrap()
    }

    fn progress(&mut self) -> Progress {
        self.follower.poll(&mut |_| ()).unwrap()
    }

    /// Resumes with a new follower from the saved state.
    fn restart(&mut self) {
        let saved = serde_json::to_string(&self.follower.saved().unwrap()).unwrap();
        self.follower = Follower::resume(self.main(), serde_json::from_str(&saved).unwrap());
    }
}

fn append(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn log_is_read_from_its_start_once_it_exists() {
    let mut log = Log::new();
    assert_eq!(log.progress(), Progress::default());
    fs::create_dir(log.path("")).unwrap();
    assert_eq!(log.read(), "");
    log.append("train.log", "a\nb");
    let progress = log.progress();
    assert_eq!((progress.bytes, progress.opened), (3, true));
    log.append("train.log", "c\n");
    assert_eq!(log.read(), "c\n");
    assert_eq!(log.progress(), Progress { state: State::Up, ..Progress::default() });
}

#[test]
fn rotated_log_is_read_to_its_end_first() {
    let mut log = Log::new();
    log.append("train.log", "a\n");
    assert_eq!(log.read(), "a\n");
    fs::rename(log.main(), log.path("train.log.1")).unwrap();
    log.append("train.log.1", "b\n");
    assert_eq!(log.read(), "b\n");
    assert_eq!(log.progress().state, State::Up);
    log.append("train.log.1", "c\n");
    log.append("train.log", "d\n");
    assert_eq!(log.read(), "c\n[Rotated]d\n");
    assert_eq!(log.follower.counts().rotations, 1);
}

#[test]
fn truncated_log_is_read_from_its_start() {
    let mut log = Log::new();
    log.append("train.log", "first\nsecond\n");
    assert_eq!(log.read(), "first\nsecond\n");
    fs::write(log.main(), "other\n").unwrap();
    assert_eq!(log.read(), "[Truncated]other\n");
    fs::write(log.main(), "").unwrap();
    assert_eq!(log.read(), "[Truncated]");
    log.append("train.log", "more\n");
    assert_eq!(log.read(), "more\n");
    assert_eq!(log.follower.counts().truncations, 2);
}

#[test]
fn contents_that_are_replaced_by_longer_ones_are_noticed() {
    let mut log = Log::new();
    log.append("train.log", "first\n");
    assert_eq!(log.read(), "first\n");
    fs::write(log.main(), "epoch,loss\n1,2\n").unwrap();
    assert_eq!(log.read(), "[Replaced]epoch,loss\n1,2\n");
    // The same start, but not the same in what was read last.
    let banner = "=".repeat(2000);
    fs::write(log.main(), format!("{banner}1\n")).unwrap();
    log.read();
    fs::write(log.main(), format!("{banner}2\n3\n")).unwrap();
    assert_eq!(log.read(), format!("[Replaced]{banner}2\n3\n"));
    assert_eq!(log.follower.counts().replacements, 3);
}

#[test]
fn log_replaced_by_rename_is_read_from_its_start() {
    let mut log = Log::new();
    log.append("train.log", "a\n");
    log.append("new", "a\nb\n");
    assert_eq!(log.read(), "a\n");
    fs::rename(log.path("new"), log.main()).unwrap();
    assert_eq!(log.read(), "[Rotated]a\nb\n");
}

#[test]
fn deleted_log_is_missing_until_a_new_one_appears() {
    let mut log = Log::new();
    log.append("train.log", "a\n");
    let mut writer = OpenOptions::new().append(true).open(log.main()).unwrap();
    assert_eq!(log.read(), "a\n");
    fs::remove_file(log.main()).unwrap();
    writer.write_all(b"b\n").unwrap();
    assert_eq!(log.read(), "b\n");
    assert_eq!(log.progress().state, State::Missing);
    fs::remove_dir_all(log.path("")).unwrap();
    assert_eq!(log.progress().state, State::Missing);
    log.append("train.log", "c\n");
    assert_eq!(log.read(), "[Rotated]c\n");
    assert_eq!(log.progress().state, State::Up);
}

#[test]
fn log_truncated_during_a_poll_is_read_again() {
    let mut log = Log::new();
    let long = "x".repeat(3 * CHUNK);
    log.append("train.log", &long);
    let (main, mut first, mut text) = (log.main(), true, Vec::new());
    let mut take = |piece: Piece<'_>| match piece {
        Piece::Bytes(bytes) => {
            text.extend_from_slice(bytes);
            if std::mem::take(&mut first) {
                fs::write(&main, "after\n").unwrap();
            }
        }
        Piece::Break(why) => write!(text, "[{why:?}]").unwrap(),
        Piece::Recalled(_) | Piece::CaughtUp => {}
    };
    log.follower.poll(&mut take).unwrap();
    let expected = format!("{}[Truncated]after\n", "x".repeat(CHUNK));
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn links_are_followed_and_may_change_their_target() {
    let mut log = Log::new();
    log.append("a", "a1\n");
    log.append("b", "b1\n");
    let point = |log: &Log, name| {
        let next = log.path("next");
        symlink(name, &next).unwrap();
        fs::rename(next, log.main()).unwrap();
    };
    point(&log, "a");
    assert_eq!(log.read(), "a1\n");
    log.append("a", "a2\n");
    point(&log, "b");
    assert_eq!(log.read(), "a2\n[Rotated]b1\n");
    // Back again: nothing is read twice.
    log.append("a", "a3\n");
    point(&log, "a");
    assert_eq!(log.read(), "[Rotated]a3\n");
    point(&log, "nowhere");
    log.append("a", "a4\n");
    assert_eq!(log.read(), "a4\n");
}

#[test]
fn new_sidecar_resumes_where_the_old_one_stopped() {
    let mut log = Log::new();
    log.restart();
    log.append("train.log", &"line\n".repeat(1000));
    assert_eq!(log.read().len(), 5000);
    log.append("train.log", "a\n");
    log.restart();
    assert_eq!(log.read(), "a\n");
    // Twice in a row, without reading the file.
    log.restart();
    log.restart();
    log.append("train.log", "b\n");
    assert_eq!(log.read(), "b\n");
    // Rotated meanwhile.
    log.append("train.log", "c\n");
    fs::rename(log.main(), log.path("train.log.1")).unwrap();
    log.append("train.log", "d\n");
    log.restart();
    assert_eq!(log.read(), "c\n[Rotated]d\n");
    // Truncated and grown meanwhile.
    fs::write(log.main(), "e\nf\n").unwrap();
    log.restart();
    assert_eq!(log.read(), "e\nf\n");
    // Gone, and back under its name.
    fs::rename(log.main(), log.folder.path().join("away")).unwrap();
    log.restart();
    assert_eq!(log.read(), "");
    log.append("elsewhere", "");
    fs::rename(log.folder.path().join("away"), log.main()).unwrap();
    log.append("train.log", "g\n");
    assert_eq!(log.read(), "g\n");
}

#[test]
fn zeros_at_the_end_are_not_written_yet() {
    let mut log = Log::new();
    log.append("train.log", "a\n\0\0\0");
    assert_eq!(log.read(), "a\n");
    fs::write(log.main(), "a\nbc\n\0\0").unwrap();
    assert_eq!(log.read(), "bc\n");
    // A writer that keeps its place in a truncated file leaves a hole before what it writes.
    let file = OpenOptions::new().write(true).truncate(true).open(log.main()).unwrap();
    assert_eq!(log.read(), "[Truncated]");
    let hole = u64::try_from(CHUNK).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, b"d\n", hole).unwrap();
    assert_eq!(log.read().trim_start_matches('\0'), "d\n");
}

#[test]
fn one_poll_reads_a_bounded_amount() {
    let mut log = Log::new();
    log.append("train.log", &"x".repeat(4_000_000));
    let progress = log.progress();
    assert!(progress.more && progress.bytes < 2_000_000, "{progress:?}");
    let mut longest = 0;
    let mut take = |piece: Piece<'_>| {
        if let Piece::Bytes(bytes) = piece {
            longest = longest.max(bytes.len());
        }
    };
    while log.follower.poll(&mut take).unwrap().more {}
    assert_eq!((longest, log.follower.counts().bytes), (CHUNK, 4_000_000));
}

#[test]
fn unreadable_log_is_an_error_until_it_is_readable() {
    let mut log = Log::new();
    log.append("train.log", "a\n");
    let mode = |log: &Log, mode| fs::set_permissions(log.main(), Permissions::from_mode(mode));
    mode(&log, 0o000).unwrap();
    if fs::read(log.main()).is_ok() {
        // The superuser may read everything.
        return;
    }
    let error = log.follower.poll(&mut |_| panic!()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    mode(&log, 0o600).unwrap();
    assert_eq!(log.read(), "a\n");
}

#[test]
fn folder_in_place_of_a_log_is_an_error() {
    let mut log = Log::new();
    fs::create_dir_all(log.main()).unwrap();
    log.follower.poll(&mut |_| panic!()).unwrap_err();
    fs::remove_dir(log.main()).unwrap();
    log.append("train.log", "a\n");
    assert_eq!(log.read(), "a\n");
}

#[test]
fn program_that_keeps_its_rotated_log_is_read_on() {
    let mut log = Log::new();
    log.append("train.log", "a\n");
    assert_eq!(log.read(), "a\n");
    fs::rename(log.main(), log.path("train.log.1")).unwrap();
    log.append("train.log", "");
    for text in ["b\n", "c\n"] {
        log.append("train.log.1", text);
        assert_eq!(log.read(), text);
        assert_eq!(log.progress().state, State::Up);
        log.restart();
    }
    // A second rotation leaves another empty file behind.
    fs::rename(log.main(), log.path("train.log.2")).unwrap();
    log.append("train.log", "");
    log.append("train.log.1", "d\n");
    assert_eq!(log.read(), "d\n");
    // Then the program opens its new log, late.
    log.append("train.log", "e\n");
    assert_eq!(log.read(), "[Rotated]e\n");
}

#[test]
fn named_pipe_is_read_across_several_writers() {
    let mut log = Log::new();
    fs::create_dir(log.path("")).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, log.main(), kind, mode, 0).unwrap();
    assert_eq!(log.read(), "");
    for text in ["a\n", "b\n"] {
        let mut writer = OpenOptions::new().write(true).open(log.main()).unwrap();
        assert_eq!(log.read(), "");
        writer.write_all(text.as_bytes()).unwrap();
        assert_eq!(log.read(), text);
        drop(writer);
        assert_eq!(log.progress().state, State::Up);
    }
    assert_eq!((log.follower.saved(), log.follower.readable().is_some()), (None, true));
}

#[test]
fn pipe_ends_with_its_writer() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut follower = Follower::pipe(File::from(std::os::fd::OwnedFd::from(reader)));
    let mut bytes = 0;
    let mut take = |piece: Piece<'_>| bytes += usize::from(matches!(piece, Piece::Bytes(b"a\n")));
    assert_eq!(follower.poll(&mut take).unwrap().state, State::Up);
    writer.write_all(b"a\n").unwrap();
    drop(writer);
    let progress = follower.poll(&mut take).unwrap();
    assert_eq!((progress.state, progress.bytes), (State::Ended, 2));
    assert_eq!(bytes, 1);
}

/// What happens to a log.
#[derive(Clone, Debug)]
enum Action {
    Write(usize),
    Rotate,
    Poll,
    Restart,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_is_read_once_and_in_order(
        actions in prop::collection::vec(
            prop_oneof![
                4 => (0_usize..3000).prop_map(Action::Write),
                1 => Just(Action::Rotate),
                2 => Just(Action::Poll),
                1 => Just(Action::Restart),
            ],
            1..30,
        ),
    ) {
        let mut log = Log::new();
        let mut given = String::new();
        let (mut written, mut line, mut rotations, mut rotated) = (String::new(), 0, 0, true);
        log.append("train.log", "");
        for action in actions {
            match action {
                Action::Write(size) => {
                    line += 1;
                    let text = format!("{line} {}\n", "x".repeat(size));
                    log.append("train.log", &text);
                    written.push_str(&text);
                }
                // A file that is rotated away before it was read is lost.
                Action::Rotate if !rotated => {
                    rotations += 1;
                    rotated = true;
                    let old = log.path(&format!("train.log.{rotations}"));
                    fs::rename(log.main(), old).unwrap();
                    log.append("train.log", "");
                }
                Action::Poll | Action::Rotate => {
                    given.push_str(&log.read());
                    rotated = false;
                }
                Action::Restart => {
                    given.push_str(&log.read());
                    rotated = false;
                    log.restart();
                }
            }
        }
        given.push_str(&log.read());
        prop_assert_eq!(given.replace("[Rotated]", ""), written);
        prop_assert!(given.matches("[Rotated]").count() <= rotations);
    }

    #[test]
    fn foreign_state_is_ignored(offset in any::<u64>(), length in any::<u16>()) {
        let mut log = Log::new();
        log.append("train.log", "a\n");
        log.read();
        let mut saved = serde_json::to_value(log.follower.saved().unwrap()).unwrap();
        saved["files"][0]["offset"] = offset.into();
        saved["files"][0]["tail"]["length"] = length.into();
        let saved = serde_json::from_value(saved).unwrap();
        log.follower = Follower::resume(log.main(), saved);
        let text = log.read();
        prop_assert!(text == "a\n" || offset == 2 && text.is_empty());
    }
}
