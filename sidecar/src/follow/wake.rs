//! Wakes the reader when a file changes, where the system supports inotify. Polling works without
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Maximum number of watched folders.
const FOLDERS: usize = 64;

/// Becomes readable when a watched log or folder changes.
#[derive(Debug)]
pub struct Wake {
    inotify: OwnedFd,
    /// The watches of each log or root folder. Two entries that share a folder share its watch.
    watches: BTreeMap<PathBuf, BTreeSet<i32>>,
}

impl Wake {
    /// Creates a `Wake` without watches. Fails if the system has none left.
    pub fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { inotify, watches: BTreeMap::new() })
    }

    /// Watches the log at `path`: its content, and whether another file takes its name. Replaces
    /// earlier watches of this log. Call it again after each poll that opened a file, and from time
    /// to time while the file is missing. Then poll once more, because earlier changes are not
    /// reported. Returns whether the content is watched.
    pub fn watch_log(&mut self, path: &Path) -> bool {
        let contents = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF;
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        let folder = |path: &Path| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            self.add(folder.unwrap_or(Path::new(".")), names)
        };
        // The link, and what it leads to.
        let target = path.canonicalize().ok().and_then(|target| folder(&target));
        let log = self.add(path, contents);
        let watches = [folder(path), target, log];
        self.keep(path, watches.into_iter().flatten().collect());
        log.is_some()
    }

    /// Watches the files in `folders`, all below `root`. Replaces earlier watches of this root.
    /// Returns whether all folders are watched.
    pub fn watch_folders<'a>(
        &mut self,
        root: &Path,
        folders: impl IntoIterator<Item = &'a Path>,
    ) -> bool {
        let flags =
            WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        let mut folders = folders.into_iter();
        let watches: Vec<_> = folders.by_ref().take(FOLDERS).map(|f| self.add(f, flags)).collect();
        let all = watches.iter().all(Option::is_some) && folders.next().is_none();
        self.keep(root, watches.into_iter().flatten().collect());
        all
    }

    /// Waits until something changes or `timeout` has passed. Returns whether something changed.
    /// Each change is reported once.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut wanted = [PollFd::new(&self.inotify, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut wanted, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.clear(),
            Err(error) => Err(error.into()),
        }
    }

    /// Discards pending changes and returns whether there were any. For callers that wait for
    /// readability themselves.
    pub fn clear(&self) -> io::Result<bool> {
        let mut any = false;
        let mut events = [0; 4096];
        loop {
            match rustix::io::read(&self.inotify, &mut events) {
                Ok(0) | Err(rustix::io::Errno::WOULDBLOCK) => return Ok(any),
                Ok(_) => any = true,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn add(&self, path: &Path, flags: WatchFlags) -> Option<i32> {
        // `MASK_ADD` keeps the flags of other watches on the same path.
        inotify::add_watch(&self.inotify, path, flags | WatchFlags::MASK_ADD).ok()
    }

    fn keep(&mut self, owner: &Path, watches: BTreeSet<i32>) {
        let before = self.watches.insert(owner.to_owned(), watches).unwrap_or_default();
        for old in before {
            if !self.watches.values().any(|watches| watches.contains(&old)) {
                // Fails for a deleted file, whose watch the system has removed.
                inotify::remove_watch(&self.inotify, old).ok();
            }
        }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl AsRawFd for Wake {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn append(path: &Path, text: &str) {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn log_wakes_when_it_appears_grows_or_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("train.log");
        let mut wake = Wake::new().unwrap();
        assert!(!wake.watch_log(&log));
        append(&log, "a\n");
        assert!(wake.wait(LONG).unwrap());
        assert!(wake.watch_log(&log));
        wake.clear().unwrap();
        assert!(!wake.wait(Duration::ZERO).unwrap());
        append(&log, "b\n");
        assert!(wake.wait(LONG).unwrap());
        fs::rename(&log, folder.path().join("train.log.1")).unwrap();
        assert!(wake.wait(LONG).unwrap());
        append(&log, "c\n");
        assert!(wake.wait(LONG).unwrap());
        // The old file is not watched any more.
        assert!(wake.watch_log(&log));
        wake.clear().unwrap();
        append(&folder.path().join("train.log.1"), "d\n");
        assert!(!wake.wait(Duration::ZERO).unwrap());
    }

    #[test]
    fn log_behind_a_link_wakes() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        append(&real.join("a"), "a\n");
        std::os::unix::fs::symlink(real.join("a"), &link).unwrap();
        let mut wake = Wake::new().unwrap();
        assert!(wake.watch_log(&link));
        append(&real.join("a"), "b\n");
        assert!(wake.wait(LONG).unwrap());
        fs::rename(real.join("a"), real.join("a.1")).unwrap();
        wake.clear().unwrap();
        append(&real.join("a"), "c\n");
        assert!(wake.wait(LONG).unwrap());
    }

    #[test]
    fn folders_wake_for_the_files_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut wake = Wake::new().unwrap();
        assert!(wake.watch_folders(folder.path(), [folder.path()]));
        append(&folder.path().join("events"), "a");
        assert!(wake.wait(LONG).unwrap());
        append(&folder.path().join("events"), "b");
        assert!(wake.wait(LONG).unwrap());
        let nowhere = folder.path().join("nowhere");
        assert!(!wake.watch_folders(&nowhere, [nowhere.as_path()]));
    }

    #[test]
    fn change_of_any_watched_path_wakes() {
        let folder = tempfile::tempdir().unwrap();
        let (log, csv) = (folder.path().join("train.log"), folder.path().join("metrics.csv"));
        append(&log, "a\n");
        append(&csv, "a\n");
        let mut wake = Wake::new().unwrap();
        assert!(wake.watch_log(&log));
        assert!(wake.watch_log(&csv));
        assert!(wake.watch_folders(folder.path(), [folder.path()]));
        // Watched again, as after a file was opened.
        assert!(wake.watch_log(&csv));
        for path in [&log, &csv, &folder.path().join("events")] {
            wake.clear().unwrap();
            append(path, "b\n");
            assert!(wake.wait(LONG).unwrap(), "{}", path.display());
        }
        // The folder is still watched for the others.
        assert!(wake.watch_folders(folder.path(), []));
        fs::rename(&csv, folder.path().join("metrics.csv.1")).unwrap();
        wake.clear().unwrap();
        append(&csv, "c\n");
        assert!(wake.wait(LONG).unwrap());
    }
}
