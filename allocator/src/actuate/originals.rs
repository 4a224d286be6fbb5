//! The limits that containers had before the allocator's first write to them, kept on disk.
//!
//! Whatever ends the allocator, its machine included, the way back is here: a file for each
//! container, complete or absent, written through to the disk before the container is touched.
//! The folder also holds the lock that keeps a second allocator away from the same engine.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::observe::cgroup::Quota;
use crate::observe::container::HostCpu;

/// The version of the files' format.
const FORMAT: u32 = 1;

/// What one container had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Original {
    format: u32,
    /// The engine's full id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// What the engine kept for it.
    pub host_config: HostCpu,
    /// What the kernel enforced, where that could be read.
    pub cgroup: Option<Quota>,
}

impl Original {
    /// What container `id` has now.
    pub fn new(id: String, name: String, host_config: HostCpu, cgroup: Option<Quota>) -> Self {
        Self { format: FORMAT, id, name, host_config, cgroup }
    }
}

/// The folder of one engine's originals. One process at a time holds it.
#[derive(Debug)]
pub struct Originals {
    folder: PathBuf,
    /// Released by the kernel, however the process ends.
    _lock: File,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OriginalsError {
    /// Reading or writing failed.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// Another allocator is at work.
    #[error("another allocator works on this engine ({holder}; lock {})", .lock.display())]
    Held {
        /// Who.
        holder: String,
        /// The lock's file.
        lock: PathBuf,
    },
    /// A file that is not ours, or of another version.
    #[error("{} does not hold a container's original limits", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
}

impl Originals {
    /// Opens, and makes if need be, the folder for the engine `engine` below `state`.
    pub fn open(state: &Path, engine: &str) -> Result<Self, OriginalsError> {
        let plain: String =
            engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let folder = state.join(plain);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let path = folder.join("lock");
        let options =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = options().map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                return Err(OriginalsError::Held { holder: holder.trim().to_owned(), lock: path });
            }
            Err(TryLockError::Error(error)) => return Err(OriginalsError::Io(path, error)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "process {}", std::process::id()))
            .map_err(at(&path))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Keeps `original`, unless the container has one already. On return it is on the disk.
    pub fn keep(&self, original: &Original) -> Result<(), OriginalsError> {
        let path = self.path(&original.id);
        if path.exists() {
            return Ok(());
        }
        let unfinished = path.with_extension("part");
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec_pretty(original)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(at(&path))
    }

    /// Forgets a container whose limits are back.
    pub fn forget(&self, id: &str) -> Result<(), OriginalsError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OriginalsError::Io(path, error))
            }
            _ => Ok(()),
        }
    }

    /// What is kept of one container.
    pub fn get(&self, id: &str) -> Result<Option<Original>, OriginalsError> {
        let path = self.path(id);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|e| OriginalsError::Malformed(path, e)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OriginalsError::Io(path, error)),
        }
    }

    /// The ids of all containers of which something is kept.
    pub fn ids(&self) -> Result<Vec<String>, OriginalsError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let name = entry.map_err(at(&self.folder))?.file_name();
            ids.extend(
                name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned),
            );
        }
        ids.sort();
        Ok(ids)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> OriginalsError {
    let path = path.to_owned();
    move |error| OriginalsError::Io(path.clone(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(nano_cpus: i64) -> Original {
        let host = HostCpu { nano_cpus, ..HostCpu::default() };
        let quota = Quota { quota: None, period: 100_000 };
        Original::new("4f2a".to_owned(), "vae".to_owned(), host, Some(quota))
    }

    #[test]
    fn what_was_first_kept_stays() {
        let state = tempfile::tempdir().unwrap();
        let originals = Originals::open(state.path(), "ABCD:EFGH").unwrap();
        originals.keep(&original(0)).unwrap();
        originals.keep(&original(500_000_000)).unwrap();
        assert_eq!(originals.ids().unwrap(), ["4f2a"]);
        assert_eq!(originals.get("4f2a").unwrap(), Some(original(0)));
        originals.forget("4f2a").unwrap();
        originals.forget("4f2a").unwrap();
        assert_eq!(originals.get("4f2a").unwrap(), None);
    }

    #[test]
    fn a_second_allocator_is_told_who_holds_the_engine() {
        let state = tempfile::tempdir().unwrap();
        let first = Originals::open(state.path(), "one").unwrap();
        let held = Originals::open(state.path(), "one").unwrap_err().to_string();
        assert!(held.contains(&format!("process {}", std::process::id())), "{held}");
        drop(Originals::open(state.path(), "two").unwrap());
        drop(first);
        drop(Originals::open(state.path(), "one").unwrap());
    }

    #[test]
    fn a_half_written_file_is_not_taken_for_a_container() {
        let state = tempfile::tempdir().unwrap();
        let originals = Originals::open(state.path(), "one").unwrap();
        fs::write(state.path().join("one/4f2a.part"), "{").unwrap();
        assert!(originals.ids().unwrap().is_empty());
        fs::write(state.path().join("one/4f2a.json"), "{").unwrap();
        assert!(matches!(originals.get("4f2a"), Err(OriginalsError::Malformed(..))));
    }
}
