//! A hint that there is something to read, from file systems that give one. Polling works without.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// Folders that are watched at most.
const FOLDERS: usize = 64;

/// Becomes readable when a watched log or folder changes.
#[derive(Debug)]
pub struct Wake {
    inotify: OwnedFd,
    /// For each log or root of folders. The system gives two that share a folder the same one.
    watches: BTreeMap<PathBuf, BTreeSet<i32>>,
}

impl Wake {
    /// Watches nothing yet. Errs where the system has no watches left.
    pub fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { inotify, watches: BTreeMap::new() })
    }

    /// Watches the log at `path`, and no longer what was watched for it before: its contents, and
    /// whether another file takes its name. To be called again after each poll that opened a file,
    /// and now and then while there is none; then poll once more, since what changed before is not
    /// told. Says whether the contents are watched.
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

    /// Watches the files in `folders`, which are those below `root`, and no longer what was watched
    /// for it before. Says whether all of the folders are watched.
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

    /// Waits until something changes or `timeout` has passed, and says whether something did. The
    /// same change is not told twice.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut wanted = [PollFd::new(&self.inotify, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut wanted, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.clear(),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets the changes that are there, and says whether there were any. For those who wait for
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
        // What is watched there for others is watched on.
        inotify::add_watch(&self.inotify, path, flags | WatchFlags::MASK_ADD).ok()
    }

    fn keep(&mut self, owner: &Path, watches: BTreeSet<i32>) {
        let before = self.watches.insert(owner.to_owned(), watches).unwrap_or_default();
        for old in before {
            if !self.watches.values().any(|watches| watches.contains(&old)) {
                // The watch of a file that is gone is gone as well.
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
    fn a_log_wakes_when_it_appears_grows_or_is_replaced() {
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
        // The old file is no longer of interest.
        assert!(wake.watch_log(&log));
        wake.clear().unwrap();
        append(&folder.path().join("train.log.1"), "d\n");
        assert!(!wake.wait(Duration::ZERO).unwrap());
    }

    #[test]
    fn a_log_behind_a_link_wakes() {
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
    fn one_wakes_for_all_that_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let (log, csv) = (folder.path().join("train.log"), folder.path().join("metrics.csv"));
        append(&log, "a\n");
        append(&csv, "a\n");
        let mut wake = Wake::new().unwrap();
        assert!(wake.watch_log(&log));
        assert!(wake.watch_log(&csv));
        assert!(wake.watch_folders(folder.path(), [folder.path()]));
        // Watched again, as a file is that was opened.
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
