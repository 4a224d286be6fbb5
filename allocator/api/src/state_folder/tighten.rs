//! Makes a state folder private that version 0.1.0 has left open to other users, or that Docker has
//! made for a mount.
//!
//! Only what is certainly of a state folder is changed: `--state-dir` may name any folder by mistake.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat, openat};
use rustix::io::Errno;

use super::{PRIVATE_FILE, PRIVATE_FOLDER, StateError, entries};

/// Permissions of other users, and of the group.
const OTHERS: u32 = 0o077;
/// The permission of all users to write.
const ANYONE_WRITES: u32 = 0o002;
/// The folder of an engine has folders at most this deep.
const MAX_DEPTH: u32 = 3;

/// Makes the folder and its files private; returns what was changed, if anything.
pub(super) fn tighten(folder: &OwnedFd, path: &Path) -> Result<Option<String>, StateError> {
    let failed = |error: io::Error| StateError::Io(path.to_owned(), error);
    let mode = fstat(folder).map_err(|error| failed(error.into()))?.st_mode & 0o7777;
    let shared = |why| StateError::Shared { path: path.to_owned(), mode, why };
    if mode & ANYONE_WRITES != 0 {
        return Err(shared("every user may write into it"));
    }
    let (ours, others) = contents(folder).map_err(failed)?;
    if mode & OTHERS != 0 && ours.is_empty() && others {
        return Err(shared("it holds files of another kind, and other users may read it"));
    }
    let mut changed = 0;
    for name in &ours {
        close(folder, name, MAX_DEPTH, &mut changed).map_err(failed)?;
    }
    if mode & OTHERS != 0 {
        fchmod(folder, PRIVATE_FOLDER).map_err(|error| failed(error.into()))?;
    }
    let could_be_read = if mode & OTHERS != 0 { !ours.is_empty() } else { changed > 0 };
    if !could_be_read {
        return Ok(None);
    }
    Ok(Some(if mode & OTHERS != 0 {
        let mode = mode & 0o777;
        format!(
            "its mode was {mode:03o} and is now 700, and {changed} files and folders in it are private too"
        )
    } else {
        format!("{changed} files and folders in it were open to them, and are private now")
    }))
}

/// The names of our files and folders in it, and whether it holds others.
fn contents(folder: &OwnedFd) -> io::Result<(Vec<OsString>, bool)> {
    let (mut ours, mut others) = (Vec::new(), false);
    for name in entries(folder)? {
        let text = name.to_string_lossy();
        let log = text == "audit.jsonl" || text == "audit.lock" || text.starts_with("audit-");
        if log || text == "audit.head" || is_folder_of_ours(folder, &name)? {
            ours.push(name);
        } else {
            others = true;
        }
    }
    Ok((ours, others))
}

/// Whether this is the folder of one engine's originals, which holds a lock or a container's record,
/// or the machine's folder of locks. Docker makes the folder around the latter, with mode 0755, where
/// a user who is not root is the first to run the allocator.
fn is_folder_of_ours(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let below = match openat(folder, name, flags, Mode::empty()) {
        Ok(below) => below,
        Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT | Errno::ACCESS) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let below = entries(&below)?;
    let has_locks_alone = || below.iter().all(|name| is_lock(name));
    Ok(below.iter().any(|name| name == "lock" || is_record(name))
        || name == "locks" && has_locks_alone())
}

/// Whether a file has the name of an engine's or a container's lock.
fn is_lock(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|kind| kind == "lock" || kind == "claim")
}

/// Whether a file has the name of a container's record.
fn is_record(name: &OsStr) -> bool {
    let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Makes a file or folder private, and what is below it. A link is left as it is: no file is opened
/// through one.
fn close(folder: impl AsFd, name: &OsStr, depth: u32, changed: &mut usize) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = match openat(folder, name, flags, Mode::empty()) {
        Ok(open) => open,
        Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&open)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_folder = kind == FileType::Directory;
    if !is_folder && kind != FileType::RegularFile {
        return Ok(());
    }
    let private = if is_folder { PRIVATE_FOLDER } else { PRIVATE_FILE };
    if stat.st_mode & OTHERS != 0 {
        fchmod(&open, private)?;
        *changed += 1;
    }
    if is_folder && depth > 0 {
        for below in entries(&open)? {
            close(&open, &below, depth - 1, changed)?;
        }
    }
    Ok(())
}
