//! A folder of private files: original limits, moves under way, and the audit log.
//!
//! The allocator runs as root, so no other user may read these files, or lead a write elsewhere. The
//! folder has mode 0700 and its files 0600. Its path is resolved once; links on the way must belong
//! to root or to this user (`resolve`). After that every file is opened by its name in the open
//! folder, without following links, and only if it is a regular file. A folder of version 0.1.0,
//! which others could read, is made private (`tighten`).
//!
//! If the folder is removed, the next write makes it again, since a run can write all of its files
//! again from memory.

mod error;
mod resolve;
mod tighten;

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, Uid};
use rustix::fs::{fchown, fstat, fsync, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use tracing::warn;

pub use error::StateError;

/// The environment variable with the id of the user to whom the folder belongs, for a run as root in
/// a container on behalf of that user.
pub const OWNER: &str = "PACELINE_STATE_OWNER";

/// The id of the user to whom a state folder must belong here.
pub fn owner() -> Result<u32, StateError> {
    resolve::owner().map(Uid::as_raw)
}

/// Makes a folder below a state folder, and those on the way to it, where they are missing.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER.bits()).create(folder)
}

/// The mode of the folder and of folders in it.
const PRIVATE_FOLDER: Mode = Mode::RWXU;
/// The mode of its files.
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A private folder.
#[derive(Clone, Debug)]
pub struct StateFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    place: Place,
    /// Replaced when the folder was removed and made again.
    open: Mutex<Arc<OwnedFd>>,
    owner: Uid,
}

/// Where a folder is made again.
#[derive(Debug)]
enum Place {
    /// At its path.
    Path,
    /// In another folder.
    Within(StateFolder),
    /// Nowhere: it is only read.
    ReadOnly,
}

/// Which file a write must have on the disk when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// None: the kernel writes it later, also if this process ends.
    Later,
    /// The file and its name.
    Now,
}

impl StateFolder {
    /// Opens the folder at `path` for writing, and makes it if it is missing. One that other users
    /// can read is made private, with one warning.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let owner = resolve::owner()?;
        let open = resolve::make(path, owner)?;
        if let Some(changed) = tighten::tighten(&open, path)? {
            warn!("other users could read from the state folder {}: {changed}", path.display());
        }
        Ok(Self::new(path.to_owned(), Place::Path, open, owner))
    }

    /// Opens the folder at `path` for reading; `None` if it is missing.
    pub fn for_reading(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(rustix::fs::CWD, path, flags, Mode::empty()) {
            Ok(open) => {
                let owner = rustix::process::geteuid();
                Ok(Some(Self::new(path.to_owned(), Place::ReadOnly, open, owner)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn new(path: PathBuf, place: Place, open: OwnedFd, owner: Uid) -> Self {
        Self(Arc::new(Inner { path, place, open: Mutex::new(Arc::new(open)), owner }))
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The path of a file in it, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Its owner and its permissions.
    pub fn owner_and_mode(&self) -> io::Result<(u32, u32)> {
        let stat = fstat(&*self.folder()?)?;
        Ok((stat.st_uid, stat.st_mode & 0o7777))
    }

    /// The folder `name` in it, which is made if it is missing.
    pub fn subfolder(&self, name: &str) -> io::Result<Self> {
        let open = self.make_subfolder(name)?;
        let place = Place::Within(self.clone());
        Ok(Self::new(self.path_of(name), place, open, self.0.owner))
    }

    /// The folder `name` in it for reading; `None` if it is missing, or not a folder.
    pub fn existing_subfolder(&self, name: &str) -> io::Result<Option<Self>> {
        let folder = self.folder()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&*folder, single(name)?, flags, Mode::empty()) {
            Ok(open) => {
                Ok(Some(Self::new(self.path_of(name), Place::ReadOnly, open, self.0.owner)))
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn make_subfolder(&self, name: &str) -> io::Result<OwnedFd> {
        let folder = self.folder()?;
        let path = single(name)?;
        match mkdirat(&*folder, path, PRIVATE_FOLDER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = openat(&*folder, path, flags, Mode::empty())
            .map_err(|error| not_followed(error, name))?;
        self.give_to_owner(&open, &fstat(&open)?)?;
        Ok(open)
    }

    /// The folder, made again if it was removed.
    fn folder(&self) -> io::Result<Arc<OwnedFd>> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let again = match &self.0.place {
            _ if fstat(&**open)?.st_nlink > 0 => return Ok(Arc::clone(&open)),
            Place::ReadOnly => return Ok(Arc::clone(&open)),
            Place::Path => resolve::make(&self.0.path, self.0.owner).map_err(io::Error::other)?,
            Place::Within(parent) => {
                let name = self.0.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                parent.make_subfolder(name)?
            }
        };
        warn!("the folder {} was removed, and is made again", self.0.path.display());
        *open = Arc::new(again);
        Ok(Arc::clone(&open))
    }

    /// Opens a file to read it; `None` if it is missing.
    pub fn file(&self, name: &str) -> io::Result<Option<File>> {
        match self.open_file(name, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file to read it and to append to it, and makes it if it is missing.
    pub fn appended_file(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Opens a file to read and overwrite it, and makes it if it is missing.
    pub fn updated_file(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Reads a file of at most `most` bytes; `None` if it is missing.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
            let error = format!("it has more than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(Some(bytes))
    }

    /// Writes a file so that it is complete or as before, whenever this process is interrupted.
    pub fn replace(&self, name: &str, bytes: &[u8], sync: Durability) -> io::Result<()> {
        let unfinished = format!("{name}.part");
        let write = || {
            // What an interrupted write left, or a link that was put there.
            self.remove(&unfinished)?;
            let mut file =
                self.open_file(&unfinished, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
            file.write_all(bytes)?;
            if sync == Durability::Now {
                file.sync_all()?;
            }
            self.rename(&unfinished, name)?;
            if sync == Durability::Now { self.sync() } else { Ok(()) }
        };
        write().inspect_err(|_| {
            // On a full disk, even an incomplete file takes space.
            drop(self.remove(&unfinished));
        })
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&*self.folder()?, single(name)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = self.folder()?;
        Ok(renameat(&*folder, single(from)?, &*folder, single(to)?)?)
    }

    /// A file's inode and length; `None` if it is missing.
    pub fn inode_and_length(&self, name: &str) -> io::Result<Option<(u64, u64)>> {
        match statat(&*self.folder()?, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((stat.st_ino, u64::try_from(stat.st_size).unwrap_or(0)))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of everything in it that is text, sorted.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = entries(&*self.folder()?)?
            .into_iter()
            .filter_map(|name| name.to_str().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Writes the names in it to the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(&*self.folder()?)?)
    }

    /// Opens a regular file, and follows no link. Opening never waits, whatever the path names.
    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let folder = self.folder()?;
        let open = openat(&*folder, single(name)?, flags, PRIVATE_FILE)
            .map_err(|error| not_followed(error, name))?;
        let stat = fstat(&open)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let error = format!("{name} in it is not a regular file; remove {name}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        if flags.contains(OFlags::CREATE) {
            self.give_to_owner(&open, &stat)?;
        }
        Ok(open.into())
    }

    /// Gives what root has made on behalf of a user to that user.
    fn give_to_owner(&self, open: &OwnedFd, stat: &Stat) -> io::Result<()> {
        let other = stat.st_uid != self.0.owner.as_raw();
        if other && rustix::process::geteuid().is_root() {
            fchown(open, Some(self.0.owner), None)?;
        }
        Ok(())
    }
}

/// The names in an open folder, without `.` and `..`.
fn entries(folder: impl AsFd) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// A name that leads to nothing outside of the folder.
fn single(name: &str) -> io::Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        let error = format!("invalid name {name:?}: expected one of a file in the folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    Ok(name)
}

fn not_followed(error: Errno, name: &str) -> io::Error {
    if error == Errno::LOOP {
        let why =
            format!("{name} in it is a symbolic link, which is never followed here; remove {name}");
        return io::Error::new(io::ErrorKind::InvalidInput, why);
    }
    error.into()
}

#[cfg(test)]
mod tests;
