//! The record of one job, which `paceline exec` writes before the command starts.

use std::collections::BTreeMap;
use std::io;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::folder::{Folder, Owned, Place};

/// The form of the records that this version writes.
const SCHEMA: u32 = 1;
/// The longest record, in bytes.
const MAX_RECORD: u64 = 16 * 1024;
/// What every id begins with: no container engine gives such an id.
const PREFIX: &str = "job-";
/// The hexadecimal digits of an id after that: random ones, its user's number, and how many digits that number
/// has. So a record of another user never counts for the same id.
const DIGITS: usize = 16;

/// What is recorded of a job. Its file is called `ID.json`, its endpoint's socket `ID.sock`, and the mark of a
/// limit `ID.limited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    schema: u32,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its settings: the same keys as a container's labels.
    pub labels: BTreeMap<String, String>,
    /// The lines of `/proc/PID/cgroup` that name its control group.
    pub groups: String,
    /// Its first process.
    pub pid: u32,
    /// When it was started, in Unix seconds.
    pub started_at: f64,
}

impl Record {
    /// A record of the present form.
    pub fn new(id: String, name: String, labels: BTreeMap<String, String>, groups: String) -> Self {
        let (pid, started_at) = (std::process::id(), paceline_api::clock::unix_seconds());
        Self { schema: SCHEMA, id, name, labels, groups, pid, started_at }
    }

    /// Reads the record of job `id`, and the user who owns it: the one whom the id names. The folder is that
    /// user's, or one of all users.
    pub(super) fn read(folder: &Folder, id: &str) -> io::Result<(Self, u32)> {
        let Owned { text, uid, born } = folder.read(&file(id), MAX_RECORD)?;
        let refused = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
        if user_of(id) != Some(uid) {
            return Err(refused("its id is not one of its owner"));
        }
        let (owner, shared) = folder.owner()?;
        if uid != owner && !shared {
            return Err(refused("its record and the folder have different owners"));
        }
        let mut record: Self = serde_json::from_str(&text)?;
        if record.id != id || record.schema != SCHEMA {
            let why = "its id or form is not the one of its file";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        // Its owner writes it: no job has been running for longer than its record exists.
        record.started_at = born.map_or(record.started_at, |born| born.max(record.started_at));
        Ok((record, uid))
    }

    /// The folder with the record of job `id`. Its user may write one in more than one folder: the first
    /// counts.
    pub(super) fn folder_of(places: &[Place], id: &str) -> Option<Folder> {
        let folders = places.iter().filter_map(|place| place.open().ok());
        folders.into_iter().find(|folder| Self::read(folder, id).is_ok())
    }

    /// Writes the record.
    pub fn write(&self, folder: &Folder) -> io::Result<()> {
        folder.write(&file(&self.id), &serde_json::to_string(self)?)
    }

    /// Removes all files of job `id`.
    pub(super) fn remove(folder: &Folder, id: &str) -> io::Result<()> {
        folder.remove(&socket(id))?;
        folder.remove(&file(id))?;
        // Another user's allocator removes its own.
        drop(folder.remove(&mark(id)));
        Ok(())
    }
}

/// Whether an id is one of a job outside containers.
pub fn is_job(id: &str) -> bool {
    let digits = |rest: &str| {
        rest.len() == DIGITS && rest.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    };
    id.strip_prefix(PREFIX).is_some_and(digits)
}

/// The id of a job that the name of a record's file has.
pub(super) fn id_of(file: &str) -> Option<&str> {
    file.strip_suffix(".json").filter(|id| is_job(id))
}

/// The id of a job that the name of an unfinished file has. A killed `paceline exec` leaves such a file.
pub(super) fn id_of_part(file: &str) -> Option<&str> {
    let ends = [".json.part", ".probe", ".probe.part"];
    ends.iter().find_map(|end| file.strip_suffix(end)).filter(|id| is_job(id))
}

/// A new id for a job of the calling user.
pub fn new_id() -> io::Result<String> {
    let mut bytes = [0; DIGITS / 2];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(id_from(geteuid().as_raw(), &digits.concat()))
}

/// The id of a job of user `uid` that begins with these digits.
pub(super) fn id_from(uid: u32, digits: &str) -> String {
    let user = format!("{uid:x}");
    let user = format!("{user}{}", user.len());
    let random = digits.get(..DIGITS.saturating_sub(user.len())).unwrap_or_default();
    format!("{PREFIX}{random}{user}")
}

/// The user whose job has this id.
pub(super) fn user_of(id: &str) -> Option<u32> {
    let digits = id.strip_prefix(PREFIX).filter(|_| is_job(id))?;
    let (digits, len) = digits.split_at_checked(DIGITS - 1)?;
    let len = usize::from_str_radix(len, 16).ok()?;
    let user = digits.get(digits.len().checked_sub(len)?..)?;
    u32::from_str_radix(user, 16).ok()
}

/// The name of the socket of a job's endpoint.
pub fn socket(id: &str) -> String {
    format!("{id}.sock")
}

/// The name of a job's mark.
pub(super) fn mark(id: &str) -> String {
    format!("{id}.limited")
}

fn file(id: &str) -> String {
    format!("{id}.json")
}
