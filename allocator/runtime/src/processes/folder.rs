//! The folders in which jobs are recorded: one for root, and one for each other user.
//!
//! Other users write there, so nothing is followed out of a folder: no link, and no mount, which might
//! never answer.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, unlinkat};
use tracing::warn;

/// Overrides all folders, for tests.
const VARIABLE: &str = "PACELINE_JOBS";
/// The folder of root's jobs, and of users without a folder of their own.
const SHARED: &str = "/run/paceline/jobs";
/// Where each user's runtime folder lies.
const USERS: &str = "/run/user";
/// The folder of jobs in a user's runtime folder.
const IN_RUNTIME: &str = "paceline/jobs";
/// The most users whose jobs are read.
const MAX_USERS: usize = 256;
/// The most entries of one folder that are looked at, whatever their names. Every user may add some to
/// a shared folder, which must not hide the jobs of others.
const MAX_ENTRIES: usize = 1 << 17;

/// The name of a folder: a base that the system makes, and the part below it that its user makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    base: PathBuf,
    below: Option<&'static str>,
}

/// A folder of jobs that was opened.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// A small file of a folder.
#[derive(Debug)]
pub(super) struct Owned {
    /// Its text.
    pub(super) text: String,
    /// The user who owns it.
    pub(super) uid: u32,
    /// When it was made, in Unix seconds: its owner cannot change that. Not every kernel knows it.
    pub(super) born: Option<f64>,
}

impl Place {
    /// The folder for the calling user's jobs.
    pub fn own(uid: u32) -> Self {
        if let Some(given) = given() {
            return Self { base: given, below: None };
        }
        match runtime_folder(uid).filter(|_| uid != 0) {
            Some(base) => Self { base, below: Some(IN_RUNTIME) },
            None => Self::shared(),
        }
    }

    /// The folder for root's jobs.
    pub(super) fn shared() -> Self {
        Self { base: given().unwrap_or_else(|| SHARED.into()), below: None }
    }

    /// All folders of the machine.
    pub(super) fn all() -> Vec<Self> {
        let mut found = vec![Self::shared()];
        if given().is_none() {
            let users = fs::read_dir(USERS).into_iter().flatten().flatten().take(MAX_USERS);
            found.extend(users.map(|user| Self { base: user.path(), below: Some(IN_RUNTIME) }));
        }
        found
    }

    /// The folders in which user `uid` may manage jobs: for root all, else the user's own.
    pub(super) fn visible_to(uid: u32) -> Vec<Self> {
        if uid == 0 { Self::all() } else { vec![Self::own(uid)] }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.below.map_or_else(|| self.base.clone(), |below| self.base.join(below))
    }

    /// Makes the folder, for its owner alone.
    pub fn make(&self) -> io::Result<()> {
        let path = self.path();
        if let Some(above) = path.parent().filter(|_| self.below.is_none()) {
            DirBuilder::new().recursive(true).mode(0o755).create(above)?;
            return made(DirBuilder::new().mode(0o755).create(&path));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&path)
    }

    /// Lets every user add jobs of their own, for users without a runtime folder. The sticky bit keeps
    /// them from each other's files.
    pub(super) fn open_to_all(&self) -> io::Result<()> {
        self.make()?;
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o1777))
    }

    /// Opens the folder; fails if it is missing.
    pub fn open(&self) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let base = openat(CWD, &self.base, flags, Mode::empty())?;
        let fd = match self.below {
            Some(below) => openat2(&base, below, flags, Mode::empty(), INSIDE)?,
            None => base,
        };
        Ok(Folder { fd, path: self.path() })
    }
}

/// Below an open folder, without links and without other file systems.
const INSIDE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

impl Folder {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The user who owns it, and whether others may add files.
    pub(super) fn owner(&self) -> io::Result<(u32, bool)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_uid, stat.st_mode & 0o022 != 0))
    }

    /// When an entry was last added or removed.
    pub(super) fn changed(&self) -> io::Result<(i64, i64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_mtime, stat.st_mtime_nsec.try_into().unwrap_or_default()))
    }

    /// What `read` makes of the names of its entries. Names that it makes nothing of take no memory.
    pub(super) fn entries<T>(&self, mut read: impl FnMut(&str) -> Option<T>) -> io::Result<Vec<T>> {
        static SAID: AtomicBool = AtomicBool::new(false);
        let mut found = Vec::new();
        for (number, entry) in Dir::read_from(&self.fd)?.enumerate() {
            if number >= MAX_ENTRIES {
                if !SAID.swap(true, Ordering::Relaxed) {
                    let path = self.path.display();
                    warn!(
                        "{path} has more than {MAX_ENTRIES} entries: jobs in the others are not seen"
                    );
                }
                break;
            }
            let Ok(entry) = entry else { continue };
            found.extend(entry.file_name().to_str().ok().and_then(&mut read));
        }
        Ok(found)
    }

    /// Reads a regular file of at most `most` bytes.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Owned> {
        let file = self.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let about = file.metadata()?;
        if !about.is_file() || about.len() > most {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a small regular file"));
        }
        let mut text = String::new();
        file.take(most).read_to_string(&mut text)?;
        let born = about.created().ok().and_then(unix_seconds);
        Ok(Owned { text, uid: about.uid(), born })
    }

    /// The user who owns a file of the folder.
    pub(super) fn user_of(&self, name: &str) -> io::Result<u32> {
        Ok(self.about(name)?.uid())
    }

    /// When a file of the folder was last written, in Unix seconds.
    pub(super) fn written(&self, name: &str) -> io::Result<f64> {
        let written = self.about(name)?.modified()?;
        Ok(unix_seconds(written).unwrap_or_default())
    }

    fn about(&self, name: &str) -> io::Result<fs::Metadata> {
        self.open_file(name, OFlags::PATH | OFlags::NOFOLLOW)?.metadata()
    }

    /// Opens a file of the folder.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from(0o644) } else { Mode::empty() };
        Ok(openat2(&self.fd, name, flags | OFlags::CLOEXEC, mode, INSIDE)?.into())
    }

    /// Writes a file that its owner alone may read: whole, or not at all.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let part = format!("{name}.part");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = openat2(&self.fd, &*part, flags | OFlags::CLOEXEC, Mode::from(0o600), INSIDE)?;
        let written = io::Write::write_all(&mut File::from(file), text.as_bytes())
            .and_then(|()| Ok(rustix::fs::renameat(&self.fd, &*part, &self.fd, name)?));
        // On a full disk nothing is left of it.
        if written.is_err() {
            drop(self.remove(&part));
        }
        written
    }

    /// Removes a file; it may be missing.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The runtime folder of user `uid`: the one of the environment, else the one that systemd makes. cron and
/// sudo start commands without the variable, and su may keep that of another user.
pub fn runtime_folder(uid: u32) -> Option<PathBuf> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    first_own(given.into_iter().chain([Path::new(USERS).join(uid.to_string())]), uid)
}

/// The first of these folders that belongs to user `uid`.
fn first_own(mut folders: impl Iterator<Item = PathBuf>, uid: u32) -> Option<PathBuf> {
    folders.find(|it| fs::metadata(it).is_ok_and(|it| it.uid() == uid && it.is_dir()))
}

fn given() -> Option<PathBuf> {
    let given: OsString = std::env::var_os(VARIABLE).filter(|it| !it.is_empty())?;
    Some(std::path::absolute(&given).unwrap_or_else(|_| given.into()))
}

fn unix_seconds(time: SystemTime) -> Option<f64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
}

fn made(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

#[cfg(test)]
impl Place {
    pub(super) fn at(base: &Path) -> Self {
        Self { base: base.to_owned(), below: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_folder_of_another_user_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let uid = fs::metadata(folder.path()).unwrap().uid();
        let own = folder.path().to_owned();
        let foreign = if uid == 0 { None } else { Some(PathBuf::from("/")) };
        let missing = folder.path().join("missing");
        let all = [missing.clone()].into_iter().chain(foreign).chain([own.clone()]);
        assert_eq!(first_own(all, uid), Some(own.clone()));
        assert_eq!(first_own([missing].into_iter(), uid), None);
        assert_eq!(first_own([own].into_iter(), uid.wrapping_add(1)), None);
    }
}
