//! The record of one job, which `paceline exec` writes before the command starts.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::folder::{Folder, Owned};

/// The form of the records that this version writes.
const SCHEMA: u32 = 1;
/// The longest record, in bytes.
const MAX_RECORD: u64 = 16 * 1024;
/// What every id begins with: no container engine gives such an id.
const PREFIX: &str = "job-";
/// The hexadecimal digits of an id after that.
const DIGITS: usize = 16;

/// What is recorded of a job. Its file is called `ID.json`, and its endpoint's socket `ID.sock`.
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

    /// Reads the record of job `id`, and the user who owns it.
    pub(super) fn read(folder: &Folder, id: &str) -> io::Result<(Self, u32)> {
        let Owned { text, uid } = folder.read(&file(id), MAX_RECORD)?;
        let record: Self = serde_json::from_str(&text)?;
        if record.id != id || record.schema != SCHEMA {
            let why = "its id or form is not the one of its file";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok((record, uid))
    }

    /// Writes the record.
    pub fn write(&self, folder: &Folder) -> io::Result<()> {
        folder.write(&file(&self.id), &serde_json::to_string(self)?)
    }

    /// Removes all files of job `id`.
    pub(super) fn remove(folder: &Folder, id: &str) -> io::Result<()> {
        folder.remove(&socket(id))?;
        folder.remove(&file(id))
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

/// A new id.
pub fn new_id() -> io::Result<String> {
    let mut bytes = [0; DIGITS / 2];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{PREFIX}{}", digits.concat()))
}

/// The name of the socket of a job's endpoint.
pub fn socket(id: &str) -> String {
    format!("{id}.sock")
}

fn file(id: &str) -> String {
    format!("{id}.json")
}
