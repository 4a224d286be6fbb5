//! Scans for event files below a folder.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use paceline_tfevents::OWN_SUFFIX;

/// Maximum depth of folders.
const MAX_DEPTH: u32 = 8;
/// Maximum number of entries per scan.
const ENTRIES: u32 = 100_000;

/// An event file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    /// The folder, relative to the root.
    pub(super) folder: String,
    /// When the file was created, in Unix seconds, by its name.
    pub(super) stamp: u64,
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) size: u64,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<Found>,
    /// The number of scanned entries.
    pub(super) entries: u32,
    /// Folders that could not be read.
    pub(super) unreadable: u64,
    seen: BTreeSet<(u64, u64)>,
}

/// Scans for event files below `root`, which may be one itself or may be missing. Links are
/// followed. A folder or file with several paths is taken once.
pub(super) fn scan(root: &Path) -> Scan {
    let mut scan = Scan::default();
    if root.is_file() {
        scan.take(root, String::new(), root.file_name().unwrap_or_default());
        return scan;
    }
    let mut folders = VecDeque::from([(root.to_owned(), String::new(), 0)]);
    while let Some((path, relative, depth)) = folders.pop_front() {
        if !scan.is_new(&path) {
            continue;
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => {
                scan.unreadable += u64::from(error.kind() != std::io::ErrorKind::NotFound);
                continue;
            }
        };
        let left = usize::try_from(ENTRIES.saturating_sub(scan.entries)).unwrap_or(usize::MAX);
        let entries = entries.take(left).flatten();
        let mut inside: Vec<_> = entries.map(|e| (e.file_name(), e.file_type())).collect();
        inside.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in inside {
            scan.entries += 1;
            // Checkpoints have many files, so only folders and links get a second check.
            let may_be_folder = kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
            let path = path.join(&name);
            if is_of_job(&name.to_string_lossy()) && path.is_file() {
                scan.take(&path, relative.clone(), &name);
            } else if depth < MAX_DEPTH && may_be_folder && path.is_dir() {
                let name = name.to_string_lossy();
                let below = [relative.as_str(), &name].join("/");
                folders.push_back((path, below.trim_start_matches('/').to_owned(), depth + 1));
            }
        }
    }
    scan
}

impl Scan {
    fn take(&mut self, path: &Path, folder: String, name: &OsStr) {
        let Ok(metadata) = fs::metadata(path) else { return };
        if self.seen.insert((metadata.dev(), metadata.ino())) {
            let name = name.to_string_lossy().into_owned();
            let (stamp, path, size) = (stamp(&name), path.to_owned(), metadata.len());
            self.files.push(Found { folder, stamp, name, path, size });
        }
    }

    /// Whether this folder was not reached by another path before.
    fn is_new(&mut self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|folder| self.seen.insert((folder.dev(), folder.ino())))
    }
}

/// Whether this is an event file, and none that Paceline itself writes: what was read must not be read
/// back.
fn is_of_job(name: &str) -> bool {
    name.contains("tfevents") && !name.ends_with(OWN_SUFFIX)
}

/// The ten digits of `events.out.tfevents.1700000000.host`.
fn stamp(name: &str) -> u64 {
    let digits = name.split_once("tfevents.").map_or("", |(_, rest)| rest);
    let digits = digits.split_once(|c: char| !c.is_ascii_digit()).map_or(digits, |(d, _)| d);
    digits.parse().unwrap_or(0)
}
