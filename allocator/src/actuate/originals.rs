//! The limits that containers had before the allocator's first write to them, kept on disk.
//!
//! Whatever ends the allocator, its machine included, the way back is here: a file for each
//! container, complete or absent, written before the container is touched; and through to the disk,
//! where a limit would outlive the machine.
//! The folder also holds the lock that keeps a second allocator away from the same engine.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::lock;
use crate::observe::cgroup::{MemoryLimit, Quota};
use crate::observe::container::{Container, HostCpu, HostMemory};

/// The version of the files' format. Version 1 knew of no weight in the kernel's measure, and of no
/// memory.
const FORMAT: u32 = 2;

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
    /// Its CPU weight in the kernel's measure.
    #[serde(default)]
    pub weight: Option<u64>,
    /// The weight of its block I/O, where the kernel has one.
    #[serde(default)]
    pub io_weight: Option<u64>,
    /// Its memory limit; `None` as long as it was never written to.
    #[serde(default)]
    pub memory: Option<OriginalMemory>,
}

/// The memory limit that one container had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginalMemory {
    /// What the engine kept for it.
    pub host_config: HostMemory,
    /// What the kernel enforced.
    pub cgroup: Option<MemoryLimit>,
}

impl Original {
    /// What `container` has now, where the kernel has `quota` and `weight` for it.
    pub fn new(container: &Container, quota: Option<Quota>, weight: Option<u64>) -> Self {
        Self {
            format: FORMAT,
            id: container.id.clone(),
            name: container.name.clone(),
            host_config: container.host_config,
            cgroup: quota,
            weight,
            io_weight: None,
            memory: None,
        }
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
    /// A file that a newer version has written.
    #[error("{} has format {format}; this version reads up to {FORMAT}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A file that is not ours.
    #[error("{} does not hold a container's original limits", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
}

impl Originals {
    /// Opens, and makes if need be, the folder for the engine `engine` below `state`. Others are
    /// told that it is held for `purpose`.
    pub fn open(state: &Path, engine: &str, purpose: &str) -> Result<Self, OriginalsError> {
        let plain: String =
            engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let folder = state.join(plain);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let lock = lock::take(&folder, purpose)?;
        // Whatever a killed run had put here and not yet seen through to the disk.
        sync_folder(&folder).map_err(at(&folder))?;
        let originals = Self { folder, _lock: lock };
        originals.clear_unfinished()?;
        Ok(originals)
    }

    /// Removes what a run or a machine that went down has left half. A file that is empty was not
    /// synced yet: the limit that was written meanwhile went down with the machine.
    fn clear_unfinished(&self) -> Result<(), OriginalsError> {
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let entry = entry.map_err(at(&self.folder))?;
            let path = entry.path();
            let is = |extension: &str| path.extension().is_some_and(|it| it == extension);
            let empty = || entry.metadata().is_ok_and(|file| file.len() == 0);
            if is("part") || (is("json") && empty()) {
                fs::remove_file(&path).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// Where they are. What else belongs to the same lock may lie below.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps `original`, unless the container has one already. On return it is on the disk.
    pub fn keep(&self, original: &Original) -> Result<(), OriginalsError> {
        if self.path(&original.id).exists() { Ok(()) } else { self.replace(original) }
    }

    /// Keeps `original`, unless the container has one already, for whoever comes after this process.
    /// On the disk it is only once [`Originals::sync`] is through. Returns whether that is to be done.
    pub fn keep_unsynced(&self, original: &Original) -> Result<bool, OriginalsError> {
        let new = !self.path(&original.id).exists();
        if new {
            self.write(original, |_| Ok(()))?;
        }
        Ok(new)
    }

    /// Brings what is kept of a container to the disk, once it is called: which takes as long as
    /// the disk does. What is forgotten meanwhile is well, too.
    pub fn sync(&self, id: &str) -> impl FnOnce() -> Result<(), OriginalsError> + Send + use<> {
        let (path, folder) = (self.path(id), self.folder.clone());
        move || match File::open(&path).and_then(|file| file.sync_all()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(at(&path)(error)),
            Ok(()) => sync_folder(&folder).map_err(at(&folder)),
        }
    }

    /// Keeps `original` in the place of whatever the container has. On return it is on the disk.
    pub fn replace(&self, original: &Original) -> Result<(), OriginalsError> {
        self.write(original, File::sync_all)?;
        sync_folder(&self.folder).map_err(at(&self.folder))
    }

    fn write(
        &self,
        original: &Original,
        sync: impl Fn(&File) -> io::Result<()>,
    ) -> Result<(), OriginalsError> {
        let path = self.path(&original.id);
        let unfinished = path.with_extension("part");
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec_pretty(original)?)?;
            sync(&file)?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|error| {
            // On a full disk even half a file is in the way.
            drop(fs::remove_file(&unfinished));
            at(&path)(error)
        })
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
            Ok(bytes) => match serde_json::from_slice::<Original>(&bytes) {
                Ok(original) if original.format > FORMAT => {
                    Err(OriginalsError::Newer { path, format: original.format })
                }
                Ok(original) => Ok(Some(original)),
                Err(error) => Err(OriginalsError::Malformed(path, error)),
            },
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

/// Brings the names in a folder to the disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> OriginalsError {
    let path = path.to_owned();
    move |error| OriginalsError::Io(path.clone(), error)
}

#[cfg(test)]
mod tests;
