//! Marks of limited jobs. An allocator marks a job beside its record, for as long as the job has a limit of
//! the allocator's. Root's allocator and a user's cannot read each other's state folders; by the mark, neither
//! takes a limit that the other one has left, because it was killed, for the owner's.
//!
//! The mark is an empty file, `ID.limited`. Its owner is the user whose allocator has set the limit.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use super::folder::{Folder, Place};
use super::record::{self, Record};

/// The mark of an allocator of another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The user.
    pub uid: u32,
    /// The file.
    pub path: PathBuf,
}

/// Marks job `id` as limited by an allocator of the calling user.
pub fn mark(id: &str) -> io::Result<()> {
    let uid = geteuid().as_raw();
    let folder = Record::folder_of(&Place::visible_to(uid), id);
    let folder = folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    mark_in(&folder, uid, id)
}

/// The mark of an allocator of another user on job `id`. It must be root's or the job's owner's.
pub fn mark_of_another(id: &str) -> Option<Mark> {
    let uid = geteuid().as_raw();
    found_in(&Record::folder_of(&Place::visible_to(uid), id)?, uid, id)
}

/// Removes the mark of job `id`, which may have ended.
pub fn unmark(id: &str) {
    for place in Place::visible_to(geteuid().as_raw()) {
        // What cannot be removed goes with the record.
        drop(place.open().and_then(|folder| folder.remove(&record::mark(id))));
    }
}

fn mark_in(folder: &Folder, uid: u32, id: &str) -> io::Result<()> {
    let name = record::mark(id);
    let create = || {
        let file = folder.open_file(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        // Whatever the process's mask is, other users may see it.
        file.set_permissions(Permissions::from_mode(0o644))
    };
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if folder.user_of(&name).is_ok_and(|by| by == uid) {
                return Ok(());
            }
            // It is neither root's nor the owner's: anyone may add files to a shared folder.
            folder.remove(&name)?;
            create()
        }
        created => created,
    }
}

fn found_in(folder: &Folder, uid: u32, id: &str) -> Option<Mark> {
    let name = record::mark(id);
    let (_, owner) = Record::read(folder, id).ok()?;
    let trusted = |by: &u32| *by != uid && (*by == 0 || *by == owner);
    let uid = folder.user_of(&name).ok().filter(trusted)?;
    Some(Mark { uid, path: folder.path().join(name) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn id() -> String {
        record::id_from(geteuid().as_raw(), "0123456789abcdef")
    }

    fn recorded(folder: &Folder) {
        let record = Record::new(id(), "vae".into(), BTreeMap::new(), String::new());
        record.write(folder).unwrap();
    }

    #[test]
    fn mark_is_seen_by_other_users_alone_and_goes_with_the_record() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::at(base.path());
        let folder = place.open().unwrap();
        let id = id();
        assert!(Record::folder_of(std::slice::from_ref(&place), &id).is_none(), "no record");
        recorded(&folder);
        let own = geteuid().as_raw();
        let other = own.wrapping_add(1);
        assert_eq!(found_in(&folder, other, &id), None);
        mark_in(&folder, own, &id).unwrap();
        mark_in(&folder, own, &id).unwrap();
        let path = base.path().join(format!("{id}.limited"));
        assert_eq!(found_in(&folder, other, &id), Some(Mark { uid: own, path: path.clone() }));
        assert_eq!(found_in(&folder, own, &id), None);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o644);
        Record::remove(&folder, &id).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn mark_of_a_third_user_counts_for_nothing() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root may give a file to another user");
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let folder = Place::at(base.path()).open().unwrap();
        recorded(&folder);
        let id = id();
        let path = base.path().join(format!("{id}.limited"));
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(7), None).unwrap();
        assert_eq!(found_in(&folder, 8, &id), None);
        mark_in(&folder, 0, &id).unwrap();
        assert_eq!(found_in(&folder, 8, &id), Some(Mark { uid: 0, path }));
    }
}
