//! The saved state of a sidecar in one file: read positions and progress.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use paceline_reporter::wire::Progress;
use serde::{Deserialize, Serialize};

use crate::follow::open_regular;
use crate::{csv, follow, tfevents};

/// The most bytes of a state that are read. One with the positions of a thousand event files is far shorter.
const MAX_STATE: u64 = 64 << 20;

/// The state that a restarted sidecar resumes from. Progress and read positions are written
/// together, so that no loss is counted twice or lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The progress that was reported.
    pub progress: Option<Progress>,
    /// The read position of each file.
    pub files: SavedFiles,
    /// How much of each container's output was read, by the name that was given.
    #[serde(default)]
    pub containers: BTreeMap<String, SeenSoFar>,
}

/// What a file with a state contains.
#[derive(Debug)]
pub enum Read {
    /// The file is missing.
    Missing,
    /// The file is empty, or its end is missing.
    Cut,
    /// A state.
    Whole(Box<Saved>),
}

/// The read positions of all files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedFiles {
    /// Logs.
    pub logs: BTreeMap<PathBuf, follow::Saved>,
    /// CSV files.
    pub csvs: BTreeMap<PathBuf, csv::Seen>,
    /// Folders of event files.
    pub events: BTreeMap<PathBuf, tfevents::folder::Saved>,
}

/// How much of a container's output was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenSoFar {
    /// The container's id.
    pub id: String,
    /// The bytes of its output, from its start.
    pub bytes: u64,
}

impl Saved {
    /// Reads the state of the previous sidecar. An error means that the file is something else, or
    /// cannot be read.
    pub fn read(path: &Path) -> io::Result<Read> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Missing),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_STATE + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_STATE) {
            let why = format!("longer than {} MiB, the most for a state", MAX_STATE >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        // After a machine has failed, the end of a file may be missing, or be zeros.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        match serde_json::from_slice(bytes.get(..written).unwrap_or_default()) {
            Ok(saved) => Ok(Read::Whole(Box::new(saved))),
            Err(error) if error.is_eof() => Ok(Read::Cut),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the state for the next sidecar, by rename, so that the file is always whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        // What another user put there is neither followed nor waited for: a link, or a pipe.
        drop(fs::remove_file(&new));
        let bytes = serde_json::to_vec(self)?;
        let written = File::create_new(&new).and_then(|mut file| file.write_all(&bytes));
        // What a full disk cut short is of no use.
        written.and_then(|()| fs::rename(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn state_is_read_back_and_a_cut_one_differs_from_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert!(matches!(Saved::read(&path).unwrap(), Read::Missing));
        let mut saved = Saved::default();
        saved.files.csvs.insert("/metrics.csv".into(), csv::Seen::default());
        saved.write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        let Read::Whole(read) = Saved::read(&path).unwrap() else { panic!("it is whole") };
        assert_eq!(read.files.csvs.len(), 1);
        for length in 0..whole.len() {
            let zeros = vec![0; whole.len() - length];
            for end in [&[][..], &zeros] {
                fs::write(&path, [&whole[..length], end].concat()).unwrap();
                assert!(matches!(Saved::read(&path).unwrap(), Read::Cut), "{length}");
            }
        }
        fs::write(&path, "iter 1: loss 2.5\n").unwrap();
        assert!(Saved::read(&path).is_err());
    }

    #[test]
    fn pipe_device_and_endless_file_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, long] = ["pipe", "long"].map(|name| folder.path().join(name));
        make_pipe(&pipe);
        File::create(&long).unwrap().set_len(MAX_STATE + 1).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            let error = Saved::read(path).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{}", path.display());
        }
        let error = Saved::read(&long).unwrap_err().to_string();
        assert_eq!(error, "longer than 64 MiB, the most for a state");
    }

    #[test]
    fn link_or_pipe_beside_the_state_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [path, new, other] =
            ["state.json", "state.json.new", "other"].map(|name| folder.path().join(name));
        fs::write(&other, "another file").unwrap();
        std::os::unix::fs::symlink(&other, &new).unwrap();
        Saved::default().write(&path).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "another file");
        make_pipe(&new);
        Saved::default().write(&path).unwrap();
        assert!(matches!(Saved::read(&path).unwrap(), Read::Whole(_)));
    }

    fn make_pipe(path: &Path) {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
    }
}
