//! The same where the system has no inotify: there is never a [`Wake`], and the reader polls.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Cannot be made.
#[derive(Debug)]
pub struct Wake(Infallible);

impl Wake {
    /// Always fails.
    pub fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Watches a log.
    pub fn watch_log(&mut self, _: &Path) -> bool {
        match self.0 {}
    }

    /// Watches folders.
    pub fn watch_folders<'a>(&mut self, _: &Path, _: impl IntoIterator<Item = &'a Path>) -> bool {
        match self.0 {}
    }

    /// Waits for a change.
    pub fn wait(&self, _: Duration) -> io::Result<bool> {
        match self.0 {}
    }

    /// Discards pending changes.
    pub fn clear(&self) -> io::Result<bool> {
        match self.0 {}
    }
}
