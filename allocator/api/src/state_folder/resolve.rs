//! Opens the folder at a path, one name after the other.
//!
//! A link of root's or of this user's is followed, as in `/var/lib -> /data/lib`. One of another user
//! is not: that user could lead the folder to any place at any time.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, Stat, Uid, fchown, fstat, mkdirat, openat, readlinkat,
};
use rustix::io::Errno;

use super::{OWNER, PRIVATE_FOLDER, StateError};

/// The most links on the way to a folder, as many as the kernel follows.
const MAX_LINKS: usize = 40;
/// The mode of folders that are made on the way to it.
const PARENT: Mode = Mode::RWXU.union(Mode::from_raw_mode(0o055));

/// The user to whom the folder must belong: this process's, or the one that root runs for.
pub(super) fn owner() -> Result<Uid, StateError> {
    let own = rustix::process::geteuid();
    match std::env::var_os(OWNER) {
        Some(owner) if own.is_root() => {
            let owner = owner.to_string_lossy().into_owned();
            let id = owner.parse().ok().filter(|id| *id != u32::MAX);
            Ok(Uid::from_raw(id.ok_or(StateError::Owner(owner))?))
        }
        Some(_) | None => Ok(own),
    }
}

/// Opens the folder at `path`, and makes it if it is missing. It must belong to `owner`.
pub(super) fn make(path: &Path, owner: Uid) -> Result<OwnedFd, StateError> {
    let failed = |error: io::Error| StateError::Io(path.to_owned(), error);
    let absolute = std::path::absolute(path).map_err(failed)?;
    let mut walk = Walk::new(&absolute, owner).map_err(failed)?;
    while let Some(name) = walk.names.pop_front() {
        match walk.enter(&name).map_err(|error| failed(error.into()))? {
            Step::Entered => {}
            Step::Link(link) => walk.follow(link, path)?,
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = openat(&walk.at, ".", flags, Mode::empty());
    let open = open.map_err(|error| failed(error.into()))?;
    let expected = owner.as_raw();
    if walk.made && rustix::process::geteuid() != owner {
        fchown(&open, Some(owner), None).map_err(|error| failed(error.into()))?;
    }
    let found = fstat(&open).map_err(|error| failed(error.into()))?.st_uid;
    if found == expected {
        Ok(open)
    } else {
        Err(StateError::Foreign { path: path.to_owned(), found, expected })
    }
}

/// A walk from the root to a folder.
struct Walk {
    at: OwnedFd,
    /// The path of `at`.
    reached: PathBuf,
    names: VecDeque<OsString>,
    links: usize,
    /// Whether the folder was missing, and is made.
    made: bool,
    owner: Uid,
}

enum Step {
    Entered,
    Link(Link),
}

/// A link that was found in the place of a folder.
struct Link {
    path: PathBuf,
    open: OwnedFd,
    stat: Stat,
}

impl Walk {
    fn new(path: &Path, owner: Uid) -> io::Result<Self> {
        let mut walk = Self {
            at: root()?,
            reached: PathBuf::from("/"),
            names: VecDeque::new(),
            links: 0,
            made: false,
            owner,
        };
        walk.names = names(path).collect();
        Ok(walk)
    }

    /// Goes into `name`. Makes it if it is missing.
    fn enter(&mut self, name: &OsStr) -> rustix::io::Result<Step> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.at, name, flags, Mode::empty());
        let found = match open() {
            Err(Errno::NOENT) => {
                let mode = if self.names.is_empty() { PRIVATE_FOLDER } else { PARENT };
                let made = mkdirat(&self.at, name, mode);
                if made != Err(Errno::EXIST) {
                    made?;
                    self.made = self.names.is_empty();
                }
                open()?
            }
            found => found?,
        };
        let stat = fstat(&found)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            let path = self.reached.join(name);
            return Ok(Step::Link(Link { path, open: found, stat }));
        }
        if kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        self.at = found;
        self.reached.push(name);
        Ok(Step::Entered)
    }

    fn follow(&mut self, link: Link, path: &Path) -> Result<(), StateError> {
        let failed = |error: Errno| StateError::Io(path.to_owned(), error.into());
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(failed(Errno::LOOP));
        }
        let trusted = [0, rustix::process::geteuid().as_raw(), self.owner.as_raw()];
        if !trusted.contains(&link.stat.st_uid) {
            let owner = link.stat.st_uid;
            return Err(StateError::Link { path: path.to_owned(), link: link.path, owner });
        }
        let target = readlinkat(&link.open, "", Vec::new()).map_err(failed)?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.at = root().map_err(|error| StateError::Io(path.to_owned(), error))?;
            self.reached = PathBuf::from("/");
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            self.names.push_front(name);
        }
        Ok(())
    }
}

fn root() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, "/", flags, Mode::empty())?)
}

/// The names in a path; `..` is one, since it is found in the folder that was reached.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
